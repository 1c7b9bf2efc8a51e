package preview_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
)

// written is preview.Logs: what was written for compilations, and where stored catalogs are from.
type written struct {
	logs     map[int64][]compile.Log
	standing map[fleet.Certname][]preview.Origin
}

func (w written) Logs(_ context.Context, compilations []int64) (map[int64][]compile.Log, error) {
	logs := map[int64][]compile.Log{}
	for _, id := range compilations {
		if list, known := w.logs[id]; known {
			logs[id] = list
		}
	}
	return logs, nil
}

func (w written) Standing(context.Context, fleet.Environment, []fleet.Certname) (map[fleet.Certname][]preview.Origin, error) {
	return w.standing, nil
}

func TestWarningsTellWhatIsNew(t *testing.T) {
	t.Parallel()
	old := compile.Log{Level: "warning", Message: "old", File: "site.pp", Line: 1}
	fresh := compile.Log{Level: "warning", Message: "deprecated", File: "site.pp", Line: 7}
	rare := compile.Log{Level: "err", Message: "odd", File: "a.pp", Line: 2}
	notice := compile.Log{Level: "notice", Message: "hello"}
	store := previewtest.NewStore()
	service := preview.NewService(preview.Config{Store: store, Logs: written{
		logs: map[int64][]compile.Log{
			1: {old, notice}, 2: {notice}, // what a and b have
			11: {fresh, old, fresh}, 12: {fresh, old}, 13: {rare, notice}, 14: nil,
		},
		standing: map[fleet.Certname][]preview.Origin{
			"a": {{Compilation: 9, Compiled: 1}}, // 9 only points to it
			"b": {{Compilation: 2, Compiled: 2}, {Compilation: 22, Compiled: 12, Staged: true}},
		},
	}})
	p, err := store.CreatePreview(t.Context(), preview.Preview{Environment: "production", State: preview.Compiling, Counts: preview.Counts{}}, []preview.Share{
		{Number: 0, Node: "a", State: preview.Waiting, Compilation: 11},
		{Number: 1, Node: "b", State: preview.Waiting, Compilation: 22, Reused: true},
		{Number: 2, Node: "c", State: preview.Waiting, Compilation: 13},
		{Number: 3, Node: "d", State: preview.Waiting, Compilation: 14, Fresh: "quiet"},
		{Number: 4, Node: "e", State: preview.Waiting, Compilation: 15, Fresh: "forgotten"},
		{Number: 5, Node: "f", State: preview.Waiting}, // it has no catalog
	})
	if err != nil {
		t.Fatal(err)
	}
	got, unknown, err := service.Warnings(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if unknown != 1 {
		t.Errorf("of %d nodes nobody knows what was written, not of e alone", unknown)
	}
	want := []preview.Warning{
		{Log: fresh, Nodes: 2, Examples: []fleet.Certname{"a", "b"}, New: true},
		{Log: rare, Nodes: 1, Examples: []fleet.Certname{"c"}, New: true},
		{Log: old, Nodes: 2, Examples: []fleet.Certname{"a", "b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

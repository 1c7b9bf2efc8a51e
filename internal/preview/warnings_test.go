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

// written is preview.Logs: what was written for compilations, and which of them nodes have.
type written struct {
	logs   map[int64][]compile.Log
	newest map[fleet.Certname]int64
}

func (w written) Logs(_ context.Context, compilations []int64) (map[int64][]compile.Log, error) {
	logs := map[int64][]compile.Log{}
	for _, id := range compilations {
		if list := w.logs[id]; list != nil {
			logs[id] = list
		}
	}
	return logs, nil
}

func (w written) Newest(_ context.Context, _ fleet.Environment, _ []fleet.Certname) (map[fleet.Certname]int64, error) {
	return w.newest, nil
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
			11: {fresh, old, fresh}, 12: {fresh, old}, 13: {rare, notice},
		},
		newest: map[fleet.Certname]int64{"a": 1, "b": 2},
	}})
	p, err := store.CreatePreview(t.Context(), preview.Preview{Environment: "production", State: preview.Compiling, Counts: preview.Counts{}}, []preview.Share{
		{Number: 0, Node: "a", State: preview.Waiting, Compilation: 11},
		{Number: 1, Node: "b", State: preview.Waiting, Compilation: 12},
		{Number: 2, Node: "c", State: preview.Waiting, Compilation: 13},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := service.Warnings(t.Context(), p)
	if err != nil {
		t.Fatal(err)
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

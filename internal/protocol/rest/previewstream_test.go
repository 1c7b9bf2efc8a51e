package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
)

// progress reads what the events of a preview tell.
func progress(t *testing.T, text string) (seen []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(line, "data: {\"number\"")
		if !ok {
			if strings.HasPrefix(line, "event: end") {
				seen = append(seen, "end")
			}
			continue
		}
		var e api.PreviewEvent
		check(t, json.Unmarshal([]byte(`{"number"`+data), &e))
		seen = append(seen, fmt.Sprintf("%d %s %d changes", e.Number, e.Preview.State, len(e.Changes)))
	}
	return seen
}

// A preview whose nodes become known one after the other is followed to its end; who comes back gets what is behind.
func TestTheStreamOfAPreview(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		shares := []preview.Share{
			{Number: 0, Node: "a", State: preview.Waiting}, {Number: 1, Node: "b", State: preview.Waiting}, {Number: 2, Node: "c", State: preview.Waiting},
		}
		p, err := b.preview.CreatePreview(t.Context(), preview.Preview{Environment: "production", State: preview.Compiling, Counts: preview.Count(shares)}, shares)
		check(t, err)
		settle := func(from, to int) {
			for i := from; i < to; i++ {
				shares[i].State = preview.Changed
			}
			_, err := b.preview.SavePreviewShares(t.Context(), p.ID, shares[from:to])
			check(t, err)
		}
		time.AfterFunc(10*time.Second, func() { settle(0, 1) })
		time.AfterFunc(40*time.Second, func() {
			settle(1, 3)
			group := preview.Group{Change: api.ChangeGroup{Key: "k", Nodes: 3, Example: &api.ResourceDifference{Type: "File"}}, Nodes: []uint32{0, 1, 2}}
			_, err := b.preview.FinishPreview(t.Context(), preview.Preview{ID: p.ID, EndedAt: time.Now()}, previewtest.Groups(group))
			check(t, err)
		})
		path := fmt.Sprintf("/previews/%d/events", p.ID)
		text := b.gets(t, http.MethodGet, path, "", 200, "id: 1\nevent: change\n", ": still there")
		if diff := cmp.Diff([]string{"0 compiling 0 changes", "1 compiling 0 changes", "4 ready 1 changes", "end"}, progress(t, text)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if strings.Contains(text, `"example"`) {
			t.Errorf("an event holds an example: %s", text)
		}
		for after, want := range map[string][]string{"1": {"4 ready 1 changes", "end"}, "4": {"end"}} {
			if diff := cmp.Diff(want, progress(t, b.gets(t, http.MethodGet, path+"?after="+after, "", 200))); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", after, diff)
			}
		}
		b.gets(t, http.MethodGet, path+"?after=x", "", 400, "after must be")
		b.gets(t, http.MethodGet, "/previews/99/events", "", 404, "there is no preview 99")
	})
}

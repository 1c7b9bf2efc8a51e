package preview_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
)

func change(key, kind, typ, title string, nodes int, parameters ...string) api.ChangeGroup {
	return api.ChangeGroup{Key: key, Change: kind, Type: typ, Title: title, Parameters: parameters, Nodes: nodes}
}

// readyWith is a preview of four nodes, a to d, with these groups.
func readyWith(t *testing.T, groups ...preview.Group) (*preview.Service, preview.Preview) {
	t.Helper()
	store := previewtest.NewStore()
	world := &previewtest.World{Fates: map[fleet.Certname]previewtest.Fate{"a": {}, "b": {}}} // a query answers with these two
	shares := make([]preview.Share, 4)
	for i, name := range []fleet.Certname{"a", "b", "c", "d"} {
		shares[i] = preview.Share{Number: uint32(i), Node: name, State: preview.Changed}
	}
	p, err := store.CreatePreview(t.Context(),
		preview.Preview{Environment: "production", Version: previewed, State: preview.Compiling, Counts: preview.Count(shares)}, shares)
	if err == nil {
		p, err = store.FinishPreview(t.Context(), preview.Preview{ID: p.ID, EndedAt: time.Now()}, previewtest.Groups(groups...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return service(store, world), p
}

func TestNoiseHides(t *testing.T) {
	t.Parallel()
	s, p := readyWith(t,
		preview.Group{Change: change("err", "error", "", "", 1), Nodes: []uint32{3}},
		preview.Group{Change: change("motd", "changed", "File", "/etc/motd", 2, "content"), Nodes: []uint32{0, 1}},
		preview.Group{Change: change("both", "changed", "File", "/etc/issue", 2, "content", "mode"), Nodes: []uint32{1, 2}},
		preview.Group{Change: change("gone", "removed", "User", "ops", 1), Nodes: []uint32{3}},
	)
	for _, c := range []struct {
		noise  preview.Noise
		hidden []string
		quiet  []uint32
	}{
		{preview.Noise{Title: "*"}, []string{"both", "gone", "motd"}, []uint32{0, 1, 2, 3}},
		{preview.Noise{Type: "file", Title: "/etc/*"}, []string{"both", "motd"}, []uint32{0, 1, 2}},
		{preview.Noise{Type: "File", Parameters: []fleet.Glob{"content"}}, []string{"motd"}, []uint32{0}},
		{preview.Noise{Type: "File", Parameters: []fleet.Glob{"con*", "mode"}}, []string{"both", "motd"}, []uint32{0, 1, 2}},
		{preview.Noise{Change: "removed", Type: "*"}, []string{"gone"}, []uint32{3}},
		{preview.Noise{Nodes: "a and b"}, []string{"motd"}, []uint32{0}}, // c has the other one, too
		{preview.Noise{Title: "*", Environments: []fleet.Environment{"testing"}}, nil, nil},
	} {
		if _, err := s.SetNoise(t.Context(), ann, "rule", c.noise); err != nil {
			t.Fatal(err)
		}
		quiet, err := s.Quiet(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		var hidden []string
		for key := range quiet.By {
			hidden = append(hidden, key)
		}
		slices.Sort(hidden)
		if diff := cmp.Diff(c.hidden, hidden) + cmp.Diff(c.quiet, quiet.Nodes); diff != "" {
			t.Errorf("%+v hides (-want +got):\n%s", c.noise, diff)
		}
		if n := len(c.hidden); n > 0 && (len(quiet.Rules) != 1 || quiet.Rules[0].Changes != n) {
			t.Errorf("%+v: %+v, want %d changes", c.noise, quiet.Rules, n)
		}
	}
	if _, err := s.RemoveNoise(t.Context(), ann, "rule"); err != nil {
		t.Fatal(err)
	}
	if quiet, err := s.Quiet(t.Context(), p); err != nil || len(quiet.By) > 0 {
		t.Errorf("a removed rule hides: %v %+v", err, quiet)
	}
}

func TestNoiseThatIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := readyWith(t)
	for name, n := range map[string]preview.Noise{
		"empty": {Why: "x"}, "Capital": {Title: "*"}, "wrong-change": {Title: "*", Change: "error"},
		"no-environment": {Title: "*", Environments: []fleet.Environment{"A B"}}, "no-parameter": {Parameters: []fleet.Glob{""}},
	} {
		if _, err := s.SetNoise(t.Context(), ann, name, n); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	var acks []preview.Acknowledgement
	for id := range int64(4) {
		title := fmt.Sprintf("/srv/app-%d/build", id)
		acks = append(acks,
			preview.Acknowledgement{Preview: id, Author: "ann", Change: change("x", "changed", "File", title, 3, "content")},
			preview.Acknowledgement{Preview: id, Author: "bob", Change: change("y", "changed", "File", "/etc/motd", 3, "content")},
			preview.Acknowledgement{Preview: 1, Author: "ann", Change: change("z", "changed", "File", "/etc/once", 3, "content")},
			preview.Acknowledgement{Preview: id, Author: "ann", Change: change("e", "error", "", "", 3)},
			preview.Acknowledgement{Preview: id, Author: "ann", Change: change("k", "changed", "Package", "known", 3, "ensure")},
		)
	}
	known := []preview.NoiseRule{{Name: "file-etc-motd"}, {Name: "known", Noise: preview.Noise{Type: "Package", Title: "kn*"}}}
	known[0].Noise = preview.Noise{Type: "Nothing"}
	production := []fleet.Environment{"production"}
	want := []preview.Suggestion{
		{
			Name: "file-etc-motd-2", Previews: 4, People: []string{"bob"}, Titles: []string{"/etc/motd"},
			Noise: preview.Noise{Environments: production, Change: "changed", Type: "File", Title: "/etc/motd", Parameters: []fleet.Glob{"content"}},
		},
		{
			Name: "file-srv-app-build", Previews: 4, People: []string{"ann"}, Titles: []string{
				"/srv/app-0/build", "/srv/app-1/build", "/srv/app-2/build", "/srv/app-3/build",
			},
			Noise: preview.Noise{Environments: production, Change: "changed", Type: "File", Title: "/srv/app-*/build", Parameters: []fleet.Glob{"content"}},
		},
	}
	if diff := cmp.Diff(want, preview.Suggest("production", acks, known, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

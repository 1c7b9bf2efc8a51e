package saved_test

import (
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory/saved"
	"github.com/tutti-project/tutti/internal/inventory/saved/savedtest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	savedtest.RunStore(t, func(*testing.T) saved.Store { return savedtest.NewStore() })
}

// Everybody reads what is shared, nobody but its owner what is private, and only the owner changes either.
func TestQueriesHaveAnOwner(t *testing.T) {
	t.Parallel()
	s, ctx := saved.Service{Store: savedtest.NewStore()}, t.Context()
	ann, ben := fleet.Actor{Name: "ann"}, fleet.Actor{Name: "ben"}
	for _, name := range []string{"red", "mine"} {
		if _, err := s.Save(ctx, ann, name, saved.Definition{Text: `nodes{latest_report_status = "failed"}`, Private: name == "mine"}); err != nil {
			t.Fatal(err)
		}
	}
	names := func(actor fleet.Actor) string {
		t.Helper()
		list, err := s.List(ctx, actor)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, q := range list {
			all = append(all, q.Name)
		}
		return strings.Join(all, " ")
	}
	if a, b := names(ann), names(ben); a != "mine red" || b != "red" {
		t.Errorf("ann sees %q, ben %q", a, b)
	}
	_, private := s.Find(ctx, ben, "mine")
	_, changed := s.Save(ctx, ben, "red", saved.Definition{Text: "nodes{}"})
	_, taken := s.Save(ctx, ben, "mine", saved.Definition{Text: "nodes{}"})
	_, removed := s.Remove(ctx, ben, "red")
	_, wrong := s.Save(ctx, ann, "red", saved.Definition{Text: "nodes{"})
	_, unnamed := s.Save(ctx, ann, "Red nodes", saved.Definition{Text: "nodes{}"})
	for what, is := range map[string]struct {
		err  error
		kind fault.Kind
	}{
		"somebody else's private one": {private, fault.NotFound}, "changed": {changed, fault.Denied}, "its name": {taken, fault.Denied},
		"removed": {removed, fault.Denied}, "a mistake in it": {wrong, fault.Invalid}, "no name": {unnamed, fault.Invalid},
	} {
		if fault.Of(is.err) != is.kind {
			t.Errorf("%s: %v", what, is.err)
		}
	}
	if strings.Contains(fault.Detail(taken), "ann") {
		t.Errorf("it is told whose the private query is: %v", taken)
	}
	if _, err := s.Remove(ctx, ann, "red"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(ctx, ben, "red", saved.Definition{Text: "nodes{}"}); err != nil {
		t.Errorf("a name that is free again: %v", err)
	}
}

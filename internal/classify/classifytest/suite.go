package classifytest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore holds the store that open returns to the port's contract. open is
// called once a test; it returns a new store and cleans up after itself.
func RunStore(t *testing.T, open func(t *testing.T) classify.Store) {
	t.Helper()
	tests := map[string]func(*testing.T, classify.Store){
		"a new store holds the root":        newStore,
		"everything of a group is kept":     kept,
		"parents first, siblings by name":   ordered,
		"an update needs the revision":      revisions,
		"an update that changes nothing":    unchanged,
		"the root can be given classes":     root,
		"a group with children stays":       children,
		"a cycle is refused":                cycle,
		"names are unique, and may swap":    names,
		"all changes or none":               atomic,
		"of concurrent updates one is made": concurrent,
		"what is not there":                 absent,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// Sample is the n-th example below the root, with everything that a group can have.
func Sample(n int) classify.Group {
	rule, err := classify.ParseRule(fmt.Sprintf(`facts.os.family = "Debian" and (not name ~ '^db\d' or trusted.extensions.pp_role = "ü%d")`, n))
	if err != nil {
		panic(err) // a test's own mistake
	}
	return classify.Group{
		ID: classify.ID(fmt.Sprintf("11111111-0000-4000-8000-%012d", n)), Name: fmt.Sprintf("Group %03d", n), Parent: classify.RootID,
		Description: "An example.\nWith two lines.", Environment: "production", EnvironmentGroup: n%2 == 0, Rule: rule,
		Pinned:    []fleet.Certname{"a.example.test", "b.example.test"},
		Classes:   classify.Classes{"apache": {"port": []byte(`80`), "vhosts": []byte(`{"a<b":[1.0,null]}`)}, "ntp": {}},
		Variables: classify.Values{"site": []byte(`"north"`)},
		Data:      classify.Classes{"ssh::server": {"ciphers": []byte(`["aes"]`)}},
		ChangedAt: time.Date(2026, 3, 1, 12, 0, n, 123456000, time.UTC), ChangedBy: "ops",
	}
}

func newStore(t *testing.T, s classify.Store) {
	want := classify.NewRoot()
	groups, revision := all(t, s)
	if diff := cmp.Diff([]classify.Group{want}, groups, asStored); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if now, err := s.GroupsRevision(t.Context()); err != nil || now != revision {
		t.Errorf("revision %d, %v; want %d", now, err, revision)
	}
}

func kept(t *testing.T, s classify.Store) {
	_, before := all(t, s)
	g := Sample(1)
	saved := change(t, s, classify.Create, g)
	g.Revision = 1
	if diff := cmp.Diff([]classify.Group{g}, saved, asStored); diff != "" {
		t.Errorf("saved (-want +got):\n%s", diff)
	}
	groups, after := all(t, s)
	if diff := cmp.Diff(g, groups[len(groups)-1], asStored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if after <= before {
		t.Errorf("the tree's revision went from %d to %d", before, after)
	}
}

func ordered(t *testing.T, s classify.Store) {
	b, a, below := Sample(1), Sample(2), Sample(3)
	b.Name, a.Name, below.Name, below.Parent = "B", "A", "0", b.ID
	save(t, s, classify.Change{Kind: classify.Create, Group: below}, classify.Change{Kind: classify.Create, Group: b},
		classify.Change{Kind: classify.Create, Group: a})
	wantNames(t, s, classify.RootName, "A", "B", "0")
}

func revisions(t *testing.T, s classify.Store) {
	g := change(t, s, classify.Create, Sample(1))[0]
	g.Description = "second"
	g = change(t, s, classify.Update, g)[0]
	if g.Revision != 2 {
		t.Errorf("the revision is %d, want 2", g.Revision)
	}
	stale := g
	stale.Revision, stale.Description = 1, "lost"
	refused(t, s, fault.Conflict, classify.Change{Kind: classify.Update, Group: stale})
	refused(t, s, fault.Conflict, classify.Change{Kind: classify.Delete, Group: stale})
	stale.Revision, stale.Description = 0, "asks for no check"
	if g = change(t, s, classify.Update, stale)[0]; g.Revision != 3 {
		t.Errorf("the revision is %d, want 3", g.Revision)
	}
	change(t, s, classify.Delete, g)
	wantNames(t, s, classify.RootName)
}

func unchanged(t *testing.T, s classify.Store) {
	g := change(t, s, classify.Create, Sample(1))[0]
	again := Sample(1)
	again.ChangedBy, again.ChangedAt = "somebody else", again.ChangedAt.Add(time.Hour)
	if diff := cmp.Diff([]classify.Group{g}, change(t, s, classify.Update, again), asStored); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func root(t *testing.T, s classify.Store) {
	g := classify.NewRoot()
	g.Classes = classify.Classes{"base": {}}
	if got := change(t, s, classify.Update, g)[0]; got.Revision != 2 {
		t.Errorf("the revision is %d, want 2", got.Revision)
	}
	moved, other := g, Sample(1).Rule
	moved.Revision, moved.Name = 0, "Some Nodes"
	refused(t, s, fault.Invalid, classify.Change{Kind: classify.Update, Group: moved})
	moved.Name, moved.Rule = classify.RootName, other
	refused(t, s, fault.Invalid, classify.Change{Kind: classify.Update, Group: moved})
	refused(t, s, fault.Invalid, classify.Change{Kind: classify.Delete, Group: classify.Group{ID: classify.RootID}})
}

func children(t *testing.T, s classify.Store) {
	top, below := Sample(1), Sample(2)
	below.Parent = top.ID
	save(t, s, classify.Change{Kind: classify.Create, Group: top}, classify.Change{Kind: classify.Create, Group: below})
	refused(t, s, fault.Conflict, classify.Change{Kind: classify.Delete, Group: top})
	save(t, s, classify.Change{Kind: classify.Delete, Group: top}, classify.Change{Kind: classify.Delete, Group: below})
	wantNames(t, s, classify.RootName)
}

func cycle(t *testing.T, s classify.Store) {
	a, b := Sample(1), Sample(2)
	b.Parent = a.ID
	save(t, s, classify.Change{Kind: classify.Create, Group: a}, classify.Change{Kind: classify.Create, Group: b})
	a.Parent = b.ID
	refused(t, s, fault.Invalid, classify.Change{Kind: classify.Update, Group: a})
	a.Parent = a.ID
	refused(t, s, fault.Invalid, classify.Change{Kind: classify.Update, Group: a})
}

func names(t *testing.T, s classify.Store) {
	a, b := Sample(1), Sample(2)
	save(t, s, classify.Change{Kind: classify.Create, Group: a}, classify.Change{Kind: classify.Create, Group: b})
	a.Name, b.Name = b.Name, a.Name
	refused(t, s, fault.Conflict, classify.Change{Kind: classify.Update, Group: a})
	save(t, s, classify.Change{Kind: classify.Update, Group: a}, classify.Change{Kind: classify.Update, Group: b})
	wantNames(t, s, classify.RootName, b.Name, a.Name)
}

func atomic(t *testing.T, s classify.Store) {
	_, before := all(t, s)
	bad := Sample(2)
	bad.Classes = classify.Classes{"Not A Class": {}}
	refused(t, s, fault.Invalid, classify.Change{Kind: classify.Create, Group: Sample(1)}, classify.Change{Kind: classify.Create, Group: bad})
	wantNames(t, s, classify.RootName)
	if now, err := s.GroupsRevision(t.Context()); err != nil || now != before {
		t.Errorf("the tree's revision went from %d to %d, %v", before, now, err)
	}
}

func concurrent(t *testing.T, s classify.Store) {
	g := change(t, s, classify.Create, Sample(1))[0]
	const writers = 8
	errs := make([]error, writers)
	var wait sync.WaitGroup
	for i := range writers {
		wait.Go(func() {
			mine := g
			mine.Description = fmt.Sprint("by ", i)
			_, errs[i] = s.ChangeGroups(t.Context(), []classify.Change{{Kind: classify.Update, Group: mine}})
		})
	}
	wait.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if fault.Of(err) != fault.Conflict {
			t.Errorf("got %v, want a Conflict", err)
		}
	}
	if made != 1 {
		t.Errorf("%d updates for one revision were made", made)
	}
}

func absent(t *testing.T, s classify.Store) {
	refused(t, s, fault.NotFound, classify.Change{Kind: classify.Update, Group: Sample(1)})
	refused(t, s, fault.NotFound, classify.Change{Kind: classify.Delete, Group: Sample(1)})
	orphan := Sample(1)
	orphan.Parent = Sample(2).ID
	refused(t, s, fault.Conflict, classify.Change{Kind: classify.Create, Group: orphan})
	change(t, s, classify.Create, Sample(1))
	refused(t, s, fault.Conflict, classify.Change{Kind: classify.Create, Group: Sample(1)})
}

// asStored compares groups; empty and missing are the same.
var asStored = cmpopts.EquateEmpty()

func all(t *testing.T, s classify.Store) ([]classify.Group, int64) {
	t.Helper()
	groups, revision, err := s.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return groups, revision
}

func change(t *testing.T, s classify.Store, kind classify.ChangeKind, g classify.Group) []classify.Group {
	t.Helper()
	return save(t, s, classify.Change{Kind: kind, Group: g})
}

func save(t *testing.T, s classify.Store, changes ...classify.Change) []classify.Group {
	t.Helper()
	saved, err := s.ChangeGroups(t.Context(), changes)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func refused(t *testing.T, s classify.Store, kind fault.Kind, changes ...classify.Change) {
	t.Helper()
	if _, err := s.ChangeGroups(t.Context(), changes); err == nil || fault.Of(err) != kind {
		t.Errorf("got %v, want %s", err, kind)
	}
}

func wantNames(t *testing.T, s classify.Store, want ...string) {
	t.Helper()
	groups, _ := all(t, s)
	var got []string
	for _, g := range groups {
		got = append(got, g.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

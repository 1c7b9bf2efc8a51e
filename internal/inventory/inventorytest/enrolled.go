package inventorytest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Card is a certificate, as far as enrolments are about it.
type Card struct {
	Certname fleet.Certname
	At, Ends time.Time
	Revoked  bool
	Server   bool
	Former   bool // another one stands for the name
}

// EnrolmentStore is a store of nodes and of their certificates.
//
// Wide: the ports that the cases cross, each as it is elsewhere.
type EnrolmentStore interface {
	inventory.EnrolmentStore
	inventory.NodeStore
	inventory.FactStore
	// Issue adds a certificate, which is then the name's current one unless it is a server's or a former one.
	Issue(t *testing.T, c Card)
}

// RunEnrolments checks a store. open returns an empty one for each case.
func RunEnrolments(t *testing.T, open func(t *testing.T) EnrolmentStore) {
	t.Helper()
	for name, check := range map[string]func(t *testing.T, s EnrolmentStore){
		"good certificates without a node are listed": enrolled,
		"pages between two names":                     enrolledPages,
		"purged nodes come back with another one":     enrolledPurged,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func enrolled(t *testing.T, s EnrolmentStore) {
	t.Helper()
	ctx, ends := t.Context(), start.Add(time.Hour)
	for _, c := range []Card{
		{Certname: "good", At: start, Ends: ends},
		{Certname: "ended", At: start, Ends: start},
		{Certname: "revoked", At: start, Ends: ends, Revoked: true},
		{Certname: "server", At: start, Ends: ends, Server: true},
		{Certname: "former", At: start, Ends: ends, Former: true},
		{Certname: "known", At: start, Ends: ends},
	} {
		s.Issue(t, c)
	}
	_, _, err := s.SaveFacts(ctx, factSet("known", `{"a":1}`, start))
	ok(t, err)
	want := []inventory.Enrolment{{Certname: "good", At: start}}
	got, err := s.Enrolled(ctx, "", "", 10, start)
	ok(t, err)
	same(t, "enrolled", want, got)
	one, err := s.Enrolment(ctx, "good", start)
	ok(t, err)
	same(t, "one", want[0], one)
	for _, name := range []fleet.Certname{"ended", "revoked", "server", "former", "known", "nobody"} {
		if e, err := s.Enrolment(ctx, name, start); fault.Of(err) != fault.NotFound {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if _, err := s.Node(ctx, "good"); fault.Of(err) != fault.NotFound { // nothing is stored of it: PuppetDB's clients do not see it
		t.Errorf("a node of its own: %v", err)
	}
}

func enrolledPages(t *testing.T, s EnrolmentStore) {
	t.Helper()
	for _, name := range []fleet.Certname{"c-1", "a", "c", "b_2", "c0"} {
		s.Issue(t, Card{Certname: name, At: start, Ends: start.Add(time.Hour)})
	}
	for _, c := range []struct {
		after, until string
		limit        int
		want         string
	}{
		{"", "", 10, "[a b_2 c c-1 c0]"},
		{"", "", 2, "[a b_2]"},
		{"b_2", "", 2, "[c c-1]"},
		{"a", "c-1", 10, "[b_2 c c-1]"},
		{"c0", "", 10, "[]"},
	} {
		list, err := s.Enrolled(t.Context(), c.after, c.until, c.limit, start)
		ok(t, err)
		names := []fleet.Certname{}
		for _, e := range list {
			names = append(names, e.Certname)
		}
		same(t, fmt.Sprintf("after %q until %q", c.after, c.until), c.want, fmt.Sprint(names))
	}
}

func enrolledPurged(t *testing.T, s EnrolmentStore) {
	t.Helper()
	ctx := t.Context()
	card := Card{Certname: "a", At: start, Ends: start.Add(time.Hour)}
	is := func(what string, want bool) {
		t.Helper()
		if _, err := s.Enrolment(ctx, "a", start); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.Issue(t, card)
	is("issued", true)
	ok(t, s.PurgeNode(ctx, "a")) // its certificate was all that was known
	is("purged", false)
	if err := s.PurgeNode(ctx, "a"); fault.Of(err) != fault.NotFound {
		t.Errorf("purged twice: %v", err)
	}
	s.Issue(t, card) // in the same second
	is("issued again", true)
	_, _, err := s.SaveFacts(ctx, factSet("a", `{"a":1}`, start))
	ok(t, err)
	is("known", false)
	ok(t, s.PurgeNode(ctx, "a"))
	is("purged after its facts", false)
	s.Issue(t, card)
	ok(t, s.DeactivateNode(ctx, "a", start))
	_, err = s.PurgeLeftNodes(ctx, start.Add(time.Minute), 10)
	ok(t, err)
	is("purged long after it left", false)
}

// FakeEnrolments is an EnrolmentStore in memory.
type FakeEnrolments struct {
	*Fake

	mu    sync.Mutex
	cards map[fleet.Certname]Card
}

// NewEnrolments makes an empty one.
func NewEnrolments() *FakeEnrolments {
	return &FakeEnrolments{Fake: New(), cards: map[fleet.Certname]Card{}}
}

// Issue implements EnrolmentStore.
func (f *FakeEnrolments) Issue(t *testing.T, c Card) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.Server && !c.Former {
		f.cards[c.Certname] = c
	}
}

// Enrolled implements inventory.EnrolmentStore.
func (f *FakeEnrolments) Enrolled(ctx context.Context, after, until string, limit int, now time.Time) ([]inventory.Enrolment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []inventory.Enrolment{}
	for _, name := range slices.Sorted(maps.Keys(f.cards)) {
		c := f.cards[name]
		_, err := f.Node(ctx, name)
		if string(name) > after && (until == "" || string(name) <= until) && !c.Revoked && c.Ends.After(now) && fault.Of(err) == fault.NotFound && len(list) < limit {
			list = append(list, inventory.Enrolment{Certname: name, At: c.At})
		}
	}
	return list, nil
}

// Enrolment implements inventory.EnrolmentStore.
func (f *FakeEnrolments) Enrolment(ctx context.Context, name fleet.Certname, now time.Time) (inventory.Enrolment, error) {
	list, err := f.Enrolled(ctx, "", "", len(f.cards), now)
	for _, e := range list {
		if e.Certname == name {
			return e, nil
		}
	}
	if err == nil {
		err = fault.New(fault.NotFound, "%s has not joined", name)
	}
	return inventory.Enrolment{}, err
}

// PurgeNode implements inventory.NodeStore.
func (f *FakeEnrolments) PurgeNode(ctx context.Context, name fleet.Certname) error {
	err := f.Fake.PurgeNode(ctx, name)
	if f.unlist(name) && fault.Of(err) == fault.NotFound {
		return nil
	}
	return err
}

// PurgeLeftNodes implements inventory.NodeStore.
func (f *FakeEnrolments) PurgeLeftNodes(ctx context.Context, before time.Time, limit int) ([]fleet.Certname, error) {
	names, err := f.Fake.PurgeLeftNodes(ctx, before, limit)
	for _, name := range names {
		f.unlist(name)
	}
	return names, err
}

func (f *FakeEnrolments) unlist(name fleet.Certname) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, there := f.cards[name]
	delete(f.cards, name)
	return there && !c.Revoked
}

package factqueuetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Backend is a store, and the inventory that its sets go to.
type Backend struct {
	Store     factqueue.Store
	Inventory factqueue.Inventory
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// set is one of a node; its number also tells when it was accepted.
func set(node fleet.Certname, number int, values string) factqueue.Set {
	return factqueue.Set{
		Node: node, Environment: "production", Number: int64(number), Timestamp: start, AcceptedAt: start.Add(time.Duration(number) * time.Minute),
		Values: json.RawMessage(values), Digest: fleet.DigestOf([]byte(values)),
	}
}

// RunStore checks a store and an inventory. open returns empty ones.
func RunStore(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	for name, check := range map[string]func(t *testing.T, b Backend){
		"a set is queued whole":             queuedWhole,
		"a newer set replaces an older one": superseded,
		"the oldest is due first":           dueFirst,
		"late sets are refused":             refused,
		"facts of a run go before":          overtakenByRun,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (b Backend) enqueue(t *testing.T, s factqueue.Set) factqueue.Load {
	t.Helper()
	grown, err := b.Store.EnqueueFacts(t.Context(), s)
	ok(t, err)
	return grown
}

func (b Backend) load(t *testing.T) factqueue.Load {
	t.Helper()
	load, err := b.Store.QueuedLoad(t.Context())
	ok(t, err)
	return load
}

func queuedWhole(t *testing.T, b Backend) {
	t.Helper()
	same(t, "load", factqueue.Load{}, b.load(t))
	s := set("a.example", 1, `{"a":"ä","b":[1,{}]}`)
	grown := b.enqueue(t, s)
	if grown.Sets != 1 || grown.Bytes <= 0 {
		t.Errorf("the queue grew by %+v", grown)
	}
	got, err := b.Store.QueuedFacts(t.Context(), "a.example")
	ok(t, err)
	same(t, "queued", s, got)
	load := b.load(t)
	same(t, "load", factqueue.Load{Sets: 1, Bytes: grown.Bytes, Oldest: s.AcceptedAt}, load)
	gone, err := b.Store.DequeueFacts(t.Context(), []factqueue.Set{s, set("b.example", 1, "{}")})
	ok(t, err)
	same(t, "gone", grown, gone)
	if _, err := b.Store.QueuedFacts(t.Context(), "a.example"); fault.Of(err) != fault.NotFound {
		t.Errorf("of an empty queue: %v", err)
	}
	same(t, "load", factqueue.Load{}, b.load(t))
}

func superseded(t *testing.T, b Backend) {
	t.Helper()
	one, two := set("a.example", 1, `{"a":1}`), set("a.example", 2, `{"a":2,"more":"than before, which was less"}`)
	grown := b.enqueue(t, one)
	more := b.enqueue(t, two)
	same(t, "sets", int64(0), more.Sets)
	same(t, "bytes", b.load(t).Bytes, grown.Bytes+more.Bytes)
	gone, err := b.Store.DequeueFacts(t.Context(), []factqueue.Set{one}) // it was being applied
	ok(t, err)
	same(t, "gone", factqueue.Load{}, gone)
	due, err := b.Store.DueFacts(t.Context(), 10)
	ok(t, err)
	same(t, "due", []factqueue.Set{two}, due)
}

func dueFirst(t *testing.T, b Backend) {
	t.Helper()
	for i, n := range []int{3, 1, 4, 2} {
		b.enqueue(t, set(fleet.Certname(fmt.Sprintf("n%d.example", i)), n, "{}"))
	}
	due, err := b.Store.DueFacts(t.Context(), 3)
	ok(t, err)
	var nodes []fleet.Certname
	for _, s := range due {
		nodes = append(nodes, s.Node)
	}
	same(t, "due", []fleet.Certname{"n1.example", "n3.example", "n0.example"}, nodes)
	same(t, "load", int64(4), b.load(t).Sets)
}

func refused(t *testing.T, b Backend) {
	t.Helper()
	_, err := b.Inventory.SaveFacts(t.Context(), set("a.example", 5, `{"a":5}`))
	ok(t, err)
	if _, err := b.Store.EnqueueFacts(t.Context(), set("a.example", 4, `{"a":4}`)); fault.Of(err) != fault.Conflict {
		t.Errorf("a set that is older than the stored one: %v", err)
	}
	same(t, "the same again", factqueue.Load{}, b.enqueue(t, set("a.example", 5, `{"a":5}`)))
	b.enqueue(t, set("a.example", 7, `{"a":7}`))
	if _, err := b.Store.EnqueueFacts(t.Context(), set("a.example", 6, `{"a":6}`)); fault.Of(err) != fault.Conflict {
		t.Errorf("a set that is older than the queued one: %v", err)
	}
	same(t, "the same again", factqueue.Load{}, b.enqueue(t, set("a.example", 7, `{"a":7}`)))
	stored, err := b.Inventory.SaveFacts(t.Context(), set("a.example", 3, `{"a":3}`))
	ok(t, err)
	same(t, "stored", [2]int64{5, 1}, [2]int64{stored.Number, stored.Seq})
}

// overtakenByRun: facts that come with a run are newer than what was queued before, but a
// set that is queued after them counts, whatever the clocks say.
func overtakenByRun(t *testing.T, b Backend) {
	t.Helper()
	queued := set("a.example", 1, `{"a":1}`)
	b.enqueue(t, queued)
	run := set("a.example", 0, `{"a":"run"}`)
	run.AcceptedAt = start.Add(time.Hour)
	_, err := b.Inventory.SaveFacts(t.Context(), run)
	ok(t, err)
	stored, err := b.Inventory.SaveFacts(t.Context(), queued)
	ok(t, err)
	same(t, "digest", run.Digest, stored.Digest)
	same(t, "number of what came too late", int64(1), stored.Number)
	again := queued
	again.AcceptedAt = run.AcceptedAt.Add(time.Second) // it is sent once more: its answer was lost
	stored, err = b.Inventory.SaveFacts(t.Context(), again)
	ok(t, err)
	same(t, "digest after the same came again", run.Digest, stored.Digest)
	next := set("a.example", 2, `{"a":2,"b":1}`)
	next.Arrangement = "1,0"
	b.enqueue(t, next)
	due, err := b.Store.DueFacts(t.Context(), 1)
	ok(t, err)
	same(t, "arrangement of what was queued", "1,0", due[0].Arrangement)
	if len(due) != 1 || !due[0].AcceptedAt.After(run.AcceptedAt) {
		t.Fatalf("due: %+v, want later than %s", due, run.AcceptedAt)
	}
	stored, err = b.Inventory.SaveFacts(t.Context(), due[0])
	ok(t, err)
	same(t, "digest", next.Digest, stored.Digest)
	facts, err := b.Inventory.Facts(t.Context(), "a.example")
	ok(t, err)
	same(t, "values", string(next.Values), string(facts.Values))
	same(t, "number", int64(2), facts.Number)
}

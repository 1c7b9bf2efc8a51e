package near_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/eventtest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/inventorytest"
	"github.com/tutti-project/tutti/internal/store/local"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// plainly seals nothing.
type plainly struct{}

func (plainly) Seal(b []byte) ([]byte, error) { return b, nil }
func (plainly) Open(b []byte) ([]byte, error) { return b, nil }

// far are records behind a link that breaks.
type far struct {
	cut     atomic.Bool
	odd     atomic.Int32 // how many more events fail for a reason that nobody knows
	halfway atomic.Bool  // what is stored is not acknowledged: the link breaks in between
	inventorytest.Store
	events *eventtest.Store
}

func (f *far) ask(context.Context) error {
	if f.cut.Load() || f.halfway.Load() {
		return errGone
	}
	return nil
}

var errGone = fault.New(fault.Unavailable, "the database cannot be reached")

func (f *far) through(act func() error) error {
	if f.cut.Load() {
		return errGone
	}
	err := act()
	if f.halfway.Load() {
		return errGone
	}
	return err
}

func (f *far) SaveReport(ctx context.Context, r inventory.Report) error {
	return f.through(func() error { return f.Store.SaveReport(ctx, r) })
}

func (f *far) SaveFacts(ctx context.Context, set inventory.FactSet) (stored inventory.FactSet, changed []string, err error) {
	err = f.through(func() error {
		stored, changed, err = f.Store.SaveFacts(ctx, set)
		return err
	})
	return stored, changed, err
}

// distant are the events of the same records.
type distant struct {
	event.Store
	far *far
}

func (d distant) TakeEvents(ctx context.Context, batches []event.Batch, now time.Time) (taken []event.Taken, err error) {
	err = d.far.through(func() error {
		if d.far.odd.Load() > 0 && d.far.odd.Add(-1) == 0 {
			return errors.New("odd")
		}
		taken, err = d.Store.TakeEvents(ctx, batches, now)
		return err
	})
	return taken, err
}

// shaky is a queue whose server is killed now and then before it has noted what was delivered.
type shaky struct {
	near.Queue
	forgets func() bool
}

func (s shaky) Remove(numbers []uint64) error {
	if s.forgets() {
		return fault.New(fault.Unavailable, "killed before it was noted")
	}
	return s.Queue.Remove(numbers)
}

// world is a near server, the records, and what its nodes were told.
type world struct {
	t       *testing.T
	rand    *rand.Rand
	dir     string
	far     *far
	disk    *local.Store
	link    *near.Link
	courier *near.Courier
	reports near.Reports
	facts   near.RunFacts
	stream  near.Stream
	now     time.Time
	starts  int

	told struct {
		reports map[fleet.Digest]fleet.Certname
		facts   map[fleet.Certname]string
		events  map[string]int // run: the last that was acknowledged
	}
	sent map[string][]pxp.RunEvent
	node map[string]fleet.Certname
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), far: &far{Store: inventorytest.New(), events: eventtest.NewStore()},
		now: time.Date(2026, 11, 28, 23, 0, 0, 0, time.UTC), sent: map[string][]pxp.RunEvent{}, node: map[string]fleet.Certname{},
	}
	w.told.reports, w.told.facts, w.told.events = map[fleet.Digest]fleet.Certname{}, map[fleet.Certname]string{}, map[string]int{}
	w.start(filepath.Join(w.dir, "0.db"))
	return w
}

// start starts the near server on a file.
func (w *world) start(path string) {
	disk, err := local.Open(path, local.Config{MostBytes: 1 << 30, Seal: plainly{}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = disk.Close() })
	w.disk = disk
	log := slog.New(slog.DiscardHandler)
	clock := func() time.Time { return w.now }
	w.link = near.NewLink(&near.Link{Ask: w.far.ask, Log: log, Now: clock})
	queue := shaky{disk, func() bool { return w.rand.IntN(4) == 0 }}
	in := near.Intake{Link: w.link, Queue: queue, Now: clock}
	w.reports, w.facts = near.Reports{ReportStore: w.far, Intake: in}, near.RunFacts{Facts: w.far, Intake: in}
	w.stream = near.NewStream(distant{w.far.events, w.far}, in)
	w.courier = &near.Courier{Link: w.link, Queue: queue, Reports: w.far, Facts: w.far, Events: distant{w.far.events, w.far}, Now: clock, Log: log}
}

// kill ends the server without a word, and starts it on what its disk has in this moment.
func (w *world) kill() {
	w.starts++
	path := filepath.Join(w.dir, fmt.Sprint(w.starts, ".db"))
	from, err := os.Open(filepath.Join(w.dir, fmt.Sprint(w.starts-1, ".db")))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	to, err := os.Create(path)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		w.t.Fatal(err)
	}
	_ = to.Close()
	w.start(path)
}

// look has the link ask once.
func (w *world) look() {
	ending, cancel := context.WithCancel(w.t.Context())
	cancel()
	_ = w.link.Run(ending)
}

func (w *world) some() fleet.Certname { return fleet.Certname(fmt.Sprintf("n%d.test", w.rand.IntN(4))) }

func (w *world) step(n int) {
	w.now = w.now.Add(time.Second)
	ctx := w.t.Context()
	switch w.rand.IntN(12) {
	case 0:
		w.far.cut.Store(w.rand.IntN(2) == 0)
	case 1:
		w.far.halfway.Store(w.rand.IntN(2) == 0)
	case 2:
		w.kill()
	case 3:
		w.look()
		if _, cut := w.link.Cut(); !cut {
			_ = w.courier.Deliver(ctx)
		}
	case 4, 5, 6:
		node := w.some()
		r := inventory.Report{ID: fleet.DigestOf(fmt.Append(nil, n)), Certname: node, Status: "changed", ReceivedAt: w.now, StartedAt: w.now, EndedAt: w.now}
		if w.reports.SaveReport(ctx, r) == nil {
			w.told.reports[r.ID] = node
		}
	case 7, 8, 9:
		node := w.some()
		values := fmt.Sprintf(`{"n":%d}`, n)
		if _, _, err := w.facts.SaveFacts(ctx, inventory.FactSet{Certname: node, Values: json.RawMessage(values), ReceivedAt: w.now, Timestamp: w.now}); err == nil {
			w.told.facts[node] = values
		}
	default:
		w.happen(n)
	}
}

// happen has something happen in a run; its node sends all that was not acknowledged, in one or two batches.
func (w *world) happen(n int) {
	id := fmt.Sprint("run-", w.rand.IntN(6))
	if w.node[id] == "" {
		w.node[id] = w.some()
	}
	next := len(w.sent[id]) + 1
	e := eventtest.Resource(next, "success", "File", fmt.Sprint(n))
	if next == 1 {
		e = eventtest.Begin(1)
	}
	w.sent[id] = append(w.sent[id], e)
	rest := w.sent[id][w.told.events[id]:]
	batches := []event.Batch{{Node: w.node[id], Run: id, Events: rest}}
	if cut := w.rand.IntN(len(rest)); cut > 0 {
		batches = []event.Batch{{Node: w.node[id], Run: id, Events: rest[:cut]}, {Node: w.node[id], Run: id, Events: rest[cut:]}}
	}
	if w.rand.IntN(5) == 0 { // the first is lost on the way
		batches = batches[1:]
	}
	taken, err := w.stream.TakeEvents(w.t.Context(), batches, w.now)
	if err != nil {
		return
	}
	for _, t := range taken {
		w.told.events[id] = max(w.told.events[id], t.Last)
	}
}

// judge says what is wrong at the end.
func (w *world) judge() (wrong []string) {
	ctx := w.t.Context()
	w.far.cut.Store(false)
	w.far.halfway.Store(false)
	for range 100 {
		w.look()
		_ = w.courier.Deliver(ctx)
	}
	if load := w.disk.Load(); load.Pieces+load.Aside > 0 || load.Bytes != 0 {
		wrong = append(wrong, fmt.Sprintf("something stays behind: %+v", load))
	}
	for id, node := range w.told.reports {
		if r, err := w.far.Report(ctx, string(id)); err != nil || r.Certname != node {
			wrong = append(wrong, fmt.Sprintf("a report of %s: %v", node, err))
		}
	}
	for node, values := range w.told.facts {
		if f, err := w.far.Facts(ctx, node); err != nil || string(f.Values) < values {
			wrong = append(wrong, fmt.Sprintf("facts of %s are %s, and %s was acknowledged: %v", node, f.Values, values, err))
		}
	}
	for id, last := range w.told.events {
		stored, err := w.far.events.Events(ctx, event.Filter{Run: id, Node: w.node[id], Limit: 100_000})
		var numbers []int
		for _, e := range stored {
			numbers = append(numbers, e.N)
		}
		if err != nil || len(numbers) < last || !slices.IsSorted(numbers) || len(slices.Compact(numbers)) != len(stored) || last > 0 && numbers[0] != 1 {
			wrong = append(wrong, fmt.Sprintf("events of %s, acknowledged up to %d, are %v: %v", id, last, numbers, err))
		}
	}
	return wrong
}

// What was acknowledged is in the records once, whatever breaks, and facts are the newest ones.
func TestNothingAcknowledgedIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			for n := range 300 {
				w.step(1000 + n)
			}
			if len(w.told.reports) < 10 {
				t.Fatalf("only %d reports were taken: this test sees nothing", len(w.told.reports))
			}
			for _, wrong := range w.judge() {
				t.Error(wrong)
			}
		})
	}
}

// A report stays what it was, byte for byte, on its way through the queue.
func TestReportsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.far.cut.Store(true)
	r := inventory.Report{
		ID: fleet.DigestOf([]byte("a")), Certname: "a.test", ReceivedAt: w.now, Metrics: json.RawMessage(`{"a": {"b<": 1.50}}`),
		Logs: []inventory.RunLog{{Level: "err", Message: "<x>", Time: w.now}},
		Resources: []inventory.ResourceStatus{
			{Type: "File", Title: "/x", Time: w.now, Events: []inventory.Event{
				{Status: "success", Previous: json.RawMessage(`"<"`), Desired: json.RawMessage(` 1`), Time: w.now},
			}},
		},
	}
	if err := w.reports.SaveReport(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if wrong := w.judge(); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	got, err := w.far.Report(t.Context(), string(r.ID))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(inventory.AppendDocument(nil, &r)), string(inventory.AppendDocument(nil, &got))); diff != "" {
		t.Errorf("the report (-sent +stored):\n%s", diff)
	}
}

// A report that comes late does not become its node's latest one.
func TestLateReportsAreNotTheLatest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.far.cut.Store(true)
	late := inventory.Report{ID: fleet.DigestOf([]byte("late")), Certname: "a.test", Status: "failed", ReceivedAt: w.now}
	if err := w.reports.SaveReport(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	newer := inventory.Report{ID: fleet.DigestOf([]byte("newer")), Certname: "a.test", Status: "unchanged", ReceivedAt: w.now.Add(time.Minute)}
	if err := w.far.Store.SaveReport(t.Context(), newer); err != nil { // through another server
		t.Fatal(err)
	}
	if wrong := w.judge(); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if n, err := w.far.Node(t.Context(), "a.test"); err != nil || n.LatestReport != newer.ID {
		t.Errorf("the latest report of %+v is not the newer one: %v", n, err)
	}
}

// What a node sent after something that is not stored yet waits for it.
func TestPiecesOfANodeKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.far.cut.Store(true)
	for n := range 205 { // more than are read at once
		e := eventtest.Begin(1)
		if n > 0 {
			e = eventtest.Resource(n+1, "success", "File", fmt.Sprint(n))
		}
		if _, err := w.stream.TakeEvents(t.Context(), []event.Batch{{Node: "a.test", Run: "r", Events: []pxp.RunEvent{e}}}, w.now); err != nil {
			t.Fatal(err)
		}
		w.told.events["r"], w.node["r"] = n+1, "a.test"
	}
	w.far.odd.Store(1)
	for _, wrong := range w.judge() {
		t.Error(wrong)
	}
	if w.far.odd.Load() != 0 {
		t.Error("nothing was odd: this test sees nothing")
	}
}

// What the records refuse for good does not hold up the rest, and is not thrown away.
func TestWhatIsRefusedIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.far.cut.Store(true)
	if err := w.disk.Add(near.Piece{Kind: "riddle", Node: "a.test", At: w.now}); err != nil {
		t.Fatal(err)
	}
	r := inventory.Report{ID: fleet.DigestOf([]byte("a")), Certname: "a.test", ReceivedAt: w.now}
	if err := w.reports.SaveReport(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	wrong := w.judge()
	if load := w.disk.Load(); load.Aside != 1 || load.Pieces != 0 || len(wrong) != 1 {
		t.Errorf("queued is %+v; %v", load, wrong)
	}
	aside, err := w.disk.Refused(0, 10)
	if err != nil || len(aside) != 1 || aside[0].Kind != "riddle" || !strings.Contains(aside[0].Why, "a newer one queued it") {
		t.Errorf("set aside: %+v, %v", aside, err)
	}
	if _, err := w.far.Report(t.Context(), string(r.ID)); err != nil {
		t.Error(err)
	}
}

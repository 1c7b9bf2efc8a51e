package compiletest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// testRandomWalk does many acts in a random order and looks after each whether
// the rows still make sense. The seed is printed when they do not.
func testRandomWalk(b bench) {
	seed := uint64(time.Now().UnixNano())
	w := walker{bench: b, rnd: rand.New(rand.NewPCG(seed, 0)), ids: map[int64]bool{}, now: t0} //nolint:gosec // not for secrets
	for i := range 200 {
		w.step()
		if w.check(); b.t.Failed() {
			b.t.Fatalf("after step %d of seed %d", i, seed)
		}
	}
}

// walker remembers every row that it was ever shown.
type walker struct {
	bench
	rnd  *rand.Rand
	now  time.Time
	ids  map[int64]bool
	held []compile.Compilation
}

func (w *walker) step() {
	w.now = w.now.Add(time.Duration(w.rnd.IntN(20)) * time.Second)
	switch w.rnd.IntN(10) {
	case 0, 1, 2, 3:
		w.wantOne()
	case 4, 5:
		w.leaseSome()
	case 6, 7, 8:
		w.finishOne()
	default:
		w.giveBack([]string{"", worker1, worker2}[w.rnd.IntN(3)], w.now)
	}
}

func (w *walker) wantOne() {
	node := fleet.Certname(fmt.Sprintf("n%d", w.rnd.IntN(3)))
	want := ask(node)
	want.At = w.now
	want.FactsSeq = int64(w.rnd.IntN(4))
	want.Transaction = []string{"", "t1", "t2"}[w.rnd.IntN(3)]
	c := w.want(want)
	w.ids[c.ID] = true
	if c.Node != node || c.FactsSeq < want.FactsSeq {
		w.t.Errorf("a want of %s with facts %d was answered by %+v", node, want.FactsSeq, c)
	}
	w.SetFacts(node, max(c.FactsSeq, want.FactsSeq))
}

func (w *walker) leaseSome() {
	worker := []string{worker1, worker2}[w.rnd.IntN(2)]
	cs, err := w.Queue.Lease(w.t.Context(), compile.Offer{Worker: worker, Rows: 1 + w.rnd.IntN(3), Worst: all, Now: w.now, Until: w.now.Add(30 * time.Second)})
	if err != nil {
		w.t.Errorf("Lease: %v", err)
	}
	w.held = append(w.held, cs...)
}

// finishOne finishes a lease that this walker was given once; it may be lost.
func (w *walker) finishOne() {
	if len(w.held) == 0 {
		return
	}
	i := w.rnd.IntN(len(w.held))
	c := w.held[i]
	w.held = append(w.held[:i], w.held[i+1:]...)
	before, gone := w.Queue.Compilation(w.t.Context(), c.ID)
	holds := gone == nil && before.State == compile.Leased && before.LeasedBy == c.LeasedBy && before.Attempts == c.Attempts
	err := w.Queue.Finish(w.t.Context(), asDone(c, "any", w.now))
	if holds && err != nil || !holds && fault.Of(err) != fault.Conflict {
		w.t.Errorf("Finish of %+v (holds %t): %v", c, holds, err)
	}
}

// check reads every row known and compares them with what must always hold.
func (w *walker) check() {
	type key struct {
		node fleet.Certname
		env  fleet.Environment
		v    fleet.Digest
	}
	wanted, leased, keys := 0, 0, map[key]bool{}
	for id := range w.ids {
		c, err := w.Queue.Compilation(w.t.Context(), id)
		if fault.Is(err, fault.NotFound) {
			delete(w.ids, id)
			continue
		}
		switch c.State {
		case compile.Wanted:
			wanted++
			if k := (key{c.Node, c.Environment, c.Version}); keys[k] {
				w.t.Errorf("%+v is wanted twice", k)
			} else {
				keys[k] = true
			}
		case compile.Leased:
			leased++
			if c.LeasedBy == "" || c.Attempts == 0 || c.Attempts > tries {
				w.t.Errorf("a leased row is %+v", c)
			}
		case compile.Done, compile.Failed:
			if c.FinishedAt.IsZero() || (c.State == compile.Failed) != (c.Err != nil) {
				w.t.Errorf("a finished row is %+v", c)
			}
		default:
			w.t.Errorf("row %d has state %q", id, c.State)
		}
	}
	gotWanted, gotLeased, _, err := w.Queue.Depth(w.t.Context(), w.now)
	if err != nil || gotWanted != wanted || gotLeased != leased {
		w.t.Errorf("Depth: %d wanted, %d leased, %v; counted %d and %d", gotWanted, gotLeased, err, wanted, leased)
	}
}

package compiletest

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// testSameAsModel does the same random acts on the queue under test and on the fake,
// and compares what they answer and all their rows. The seed is printed when they
// differ.
func testSameAsModel(b bench) {
	seed := uint64(time.Now().UnixNano())
	w := &twins{bench: b, model: NewQueue(), rnd: rand.New(rand.NewPCG(seed, 0)), now: t0} //nolint:gosec // not for secrets
	for i := range 250 {
		act := w.step()
		if w.compare(act); b.t.Failed() {
			b.t.Fatalf("after step %d (%s) of seed %d", i, act, seed)
		}
	}
}

// twins are two queues that live the same life.
type twins struct {
	bench
	model *Queue
	rnd   *rand.Rand
	now   time.Time
	held  []compile.Compilation
}

// whole is a queue with all that its implementations also are.
//
// Wide: the walk does acts of each of these ports on the same rows.
type whole interface {
	compile.Queue
	compile.Pauses
	compile.Board
	compile.Turns
}

// each does an act on both; what it gives must be the same.
func (w *twins) each(act func(q whole) (any, error)) {
	w.t.Helper()
	tested, ok := w.Queue.(whole)
	if !ok {
		w.t.Fatal("the queue is not whole")
	}
	got, gotErr := act(tested)
	want, wantErr := act(w.model)
	if fault.Of(gotErr) != fault.Of(wantErr) || (gotErr == nil) != (wantErr == nil) ||
		errors.Is(gotErr, compile.ErrUnstaged) != errors.Is(wantErr, compile.ErrUnstaged) {
		w.t.Errorf("error %v, the model's is %v", gotErr, wantErr)
	}
	if diff := cmp.Diff(want, got, rowOptions); diff != "" && wantErr == nil {
		w.t.Errorf("answers (-model +got):\n%s", diff)
	}
}

func (w *twins) environment() fleet.Environment {
	return []fleet.Environment{"one", "three", "two"}[w.rnd.IntN(3)]
}

// some is no environment, mostly, or one.
func (w *twins) some() []fleet.Environment {
	if w.rnd.IntN(3) > 0 {
		return nil
	}
	return []fleet.Environment{w.environment()}
}

func (w *twins) worker() string { return []string{worker1, worker2}[w.rnd.IntN(2)] }

func (w *twins) step() string {
	ctx := w.t.Context()
	w.now = w.now.Add(time.Duration(w.rnd.IntN(20)) * time.Second)
	switch n := w.rnd.IntN(20); {
	case n < 8:
		want := w.want()
		w.each(func(q whole) (any, error) { return q.Want(ctx, want) })
		return fmt.Sprintf("want %+v", want)
	case n < 12:
		worker, count, worst := w.worker(), w.rnd.IntN(4), []compile.Priority{compile.Waited, compile.NewCode, all}[w.rnd.IntN(3)]
		most, strict, last := w.rnd.IntN(3), w.some(), w.some()
		w.each(func(q whole) (any, error) {
			rows, err := q.Lease(ctx, compile.Offer{
				Worker: worker, Rows: count, Worst: worst, Most: most, Strict: strict, Last: last, Now: w.now, Until: w.now.Add(30 * time.Second),
			})
			if q == whole(w.model) {
				w.held = append(w.held, rows...)
			}
			return rows, err
		})
		return fmt.Sprintf("%s leases %d", worker, count)
	case n < 17:
		return w.end(ctx)
	case n < 18:
		worker := []string{"", worker1, worker2}[w.rnd.IntN(3)]
		w.each(func(q whole) (any, error) { return q.ReturnLeases(ctx, worker, w.now, tries) })
		return "leases return"
	default:
		return w.pauseOrResume(ctx)
	}
}

func (w *twins) want() compile.Want {
	return compile.Want{
		Node: fleet.Certname(fmt.Sprintf("n%d", w.rnd.IntN(3))), Environment: w.environment(),
		Version: []fleet.Digest{v1, v1, v1, v2}[w.rnd.IntN(4)], FactsSeq: int64(w.rnd.IntN(3)),
		Transaction: []string{"", "t1", "t2"}[w.rnd.IntN(3)], Priority: []compile.Priority{compile.Waited, compile.NewCode, all}[w.rnd.IntN(3)],
		At: w.now, Staged: w.rnd.IntN(3) == 0,
	}
}

// end ends a lease that was given once; it may be lost.
func (w *twins) end(ctx context.Context) string {
	if len(w.held) == 0 {
		return "nothing to end"
	}
	i := w.rnd.IntN(len(w.held))
	c := w.held[i]
	w.held = append(w.held[:i], w.held[i+1:]...)
	switch w.rnd.IntN(4) {
	case 0:
		w.each(func(q whole) (any, error) { return nil, q.Rest(ctx, c, w.now.Add(5*time.Second), "no room") })
		return fmt.Sprintf("rest %+v", c)
	case 1:
		c.State, c.FinishedAt, c.Err = compile.Failed, w.now, compile.Exhausted(1)
	case 2:
		c.State, c.FinishedAt, c.Err = compile.Failed, w.now, &compile.Error{Cause: compile.CauseTimeout, Message: "too long"}
	default:
		c = asDone(c, "any", w.now)
	}
	w.each(func(q whole) (any, error) { return nil, q.Finish(ctx, c) })
	return fmt.Sprintf("finish %+v", c)
}

func (w *twins) pauseOrResume(ctx context.Context) string {
	env := []fleet.Environment{"", "one", "two"}[w.rnd.IntN(3)]
	if w.rnd.IntN(3) == 0 {
		w.each(func(q whole) (any, error) {
			return nil, q.Pause(ctx, compile.Pause{Environment: env, By: "alice", At: w.now})
		})
		return "pause"
	}
	w.each(func(q whole) (any, error) { return nil, q.Resume(ctx, env) })
	return "resume"
}

// compare looks at everything that can be seen.
func (w *twins) compare(act string) {
	ctx := w.t.Context()
	w.each(func(q whole) (any, error) {
		rows, err := q.List(ctx, compile.Filter{Limit: 1000})
		for i := range rows {
			if rows[i].State != compile.Leased {
				rows[i].LeasedBy, rows[i].LeasedUntil = "", time.Time{}
			}
			if rows[i].State == compile.Wanted && rows[i].Node == "" {
				w.t.Errorf("after %s row %d is of no node", act, rows[i].ID)
			}
		}
		return rows, err
	})
	w.each(func(q whole) (any, error) { return q.Counts(ctx) })
	w.each(func(q whole) (any, error) { return q.Ended(ctx, w.now.Add(-time.Minute)) })
	w.each(func(q whole) (any, error) { return q.Pauses(ctx) })
	w.each(func(q whole) (any, error) { return q.Slowdowns(ctx) })
	w.each(func(q whole) (any, error) {
		lanes, err := q.Lanes(ctx, compile.Offer{Worker: worker1, Worst: all, Now: w.now})
		slices.SortFunc(lanes, func(a, b compile.Lane) int {
			return stdcmp.Or(stdcmp.Compare(a.Priority, b.Priority), stdcmp.Compare(a.Environment, b.Environment))
		})
		for i := range lanes {
			lanes[i].Turn = 0
		}
		return lanes, err
	})
	w.each(func(q whole) (any, error) {
		wanted, leased, oldest, err := q.Depth(ctx, w.now)
		return []any{wanted, leased, oldest}, err
	})
}

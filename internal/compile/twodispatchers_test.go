package compile_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// TestTwoDispatchersShareAQueue has two servers compile from one queue while facts and versions change, leases are lost, and one server
// or the other cannot reach the queue for a while. No row is leased to both, nothing that was wanted is lost, and each node's newest
// catalog is of the version and the facts that were wanted last.
func TestTwoDispatchersShareAQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		plan := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sharedAct {
			return sharedAct{
				what:  rapid.SampledFrom([]string{"want", "deploy", "deploy", "deploy", "facts", "facts", "stage", "cut", "steal", "restart", "busy"}).Draw(t, "what"),
				node:  fleet.Certname(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")),
				which: rapid.IntRange(0, 2).Draw(t, "which"),
				quiet: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 0, 700, 3000, 20000, 70000}).Draw(t, "quiet")) * time.Millisecond,
			}
		}), 1, 30).Draw(rt, "acts")
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"at once", "quick", "slow", "slow", "hangs", "wrong", "broken"}), 1, 6).Draw(rt, "scripts")
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			s := newShared(t)
			s.compiler.Play(inTurn(names))
			wrong = s.live(t.Context(), plan)
		})
		if len(wrong) > 0 {
			rt.Fatalf("%q", wrong)
		}
	})
}

// A version comes back while its compilation and that of the one in between run: what is wanted last is the newest in the end.
func TestAVersionComesBackWhileItCompiles(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"they run": 9 * time.Second, "they wait": 40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newShared(t)
				s.compiler.Play(compiletest.Takes(takes))
				plan := []sharedAct{{"want", "b", 0, 0}, {"want", "a", 0, 0}, {"deploy", "a", 1, time.Second}, {"deploy", "a", 0, 0}}
				if wrong := s.live(t.Context(), plan); len(wrong) > 0 {
					t.Errorf("%q", wrong)
				}
			})
		})
	}
}

type sharedAct struct {
	what  string
	node  fleet.Certname
	which int
	quiet time.Duration
}

// shared is a queue that two dispatchers share.
type shared struct {
	*history
	watch       watch
	lenses      [2]*lens
	dispatchers [2]*compile.Dispatcher
	stops       [2]func()
}

func newShared(t *testing.T) *shared {
	t.Helper()
	s := &shared{history: &history{world: newWorld(t)}}
	s.watch = watch{queue: s.queue, wrong: s.wrong, held: map[int64]string{}, ended: map[int64]bool{}, last: map[fleet.Certname]compile.Want{}}
	for i, name := range []string{"one", "two"} {
		s.lenses[i] = &lens{Queue: s.queue, watch: &s.watch, name: name}
		config := compile.DefaultDispatcher(name, 2)
		config.Timeout = 30 * time.Second
		var err error
		s.dispatchers[i], err = compile.NewDispatcher(compile.DispatcherParts{
			Queue: s.lenses[i], Compiler: s.compiler, Orders: compile.Orders{Inputs: s.facts}, Documents: s.docs, Results: s.results, Gate: s.gate,
		}, config)
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *shared) live(ctx context.Context, plan []sharedAct) []string {
	for i := range s.dispatchers {
		s.run(ctx, i)
	}
	version := version1
	for n, a := range plan {
		switch i := a.which % 2; a.what {
		case "facts":
			s.facts.Set(a.node, fmt.Sprintf(`{"n":%d}`, n))
		case "deploy":
			version = []fleet.Digest{version1, fleet.DigestOf([]byte("another"))}[i]
		case "cut":
			s.lenses[i].away.Store(!s.lenses[i].away.Load())
		case "steal":
			_, _ = s.watch.ReturnLeases(ctx, "", time.Now().Add(time.Minute), 12)
		case "restart":
			s.stops[i]()
			s.run(ctx, i)
		case "busy":
			s.results.Fail(fault.New(fault.Unavailable, "the store is busy"))
			<-time.After(1500 * time.Millisecond)
			s.results.Fail(nil)
		}
		if slices.Contains([]string{"want", "stage", "facts", "deploy"}, a.what) {
			_, _ = s.watch.Want(ctx, compile.Want{
				Node: a.node, Environment: production, Version: version, FactsSeq: s.ask(a.node, "").FactsSeq, At: time.Now(), Staged: a.what == "stage",
				Priority: []compile.Priority{compile.Waited, compile.NewCode, compile.Background}[a.which],
			})
			s.dispatchers[a.which%2].Wake()
		}
		<-time.After(a.quiet)
		s.check()
	}
	for _, l := range s.lenses {
		l.away.Store(false)
	}
	until(s, s.allEnded)
	s.check()
	for i := range s.stops {
		s.stops[i]()
	}
	s.judgeLast()
	return s.bad
}

func (s *shared) run(ctx context.Context, i int) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.dispatchers[i].Run(ctx)
	}()
	s.stops[i] = func() {
		cancel()
		<-ended
	}
}

// judgeLast holds each node's newest catalog against what was wanted last, unless that failed.
func (s *shared) judgeLast() {
	for node, w := range s.watch.last {
		failed := slices.ContainsFunc(s.queue.All(), func(c compile.Compilation) bool {
			return c.Node == node && c.Version == w.Version && c.State == compile.Failed && c.FactsSeq >= w.FactsSeq
		})
		newest, ok := s.results.Newest(node)
		if !failed && (!ok || newest.Version != w.Version || newest.FactsSeq < w.FactsSeq) {
			s.wrong("%s has the catalog of %+v, and %+v was wanted last", node, newest, w)
		}
	}
}

// watch sees what is done with a queue, one thing after the other.
type watch struct {
	mu    sync.Mutex
	queue *compiletest.Queue
	wrong func(format string, args ...any)
	held  map[int64]string // which dispatcher has a row
	ended map[int64]bool
	last  map[fleet.Certname]compile.Want // that was plain
}

// Want wants something, as the only one.
func (w *watch) Want(ctx context.Context, want compile.Want) (compile.Compilation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.queue.Want(ctx, want)
	if err == nil && !want.Staged {
		w.last[want.Node] = want
	}
	return c, err
}

// ReturnLeases returns leases, and forgets who held them.
func (w *watch) ReturnLeases(ctx context.Context, worker string, now time.Time, most int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.queue.ReturnLeases(ctx, worker, now, most)
	clear(w.held)
	for _, c := range w.queue.All() {
		if c.State == compile.Leased {
			w.held[c.ID] = c.LeasedBy
		}
	}
	return n, err
}

// lens is the queue as one dispatcher sees it.
type lens struct {
	*compiletest.Queue
	watch *watch
	name  string
	away  atomic.Bool // it cannot reach the queue
}

// reach is the error of a queue that is out of reach.
func (l *lens) reach() error {
	if l.away.Load() {
		return fault.New(fault.Unavailable, "the store is away")
	}
	return nil
}

// Lease implements compile.Queue.
func (l *lens) Lease(ctx context.Context, o compile.Offer) ([]compile.Compilation, error) {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	if err := l.reach(); err != nil {
		return nil, err
	}
	rows, err := l.Queue.Lease(ctx, o)
	for _, c := range rows {
		if holder := l.watch.held[c.ID]; holder != "" {
			l.watch.wrong("row %d is leased to %s, which %s has", c.ID, l.name, holder)
		}
		l.watch.held[c.ID] = l.name
	}
	return rows, err
}

// Renew implements compile.Queue.
func (l *lens) Renew(ctx context.Context, worker string, ids []int64, until time.Time) ([]int64, error) {
	if err := l.reach(); err != nil {
		return nil, err
	}
	return l.Queue.Renew(ctx, worker, ids, until)
}

// Rest implements compile.Queue.
func (l *lens) Rest(ctx context.Context, c compile.Compilation, until time.Time, trouble string) error {
	if err := l.reach(); err != nil {
		return err
	}
	return l.Queue.Rest(ctx, c, until, trouble)
}

// Finish implements compile.Queue.
func (l *lens) Finish(ctx context.Context, c compile.Compilation) error {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	if err := l.reach(); err != nil {
		return err
	}
	err := l.Queue.Finish(ctx, c)
	if err != nil {
		return err
	}
	if l.watch.ended[c.ID] || l.watch.held[c.ID] != l.name {
		l.watch.wrong("row %d was finished by %s, had %q, ended before: %t", c.ID, l.name, l.watch.held[c.ID], l.watch.ended[c.ID])
	}
	l.watch.ended[c.ID] = true
	delete(l.watch.held, c.ID)
	return nil
}

// ReturnLeases implements compile.Queue.
func (l *lens) ReturnLeases(ctx context.Context, worker string, now time.Time, most int) (int, error) {
	if err := l.reach(); err != nil {
		return 0, err
	}
	return l.watch.ReturnLeases(ctx, worker, now, most)
}

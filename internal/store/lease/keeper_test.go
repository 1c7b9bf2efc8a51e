package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/lease/leasetest"
)

// takeover is what is promised: another server goes on so soon after the death of one.
const takeover = 15 * time.Second

// away is the way of one server to the records, which can be cut.
type away struct {
	lease.Store
	cut atomic.Bool
}

var errAway = errors.New("the records are away")

func (a *away) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (lease.Grant, bool, error) {
	if a.cut.Load() {
		return lease.Grant{}, false, errAway
	}
	return a.Store.AcquireLease(ctx, name, holder, ttl)
}

// RenewLeases gives no answer while the way is cut, as a network that loses everything.
func (a *away) RenewLeases(ctx context.Context, grants []lease.Grant, ttl time.Duration) ([]lease.Grant, error) {
	if a.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return a.Store.RenewLeases(ctx, grants, ttl)
}

func (a *away) ReleaseLease(ctx context.Context, g lease.Grant) error {
	if a.cut.Load() {
		return errAway
	}
	return a.Store.ReleaseLease(ctx, g)
}

// server is a keeper with its way to the records.
type server struct {
	*lease.Keeper
	name string
	way  *away
	stop context.CancelFunc
	done chan error
}

// begin starts a server that does work under a lease.
func begin(t *testing.T, store lease.Store, name string, work func(context.Context) error) *server {
	t.Helper()
	s := &server{name: name, way: &away{Store: store}, done: make(chan error, 1)}
	s.Keeper = lease.NewKeeper(s.way, name, lease.Shared(), slog.New(slog.DiscardHandler))
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	renewing, end := context.WithCancel(context.WithoutCancel(ctx))
	renewed := make(chan error, 1)
	go func() { renewed <- s.Run(renewing) }()
	go func() {
		err := s.Once("jobs", work)(ctx)
		end()
		s.done <- errors.Join(err, <-renewed)
	}()
	return s
}

func (s *server) end(t *testing.T) {
	t.Helper()
	s.stop()
	if err := <-s.done; err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
}

// shift is when somebody began and ended to work.
type shift struct {
	who   string
	began bool
	at    time.Time
}

// working notes its shifts.
func working(shifts chan<- shift, who string) func(context.Context) error {
	return func(ctx context.Context) error {
		shifts <- shift{who, true, time.Now()}
		<-ctx.Done()
		shifts <- shift{who, false, time.Now()}
		return nil
	}
}

func want(t *testing.T, shifts <-chan shift, who string, began bool) time.Time {
	t.Helper()
	s := <-shifts
	if s.who != who || s.began != began {
		t.Fatalf("%+v, want %s to begin: %t", s, who, began)
	}
	return s.at
}

// A holder that is cut off stops before another one begins, and that is soon.
func TestALeaseIsTakenOverFromOneThatIsCutOff(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Second, 2999 * time.Millisecond, 31 * time.Minute} { // of a renewal, or long after
		synctest.Test(t, func(t *testing.T) {
			store, shifts := leasetest.New(), make(chan shift, 10)
			a := begin(t, store, "a", working(shifts, "a"))
			want(t, shifts, "a", true)
			b := begin(t, store, "b", working(shifts, "b"))
			<-time.After(after)
			cut := time.Now()
			a.way.cut.Store(true)
			ended, began := want(t, shifts, "a", false), want(t, shifts, "b", true)
			if began.Sub(cut) > takeover || !ended.Before(began) {
				t.Errorf("cut off after %s: a ended %s, b began %s later", after, ended.Sub(cut), began.Sub(cut))
			}
			a.way.cut.Store(false)
			b.end(t)
			want(t, shifts, "b", false)
			if again := time.Until(want(t, shifts, "a", true)); again > lease.Shared().Poll {
				t.Errorf("what b gave back a has after %s", again)
			}
			a.end(t)
		})
	}
}

// A server that waits for a lease says so, once: nothing of its own would show that its work is not done here.
func TestWhoWaitsForALeaseSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, said := leasetest.New(), new(strings.Builder)
		if _, ok, err := store.AcquireLease(t.Context(), "jobs", "gone", lease.Shared().TTL); !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		keeper := lease.NewKeeper(store, "b", lease.Shared(), slog.New(slog.NewTextHandler(said, nil)))
		began := time.Now()
		if err := keeper.Once("jobs", func(context.Context) error { return nil })(t.Context()); err != nil || time.Since(began) < lease.Shared().TTL {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if n := strings.Count(said.String(), "another server has a lease"); n != 1 || !strings.Contains(said.String(), "lease=jobs") {
			t.Errorf("it is said %d times: %s", n, said)
		}
	})
}

// A holder that is dead, or does not hear that it lost its lease, is followed as soon, and what it writes then is refused.
func TestAHolderThatDoesNotHearWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, shifts := leasetest.New(), make(chan shift, 10)
		frozen, thaw := make(chan context.Context, 1), make(chan bool)
		var wrote error
		a := begin(t, store, "a", func(ctx context.Context) error {
			if len(thaw) == 0 && wrote == nil {
				frozen <- ctx
				<-thaw
				wrote = store.Write(context.WithoutCancel(ctx), func() { t.Error("who lost the lease wrote") })
				return wrote
			}
			return nil
		})
		ctx := <-frozen
		if err := store.Write(ctx, func() {}); err != nil {
			t.Fatal(err)
		}
		died := time.Now()
		a.way.cut.Store(true)
		b := begin(t, store, "b", working(shifts, "b"))
		if began := want(t, shifts, "b", true); began.Sub(died) > takeover {
			t.Errorf("b began %s after the death of a", began.Sub(died))
		}
		thaw <- true
		synctest.Wait()
		if !fault.Is(wrote, fault.Unavailable) {
			t.Errorf("a wrote: %v", wrote)
		}
		a.way.cut.Store(false)
		b.end(t)
		a.end(t)
	})
}

// The fence tells a holder at once that it lost its lease.
func TestARefusedWriteEndsItsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, shifts := leasetest.New(), make(chan shift, 10)
		works := make(chan context.Context, 1)
		a := begin(t, store, "a", func(ctx context.Context) error {
			works <- ctx
			return working(shifts, "a")(ctx)
		})
		ctx := <-works
		want(t, shifts, "a", true)
		stolen, ok, err := store.AcquireLease(ctx, "jobs", "a", time.Hour) // a second server by the same name
		if err != nil || !ok {
			t.Fatal(err)
		}
		began := time.Now()
		if err := store.Write(ctx, func() {}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a wrote: %v", err)
		}
		if ended := want(t, shifts, "a", false); ended != began {
			t.Errorf("its work ended %s after the write", ended.Sub(began))
		}
		if err := store.ReleaseLease(t.Context(), stolen); err != nil {
			t.Fatal(err)
		}
		want(t, shifts, "a", true) // it goes on when it has it again
		a.end(t)
	})
}

func TestWhatWorkReturnsIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, broken := leasetest.New(), errors.New("broken")
		a := begin(t, store, "a", func(context.Context) error { return broken })
		if err := <-a.done; !errors.Is(err, broken) {
			t.Errorf("it returned %v", err)
		}
		all, err := store.Leases(t.Context())
		if err != nil || len(all) != 1 || !all[0].Free() {
			t.Errorf("what ended has still its lease: %+v, %v", all, err)
		}
		a.stop()
	})
}

// What waits for the records goes on when they are back.
func TestRecordsThatAreAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, shifts := leasetest.New(), make(chan shift, 10)
		store.Break(errAway)
		a := begin(t, store, "a", working(shifts, "a"))
		<-time.After(time.Minute)
		store.Break(nil)
		want(t, shifts, "a", true)
		store.Break(errAway)
		gone := time.Now()
		if ended := want(t, shifts, "a", false); ended.Sub(gone) > lease.Shared().Stop {
			t.Errorf("without records its work went on for %s", ended.Sub(gone))
		}
		store.Break(nil)
		want(t, shifts, "a", true)
		a.end(t)
	})
}

// Servers are cut off at random, alone and together: no two work at the same time, and somebody does soon when one is there.
func TestNoTwoWorkAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			store, shifts := leasetest.New(), make(chan shift, 10_000)
			var all []*server
			for i := range 3 {
				name := fmt.Sprint("server ", i)
				all = append(all, begin(t, store, name, working(shifts, name)))
			}
			for range 200 {
				all[random.IntN(len(all))].way.cut.Store(random.IntN(2) == 0)
				<-time.After(time.Duration(random.Int64N(int64(10 * time.Second))))
			}
			for _, s := range all {
				s.way.cut.Store(false)
			}
			<-time.After(2 * takeover)
			holders, err := store.Leases(t.Context())
			if err != nil || len(holders) != 1 || holders[0].Free() {
				t.Errorf("seed %d: nobody works at the end: %+v, %v", seed, holders, err)
			}
			for _, s := range all {
				s.end(t)
			}
			close(shifts)
			busy, count := "", 0
			for s := range shifts {
				if s.began && busy != "" || !s.began && busy != s.who {
					t.Fatalf("seed %d: %+v, and %q works", seed, s, busy)
				}
				if busy = ""; s.began {
					busy, count = s.who, count+1
				}
			}
			if count < 10 {
				t.Errorf("seed %d: only %d shifts: this test has lost its eyes", seed, count)
			}
		})
	}
}

// Sole leases are as safe.
func TestTimings(t *testing.T) {
	t.Parallel()
	for _, timing := range []lease.Timing{lease.Shared(), lease.Sole()} {
		if timing.Renew+timing.Poll >= timing.Stop || timing.Stop >= timing.TTL {
			t.Errorf("%+v: it stops before it renews, or after others may begin", timing)
		}
	}
	if s := lease.Shared(); s.TTL+s.Poll >= takeover {
		t.Errorf("%+v: nobody goes on within %s", s, takeover)
	}
}

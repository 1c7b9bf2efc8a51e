package leasetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// World is leases, and something that is written under them.
type World interface {
	lease.Store
	// Write is a transaction with the fence of ctx. act is called in it, once the fence was passed.
	Write(ctx context.Context, act func()) error
}

// Run holds the stores that open returns to the port's contract. open is called once a test; it returns one whose leases are all free.
func Run(t *testing.T, open func(t *testing.T) World) {
	t.Helper()
	tests := map[string]func(*testing.T, World){
		"one has it":                         oneHasIt,
		"what is over is anybody's":          overIsAnybodys,
		"no clock keeps it":                  noClockKeepsIt,
		"who starts again has it again":      startsAgain,
		"what is released is free":           releasedIsFree,
		"who was late loses":                 lateLoses,
		"who lost it writes nothing":         loserWritesNothing,
		"a late holder writes until another": lateWritesUntilAnother,
		"they are listed":                    listed,
		"many want it":                       manyWantIt,
		"never two whose writes count":       neverTwo,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// long is longer than a test takes.
const long = time.Hour

func acquire(t *testing.T, w World, name, holder string, ttl time.Duration) lease.Grant {
	t.Helper()
	g, ok, err := w.AcquireLease(t.Context(), name, holder, ttl)
	if err != nil || !ok {
		t.Fatalf("%s does not get %s: %v", holder, name, err)
	}
	if g.Name != name || g.Holder != holder || g.Token < 1 {
		t.Fatalf("%s got %+v of %s", holder, g, name)
	}
	return g
}

func refused(t *testing.T, w World, name, holder string) {
	t.Helper()
	if g, ok, err := w.AcquireLease(t.Context(), name, holder, long); err != nil || ok {
		t.Fatalf("%s got %+v, %v; somebody else has it", holder, g, err)
	}
}

// renew tells whether a grant was renewed.
func renew(t *testing.T, w World, g lease.Grant) bool {
	t.Helper()
	lost, err := w.RenewLeases(t.Context(), []lease.Grant{g}, long)
	if err != nil || len(lost) > 1 || len(lost) == 1 && lost[0] != g {
		t.Fatalf("renewed %+v: lost %+v, %v", g, lost, err)
	}
	return len(lost) == 0
}

func release(t *testing.T, w World, g lease.Grant) {
	t.Helper()
	if err := w.ReleaseLease(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

// writes tells whether a write under a grant was accepted.
func writes(t *testing.T, w World, g lease.Grant) bool {
	t.Helper()
	wrote, told := false, false
	err := w.Write(lease.With(t.Context(), g, func() { told = true }), func() { wrote = true })
	if wrote != (err == nil) || told != (err != nil) || err != nil && !fault.Is(err, fault.Unavailable) {
		t.Fatalf("a write under %+v: %v; done %t, the holder was told %t", g, err, wrote, told)
	}
	return wrote
}

func oneHasIt(t *testing.T, w World) {
	a := acquire(t, w, "jobs", "a", long)
	refused(t, w, "jobs", "b")
	acquire(t, w, "releases", "b", long)
	if !renew(t, w, a) || !writes(t, w, a) {
		t.Error("who has it cannot renew it, or cannot write")
	}
	refused(t, w, "jobs", "b")
}

func overIsAnybodys(t *testing.T, w World) {
	a := acquire(t, w, "jobs", "a", 0)
	b := acquire(t, w, "jobs", "b", long)
	if b.Token <= a.Token {
		t.Errorf("the token after %d is %d", a.Token, b.Token)
	}
	refused(t, w, "jobs", "a")
}

// A clock that was an hour ahead gave a lease to somebody who died, and is right again.
func noClockKeepsIt(t *testing.T, w World) {
	ahead := acquire(t, w, "jobs", "dead", 2*long+time.Minute)
	acquire(t, w, "jobs", "b", long)
	if writes(t, w, ahead) || renew(t, w, ahead) {
		t.Error("who had it still writes")
	}
	refused(t, w, "jobs", "a")
}

func startsAgain(t *testing.T, w World) {
	before := acquire(t, w, "jobs", "a", long)
	after := acquire(t, w, "jobs", "a", long)
	if after.Token <= before.Token || writes(t, w, before) || renew(t, w, before) || !writes(t, w, after) {
		t.Errorf("before %+v, after %+v: what it did before goes on, or after does not", before, after)
	}
}

func releasedIsFree(t *testing.T, w World) {
	a := acquire(t, w, "jobs", "a", long)
	release(t, w, a)
	release(t, w, a)
	if renew(t, w, a) {
		t.Error("what was released was renewed")
	}
	b := acquire(t, w, "jobs", "b", long)
	release(t, w, a) // late
	refused(t, w, "jobs", "a")
	if !writes(t, w, b) {
		t.Error("a late release ended what another one has")
	}
}

func lateLoses(t *testing.T, w World) {
	over, good := acquire(t, w, "jobs", "a", 0), acquire(t, w, "releases", "a", long)
	lost, err := w.RenewLeases(t.Context(), []lease.Grant{over, good, {Name: "none", Holder: "a", Token: 1}}, long)
	if err != nil || len(lost) != 2 || lost[0] != over || lost[1].Name != "none" {
		t.Errorf("lost %+v, %v", lost, err)
	}
	refused(t, w, "releases", "b")
	acquire(t, w, "jobs", "b", long)
	if none, err := w.RenewLeases(t.Context(), nil, long); err != nil || len(none) > 0 {
		t.Errorf("nothing to renew: %v, %v", none, err)
	}
}

func loserWritesNothing(t *testing.T, w World) {
	a := acquire(t, w, "jobs", "a", 0)
	b := acquire(t, w, "jobs", "b", long)
	if writes(t, w, a) {
		t.Error("who lost the lease wrote")
	}
	if !writes(t, w, b) {
		t.Error("who has the lease could not write")
	}
	if err := w.Write(t.Context(), func() {}); err != nil {
		t.Errorf("who needs no lease: %v", err)
	}
}

// lateWritesUntilAnother: nobody is harmed by a holder that is late, as long as nobody else has begun.
func lateWritesUntilAnother(t *testing.T, w World) {
	a := acquire(t, w, "jobs", "a", 0)
	if !writes(t, w, a) {
		t.Error("a late holder that nobody followed could not write")
	}
}

func listed(t *testing.T, w World) {
	acquire(t, w, "releases", "a", 0)
	acquire(t, w, "jobs", "a", 0)
	b := acquire(t, w, "jobs", "b", long)
	all, err := w.Leases(t.Context())
	if err != nil || len(all) != 2 || all[0].Grant != b || all[0].Free() || all[0].Left > long || all[0].Left < long/2 ||
		all[1].Name != "releases" || all[1].Holder != "a" || !all[1].Free() || all[1].Left != 0 || all[0].Since.Before(all[1].Since) || all[1].Since.IsZero() {
		t.Errorf("listed: %+v, %v", all, err)
	}
}

// manyWantIt has many ask at once: one gets it, and each next one a higher token.
func manyWantIt(t *testing.T, w World) {
	seen := map[int64]string{}
	for round := range 10 {
		got := wanted(t, w, "jobs")
		if seen[got.Token] != "" {
			t.Fatalf("round %d: %+v got it; before %v", round, got, seen)
		}
		seen[got.Token] = got.Holder
		release(t, w, got)
	}
	for i := range 40 {
		if got := wanted(t, w, fmt.Sprint("new ", i)); got.Token != 1 {
			t.Fatalf("%+v got what nobody had", got)
		}
	}
}

// wanted has many ask for a lease that is free; it is whose it became.
func wanted(t *testing.T, w World, name string) lease.Grant {
	t.Helper()
	var mu sync.Mutex
	var got []lease.Grant
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			g, ok, err := w.AcquireLease(t.Context(), name, fmt.Sprint("holder ", i), long)
			if err != nil {
				t.Error(err)
			}
			if ok {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, g)
			}
		})
	}
	all.Wait()
	if len(got) != 1 {
		t.Fatalf("%+v got it", got)
	}
	return got[0]
}

// neverTwo takes random steps of several holders, some of which die (their leases end at once) or go on without knowing that they lost.
// Whatever they do: once a write of a later grant was accepted, none of an earlier one is.
func neverTwo(t *testing.T, w World) {
	cases := 0
	rapid.Check(t, func(r *rapid.T) {
		cases++
		name := fmt.Sprint("work ", cases)
		var grants []lease.Grant // all that were ever given, also to who died
		var highest, written int64
		holder := rapid.StringMatching("[abc]")
		ttl := rapid.SampledFrom([]time.Duration{0, long})
		pick := func(r *rapid.T) lease.Grant {
			if len(grants) == 0 {
				r.Skip("nobody has had it yet")
			}
			return grants[rapid.IntRange(max(0, len(grants)-4), len(grants)-1).Draw(r, "grant")]
		}
		r.Repeat(map[string]func(*rapid.T){
			"acquire": func(r *rapid.T) {
				g, ok, err := w.AcquireLease(t.Context(), name, holder.Draw(r, "holder"), ttl.Draw(r, "ttl"))
				if err != nil {
					r.Fatal(err)
				}
				if !ok {
					return
				}
				if g.Token <= highest {
					r.Fatalf("token %d after %d", g.Token, highest)
				}
				highest = g.Token
				grants = append(grants, g)
			},
			"renew": func(r *rapid.T) {
				g := pick(r)
				lost, err := w.RenewLeases(t.Context(), []lease.Grant{g}, ttl.Draw(r, "ttl"))
				if err != nil {
					r.Fatal(err)
				}
				if len(lost) == 0 && g.Token < highest {
					r.Fatalf("token %d was renewed after %d was given", g.Token, highest)
				}
			},
			"release": func(r *rapid.T) {
				if err := w.ReleaseLease(t.Context(), pick(r)); err != nil {
					r.Fatal(err)
				}
			},
			"write": func(r *rapid.T) {
				g := pick(r)
				err := w.Write(lease.With(t.Context(), g, nil), func() {})
				switch {
				case err == nil && g.Token < written:
					r.Fatalf("a write under token %d was accepted after one under %d", g.Token, written)
				case err == nil && g.Token < highest:
					r.Fatalf("a write under token %d was accepted after %d was given", g.Token, highest)
				case err == nil:
					written = g.Token
				case g.Token == highest || !fault.Is(err, fault.Unavailable):
					r.Fatalf("a write under token %d, the last of %d: %v", g.Token, highest, err)
				}
			},
		})
	})
}

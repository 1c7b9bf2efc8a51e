package release_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

var ann = fleet.Actor{Kind: fleet.UserActor, Name: "ann"}

func nodeOf(i int) fleet.Certname { return fleet.Certname(fmt.Sprintf("n%02d", i)) }

// want is the state that a target ends in whose release is not stopped by anybody.
func want(f releasetest.Fate, noop bool) release.Standing {
	outcome := f.Run
	if noop && (f.Noop == release.RunFailed || f.Noop == release.RunOffline) {
		outcome = f.Noop
	}
	switch {
	case f.Failure != "" || f.Refuses != "":
		return release.Refused
	case f.Drifts != "":
		return release.Superseded
	case outcome == release.RunOffline:
		return release.Offline
	case outcome == release.RunFailed:
		return release.Failed
	case outcome == release.RunTimedOut:
		return release.TimedOut
	case f.Reports == "-":
		return release.Failed
	case f.Reports != "":
		return release.Foreign
	}
	return release.Changed
}

func fate(rt *rapid.T, name string) releasetest.Fate {
	return releasetest.Fate{
		Base: "old", Fresh: "new",
		Failure: rapid.SampledFrom([]string{"", "", "", "", "Syntax error"}).Draw(rt, name+" failure"),
		Refuses: rapid.SampledFrom([]string{"", "", "", "", "", "pinned"}).Draw(rt, name+" refuses"),
		Drifts:  rapid.SampledFrom([]string{"", "", "", "", "facts.role changed"}).Draw(rt, name+" drifts"),
		Run: rapid.SampledFrom([]release.Outcome{
			release.Succeeded, release.Succeeded, release.Succeeded, release.RunFailed, release.RunTimedOut, release.RunOffline,
		}).Draw(rt, name+" run"),
		Noop:    rapid.SampledFrom([]release.Outcome{release.Succeeded, release.Succeeded, release.RunFailed, release.RunOffline}).Draw(rt, name+" rehearsal"),
		Reports: rapid.SampledFrom([]string{"", "", "", "", "another", "-"}).Draw(rt, name+" reports"),
	}
}

// TestEndsWhateverStopsTheServer stops the server before and after any of its calls, many times, and has people act in
// between. Each target ends in the state of its fate or was left out by somebody; no node is given a generation twice, and no wave is run
// twice.
func TestEndsWhateverStopsTheServer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		fates := map[fleet.Certname]releasetest.Fate{"n00": {Base: "old", Fresh: "new"}}
		for i := range rapid.IntRange(0, 12).Draw(rt, "nodes") {
			fates[nodeOf(i+1)] = fate(rt, string(nodeOf(i+1)))
		}
		world, store := releasetest.NewWorld(fates), releasetest.NewStore()
		world.Slow = rapid.IntRange(0, 2).Draw(rt, "slow")
		s := world.Service(store)
		order := release.Order{Preview: 1, Waves: rapid.SampledFrom([][]string{nil, {"1", "rest"}, {"10%", "50%", "rest"}}).Draw(rt, "waves")}
		order.NoopFirst, order.Concurrency = rapid.Bool().Draw(rt, "noop first"), rapid.IntRange(0, 2).Draw(rt, "at once")
		if order.Promotion = rapid.SampledFrom([]release.Promotion{release.Automatic, release.Manual, release.Soaked}).Draw(rt, "promote"); order.Promotion == release.Soaked {
			order.Soak = time.Minute
		}
		if rapid.Bool().Draw(rt, "budget") {
			budget := rapid.IntRange(0, 3).Draw(rt, "may fail")
			order.MaxFailures = &budget
		}
		plan, err := s.Create(t.Context(), ann, order)
		if err != nil {
			rt.Fatal(err)
		}
		moods(rt, world)
		id, aborted := plan.Release.ID, false
		for round := 0; ; round++ {
			if round > 3000 {
				r, _ := store.Release(t.Context(), id)
				rt.Fatalf("it never ends: %+v", r)
			}
			if rapid.IntRange(0, 2).Draw(rt, "stop") == 0 {
				world.StopAt(rapid.IntRange(1, 12).Draw(rt, "at call"), rapid.Bool().Draw(rt, "after"))
			}
			if err := s.Look(t.Context()); err != nil && !errors.Is(err, releasetest.ErrStopped) {
				rt.Fatal(err)
			}
			if world.Start() {
				s = world.Service(store)
			}
			r, err := store.Release(t.Context(), id)
			if err != nil {
				rt.Fatal(err)
			}
			consistent(rt, store, r)
			if r.State.Final() {
				break
			}
			world.Pass(40 * time.Second)
			switch act := rapid.IntRange(0, 30).Draw(rt, "act"); {
			case r.State == release.Paused && r.Hold != release.Frozen || r.State == release.Paused && act < 3:
				aborted = goOn(rt, s, r) || aborted
			case r.State == release.WaitingApproval:
				_, err = s.Approve(t.Context(), fleet.Actor{Name: "bob"}, id, "")
			case act == 0:
				_, _ = s.Pause(t.Context(), ann, id, "")
			case act == 1 && r.MaxFailures != nil:
				more := *r.MaxFailures + 1
				_, _ = s.Resume(t.Context(), ann, id, &more)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		judgeEnd(rt, world, store, id, aborted, order.NoopFirst)
	})
}

// moods has the gate deny, freeze and ask for approvals, and jobs not be ordered, now and then.
func moods(rt *rapid.T, world *releasetest.World) {
	world.Verdicts = func(q release.Question) (v release.Verdict) {
		switch rapid.IntRange(0, 9).Draw(rt, "mood") {
		case 0:
			v.Findings = []release.Finding{{Rule: "no", Effect: release.Deny, Message: "not now"}}
		case 1:
			v.Findings = []release.Finding{{Rule: "ask", Effect: release.Approve, Role: "of bob"}}
		case 2:
			v.Frozen = &release.Freeze{Until: q.At.Add(time.Duration(rapid.IntRange(1, 300).Draw(rt, "frozen")) * time.Second), Why: "night"}
		}
		return v
	}
	world.Troubles = func(release.RunOrder) error {
		if rapid.IntRange(0, 9).Draw(rt, "trouble") == 0 {
			return fault.New(fault.Conflict, "it cannot be ordered")
		}
		return nil
	}
}

// goOn does what a paused release waits for, or aborts it.
func goOn(rt *rapid.T, s *release.Service, r release.Release) (aborted bool) {
	ctx := context.Background()
	var err error
	switch {
	case rapid.IntRange(0, 12).Draw(rt, "abort") == 0:
		_, err = s.Abort(ctx, ann, r.ID, "", rapid.Bool().Draw(rt, "kill"))
		aborted = true
	case r.Hold == release.Frozen: // it goes on by itself
	case r.Hold == release.ForPromoter:
		_, err = s.Promote(ctx, ann, r.ID)
	case r.Hold == release.OverBudget:
		more := r.Counts.Failures() + rapid.IntRange(0, 2).Draw(rt, "more")
		_, err = s.Resume(ctx, ann, r.ID, &more)
	default:
		if _, err = s.Resume(ctx, ann, r.ID, nil); fault.Of(err) == fault.Conflict && err != nil {
			more := r.Counts.Failures()
			_, err = s.Resume(ctx, ann, r.ID, &more)
		}
	}
	if err != nil {
		rt.Fatalf("%s (%s): %v", r.State, r.Hold, err)
	}
	return aborted
}

// consistent is what holds in any state.
func consistent(rt *rapid.T, store release.Store, r release.Release) {
	targets, err := store.Targets(context.Background(), r.ID, release.TargetPage{Limit: 1000})
	if err != nil {
		rt.Fatal(err)
	}
	if diff := cmp.Diff(release.Count(targets), r.Counts); diff != "" {
		rt.Fatalf("counts (-rows +release):\n%s", diff)
	}
	for _, t := range targets {
		if t.State.Final() && t.State != release.Unchanged && t.State != release.Changed && t.Reason == "" {
			rt.Fatalf("%s is %s without a reason", t.Node, t.State)
		}
		if r.State.Final() && !t.State.Final() {
			rt.Fatalf("%s is %s in a release that is %s", t.Node, t.State, r.State)
		}
		if t.Wave > r.Wave && t.State != release.Waiting && t.State != release.Skipped {
			rt.Fatalf("%s of wave %d is %s while the release is at wave %d", t.Node, t.Wave, t.State, r.Wave)
		}
	}
	if (r.Hold != release.NoHold) != (r.State == release.Paused) || !r.Until.IsZero() && r.Hold != release.Frozen {
		rt.Fatalf("a release that is %s holds for %q until %s", r.State, r.Hold, r.Until)
	}
	for _, w := range r.Waves {
		if w.Number > r.Wave && w.Phase != release.NotBegun || w.Number < r.Wave && w.Phase != release.Ended {
			rt.Fatalf("wave %d is %s while the release is at wave %d", w.Number, w.Phase, r.Wave)
		}
	}
}

func judgeEnd(rt *rapid.T, world *releasetest.World, store release.Store, id int64, aborted, noop bool) {
	ctx := context.Background()
	r, _ := store.Release(ctx, id)
	targets, _ := store.Targets(ctx, id, release.TargetPage{Limit: 1000})
	for _, t := range targets {
		if got, wanted := t.State, want(world.Fates[t.Node], noop); got != wanted && (!aborted || got != release.Skipped) {
			rt.Errorf("%s is %s (%s), want %s", t.Node, got, t.Reason, wanted)
		}
		if n := world.Ran(t.Node); n > 1 {
			rt.Errorf("%s was run %d times", t.Node, n)
		}
		kept, _ := world.Generations(ctx, t.Node)
		given := t.Generation != 0
		if len(kept) > 2 || given != (len(kept) == 2) || given && kept[0].Release != id {
			rt.Errorf("%s is %s with generation %d, but has %v", t.Node, t.State, t.Generation, kept)
		}
	}
	keys := map[string]bool{}
	for _, j := range world.Jobs() {
		if keys[j.Key] {
			rt.Errorf("%s was ordered twice", j.Key)
		}
		keys[j.Key] = true
	}
	wanted := release.Done
	switch {
	case aborted:
		wanted = release.Aborted
	case r.Counts.Succeeded() < len(targets):
		wanted = release.DoneWithFailures
	}
	if r.State != wanted {
		rt.Errorf("the release is %s, want %s", r.State, wanted)
	}
}

// run brings a release on until nothing more happens by itself.
func run(t *testing.T, world *releasetest.World, s *release.Service, id int64) release.Release {
	t.Helper()
	for range 100 {
		if err := s.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := s.Release(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if r.State != release.Running && r.State != release.Stopping {
			return r
		}
		world.Pass(time.Second)
	}
	t.Fatal("it goes on and on")
	return release.Release{}
}

func healthy(n int) map[fleet.Certname]releasetest.Fate {
	fates := map[fleet.Certname]releasetest.Fate{}
	for i := range n {
		fates[nodeOf(i)] = releasetest.Fate{Base: "old", Fresh: "new"}
	}
	return fates
}

func create(t *testing.T, s *release.Service, o release.Order) release.Release {
	t.Helper()
	plan, err := s.Create(t.Context(), ann, o)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Release
}

func isState(t *testing.T, r release.Release, state release.State, hold release.Hold) {
	t.Helper()
	if r.State != state || r.Hold != hold {
		t.Fatalf("the release is %s %s (%s), want %s %s", r.State, r.Hold, r.Reason, state, hold)
	}
}

func TestFailuresStopWithinTheBudget(t *testing.T) {
	t.Parallel()
	fates := healthy(10)
	for i := range 10 {
		fates[nodeOf(i)] = releasetest.Fate{Base: "old", Fresh: "new", Run: release.RunFailed}
	}
	world := releasetest.NewWorld(fates)
	s := world.Service(releasetest.NewStore())
	budget := 2
	o := release.Order{Preview: 1, Waves: []string{"2", "rest"}}
	o.MaxFailures, o.Concurrency = &budget, 1
	r := run(t, world, s, create(t, s, o).ID)
	isState(t, r, release.Paused, release.OverBudget)
	want := release.Counts{release.Failed: 3, release.Skipped: 7}
	if diff := cmp.Diff(want, r.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if _, err := s.Resume(t.Context(), ann, r.ID, nil); fault.Of(err) != fault.Conflict {
		t.Errorf("resumed without more budget: %v", err)
	}
	more := 100
	if _, err := s.Resume(t.Context(), ann, r.ID, &more); err != nil {
		t.Fatal(err)
	}
	r = run(t, world, s, r.ID)
	isState(t, r, release.DoneWithFailures, release.NoHold)
	if r.Counts[release.Failed] != 10 {
		t.Errorf("counts: %v", r.Counts)
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(3))
	s := world.Service(releasetest.NewStore())
	o := release.Order{Preview: 1}
	o.ApproveBy = "of bob"
	r := run(t, world, s, create(t, s, o).ID)
	isState(t, r, release.WaitingApproval, release.NoHold)
	if _, err := s.Approve(t.Context(), ann, r.ID, ""); fault.Of(err) != fault.Denied {
		t.Errorf("approved without the role: %v", err)
	}
	if _, err := s.Approve(t.Context(), fleet.Actor{Name: "bob"}, r.ID, "fine"); err != nil {
		t.Fatal(err)
	}
	isState(t, run(t, world, s, r.ID), release.Done, release.NoHold)

	o.ApproveBy = "all" // which ann has, too
	world.Release("n00", "older")
	fates := world.Fates
	fates["n00"] = releasetest.Fate{Base: "older", Fresh: "newer"}
	o.Targets = api.JobTargets{Nodes: []string{"n00"}}
	r = create(t, s, o)
	if _, err := s.Approve(t.Context(), ann, r.ID, ""); fault.Of(err) != fault.Denied || !strings.Contains(err.Error(), "of their own") {
		t.Errorf("the author approves: %v", err)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(4))
	until := world.Now().Add(time.Hour)
	world.Verdicts = func(q release.Question) (v release.Verdict) {
		if q.Wave == 2 && q.At.Before(until) {
			v.Frozen = &release.Freeze{Until: until, Why: "night"}
		}
		return v
	}
	s := world.Service(releasetest.NewStore())
	r := run(t, world, s, create(t, s, release.Order{Preview: 1, Waves: []string{"1", "rest"}}).ID)
	isState(t, r, release.Paused, release.Frozen)
	if r.Counts[release.Changed] != 1 {
		t.Errorf("counts: %v", r.Counts)
	}
	world.Pass(2 * time.Hour)
	isState(t, run(t, world, s, r.ID), release.Done, release.NoHold)
}

func TestDenied(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(2))
	deny := true
	world.Verdicts = func(q release.Question) (v release.Verdict) {
		if deny && len(q.Nodes) == 2 && q.Digest != "" {
			v.Findings = []release.Finding{{Rule: "no-users", Effect: release.Deny, Message: "removes a User"}}
		}
		return v
	}
	s := world.Service(releasetest.NewStore())
	_, err := s.Create(t.Context(), ann, release.Order{Preview: 1})
	if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "no-users") {
		t.Errorf("a rule denies: %v", err)
	}
	deny = false
	r := create(t, s, release.Order{Preview: 1})
	deny = true
	isState(t, run(t, world, s, r.ID), release.Paused, release.ByPolicy)
}

func TestSuperseded(t *testing.T) {
	t.Parallel()
	fates := healthy(4)
	fates["n01"] = releasetest.Fate{Base: "old", Fresh: "new", Drifts: "facts.role changed"}
	world := releasetest.NewWorld(fates)
	world.Release("n02", "other")
	s := world.Service(releasetest.NewStore())
	plan, err := s.Create(t.Context(), ann, release.Order{Preview: 1, Waves: []string{"1", "rest"}, Refresh: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]fleet.Certname{"n01", "n02"}, world.Again1()); diff != "" || plan.Refreshed != 2 {
		t.Errorf("a new preview %d of (-want +got):\n%s", plan.Refreshed, diff)
	}
	reasons := map[fleet.Certname]string{"n01": "facts.role changed", "n02": "it has catalog other (generation 2)"}
	for _, target := range plan.Targets {
		if want := reasons[target.Node]; (target.State == release.Superseded) != (want != "") || !strings.Contains(target.Reason, want) {
			t.Errorf("%s is %s: %s; want %q", target.Node, target.State, target.Reason, want)
		}
	}
	// Just before its wave one more is superseded.
	last := fleet.Certname("")
	for _, target := range plan.Targets {
		if target.Wave == 2 {
			last = target.Node
		}
	}
	world.Release(last, "other")
	r := run(t, world, s, plan.Release.ID)
	isState(t, r, release.DoneWithFailures, release.NoHold)
	if r.Counts[release.Superseded] != 3 || r.Counts[release.Changed] != 1 {
		t.Errorf("counts: %v", r.Counts)
	}
}

func TestRollback(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(3))
	s := world.Service(releasetest.NewStore())
	forward := run(t, world, s, create(t, s, release.Order{Preview: 1}).ID)
	world.Release("n02", "later")
	plan, err := s.Create(t.Context(), ann, release.Order{Of: forward.ID, Waves: []string{"1", "rest"}})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Targets[2].State != release.Refused || !strings.Contains(plan.Targets[2].Reason, "--to") {
		t.Errorf("a node that has another generation since: %+v", plan.Targets[2])
	}
	r := run(t, world, s, plan.Release.ID)
	if r.Counts[release.Changed] != 2 {
		t.Errorf("counts: %v", r.Counts)
	}
	for _, node := range []fleet.Certname{"n00", "n01"} {
		has, _ := world.Has(t.Context(), node)
		if has.Catalog != "old" || has.Generation != 3 || has.Release != r.ID {
			t.Errorf("%s has %+v", node, has)
		}
	}
	plan, err = s.Create(t.Context(), ann, release.Order{Nodes: []fleet.Certname{"n02"}, To: 1})
	if err != nil {
		t.Fatal(err)
	}
	run(t, world, s, plan.Release.ID)
	if has, _ := world.Has(t.Context(), "n02"); has.Catalog != "old" || has.Generation != 4 {
		t.Errorf("n02 has %+v", has)
	}
	_, err = s.Create(t.Context(), ann, release.Order{Nodes: []fleet.Certname{"n02"}, To: 77})
	if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "not kept") {
		t.Errorf("to a generation that is not there: %v", err)
	}
}

func TestWrongOrders(t *testing.T) {
	t.Parallel()
	world := releasetest.NewWorld(healthy(2))
	s := world.Service(releasetest.NewStore())
	minus := -1
	for name, c := range map[string]struct {
		order release.Order
		kind  fault.Kind
		says  string
	}{
		"no preview":     {release.Order{Preview: 9}, fault.NotFound, "preview 9"},
		"strange wave":   {release.Order{Preview: 1, Waves: []string{"some"}}, fault.Invalid, "waves"},
		"half a fleet":   {release.Order{Preview: 1, Waves: []string{"1"}}, fault.Invalid, "rest"},
		"empty group":    {release.Order{Preview: 1, Waves: []string{"@web", "rest"}}, fault.Invalid, "group web"},
		"not previewed":  {release.Order{Preview: 1, Targets: api.JobTargets{Nodes: []string{"other"}}}, fault.Invalid, "preview it first"},
		"budget":         {release.Order{Preview: 1, Options: release.Options{MaxFailures: &minus}}, fault.Invalid, "max_failures"},
		"promotion":      {release.Order{Preview: 1, Options: release.Options{Promotion: "never"}}, fault.Invalid, "promote"},
		"soak":           {release.Order{Preview: 1, Options: release.Options{Soak: time.Hour}}, fault.Invalid, "soak"},
		"nothing at all": {release.Order{}, fault.Invalid, "release"},
		"no release":     {release.Order{Of: 5}, fault.NotFound, "release 5"},
	} {
		_, err := s.Create(t.Context(), ann, c.order)
		if err == nil || fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s with %q", name, err, c.kind, c.says)
		}
	}
	world.State = "compiling"
	if _, err := s.Create(t.Context(), ann, release.Order{Preview: 1}); fault.Of(err) != fault.Conflict {
		t.Errorf("a preview that is not ready: %v", err)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(rt, "nodes")
		var nodes []fleet.Certname
		for i := range n {
			nodes = append(nodes, nodeOf(i))
		}
		sizes := append(rapid.SliceOfN(rapid.SampledFrom([]string{"1%", "10%", "33.3%", "5", "1", "@n0"}), 0, 4).Draw(rt, "sizes"), "rest")
		members := func(string) ([]fleet.Certname, error) { return nodes[:min(n, 10)], nil }
		waves, place, err := release.Spread(sizes, nodes, 7, members)
		if err != nil {
			if !strings.Contains(err.Error(), "group n0") {
				rt.Fatal(err)
			}
			return
		}
		counted := map[int]int{}
		for _, node := range nodes {
			counted[place[node]]++
		}
		total := 0
		for _, w := range waves {
			if counted[w.Number] != w.Nodes || w.Nodes == 0 {
				rt.Errorf("wave %d has %d nodes, not %d", w.Number, counted[w.Number], w.Nodes)
			}
			total += w.Nodes
		}
		again, same, _ := release.Spread(sizes, nodes, 7, members)
		if total != n || cmp.Diff(waves, again) != "" || cmp.Diff(place, same) != "" {
			rt.Errorf("%d of %d nodes are in waves", total, n)
		}
	})
}

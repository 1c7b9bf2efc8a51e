package releasetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// RunStore is what every release.Store does. open returns an empty one.
func RunStore(t *testing.T, open func(t *testing.T) release.Store) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, release.Store){
		"what is created is read again": readsAgain,
		"steps":                         steps,
		"pages":                         pages,
		"approvals":                     approvals,
		"retention":                     retention,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, open(t))
		})
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func isKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != kind {
		t.Errorf("%s: %v, want %s", what, err, kind)
	}
}

func sample() (release.Release, []release.Target) {
	budget := 3
	r := release.Release{
		Kind: release.Forward, Preview: 7, Environment: "production", Version: fleet.DigestOf([]byte("v")), Description: "tls", Author: "ann",
		AuthorKind: fleet.UserActor,
		Options: release.Options{
			MaxFailures: &budget, Promotion: release.Soaked, Soak: time.Hour, NoopFirst: true, Concurrency: 4, Timeout: time.Minute,
			WaitOffline: time.Second, ApproveBy: "lead",
		},
		State: release.Running, Waves: []release.Wave{
			{Number: 1, Size: "1", Nodes: 1, Phase: release.NotBegun, Round: 1}, {Number: 2, Size: "rest", Nodes: 1, Phase: release.NotBegun, Round: 1},
		},
		Needs: []release.Need{{Role: "lead", Rule: "r", Message: "m", AuthorMay: true}}, Digest: fleet.DigestOf([]byte("d")), CreatedAt: start,
	}
	target := func(number, wave int, node fleet.Certname) release.Target {
		return release.Target{
			Number: number, Node: node, Wave: wave, Round: 1, Base: fleet.DigestOf([]byte("base")), State: release.Waiting,
			Catalog: deliver.Catalog{
				Digest: fleet.DigestOf([]byte(node)), Environment: "production", Version: r.Version, UUID: "u-" + string(node), Compilation: 9, CompiledAt: start,
			},
		}
	}
	refused := release.Target{Number: 3, Node: "c", Round: 1, State: release.Refused, Reason: "it is pinned"}
	return r, []release.Target{target(1, 1, "a"), target(2, 2, "b"), refused}
}

func made(t *testing.T, s release.Store) (release.Release, []release.Target) {
	t.Helper()
	r, targets := sample()
	return must[release.Release](t)(s.CreateRelease(t.Context(), r, targets, []release.Entry{{At: start, By: "ann", Text: "made the release"}})), targets
}

func readsAgain(t *testing.T, s release.Store) {
	r, targets := made(t, s)
	want, _ := sample()
	want.ID, want.Revision, want.Counts = r.ID, 1, release.Counts{release.Waiting: 2, release.Refused: 1}
	for i := range want.Waves {
		want.Waves[i].Counts = release.Counts{release.Waiting: 1}
	}
	same(t, "created", want, r)
	same(t, "read", want, must[release.Release](t)(s.Release(t.Context(), r.ID)))
	for i := range targets {
		targets[i].Revision = 1
	}
	same(t, "targets", targets, must[[]release.Target](t)(s.Targets(t.Context(), r.ID, release.TargetPage{Limit: 10})))
	entries := must[[]release.Entry](t)(s.Entries(t.Context(), r.ID))
	if len(entries) != 1 || entries[0].By != "ann" || entries[0].Text != "made the release" || !entries[0].At.Equal(start) || entries[0].Number == 0 {
		t.Errorf("entries: %+v", entries)
	}
	_, err := s.Release(t.Context(), r.ID+1)
	isKind(t, "a release that is not there", err, fault.NotFound)
	same(t, "its targets", 0, len(must[[]release.Target](t)(s.Targets(t.Context(), r.ID+1, release.TargetPage{Limit: 10}))))
}

func steps(t *testing.T, s release.Store) {
	r, targets := made(t, s)
	next := r
	budget := 9
	next.State, next.Hold, next.Until, next.Reason, next.Kill, next.MaxFailures = release.Paused, release.Frozen, start.Add(time.Hour), "why", true, &budget
	next.Wave, next.StartedAt, next.Needs = 1, start.Add(time.Minute), nil
	next.Waves = []release.Wave{
		{Number: 1, Size: "1", Nodes: 1, Phase: release.Applying, Round: 2, Rehearse: 4, Job: 5, Jobs: []int64{3}, Promoted: true, StartedAt: start, EndedAt: start},
		r.Waves[1],
	}
	next.Author, next.Digest, next.Concurrency, next.Preview = "somebody else", "", 0, 1 // never change
	moved := targets[0]
	moved.State, moved.Reason, moved.Generation, moved.Report, moved.RunEnded, moved.RunChanged, moved.Round = release.AtWork, "r", 8, "tx", start, true, 2
	moved.Wave, moved.Base, moved.Catalog = 5, "", deliver.Catalog{} // never change
	got := must[release.Release](t)(s.SaveRelease(t.Context(), release.Change{
		Base: 1, Release: next, Targets: []release.Target{moved}, Entries: []release.Entry{{At: start, Text: "e"}},
	}))
	want := next
	want.Author, want.Digest, want.Concurrency, want.Preview, want.Revision, want.Needs = "ann", r.Digest, 4, 7, 2, got.Needs
	want.Counts = release.Counts{release.AtWork: 1, release.Waiting: 1, release.Refused: 1}
	want.Waves = slices.Clone(next.Waves)
	want.Waves[0].Counts, want.Waves[1].Counts = release.Counts{release.AtWork: 1}, release.Counts{release.Waiting: 1}
	same(t, "saved", want, got)
	same(t, "needs", 0, len(got.Needs))
	read := must[release.Release](t)(s.Release(t.Context(), r.ID))
	read.Needs = got.Needs
	same(t, "read", got, read)
	moved.Wave, moved.Base, moved.Catalog, moved.Revision = 1, targets[0].Base, targets[0].Catalog, 2
	same(t, "what changed", []release.Target{moved}, must[[]release.Target](t)(s.Targets(t.Context(), r.ID, release.TargetPage{Limit: 10, Since: 1})))
	same(t, "entries", 2, len(must[[]release.Entry](t)(s.Entries(t.Context(), r.ID))))
	// A step that moves no target leaves what was counted, whatever it says of it.
	silent := got
	silent.Waves, silent.Counts = slices.Clone(got.Waves), release.Counts{}
	silent.Waves[0].Counts, silent.Waves[1].Counts = nil, nil
	still := must[release.Release](t)(s.SaveRelease(t.Context(), release.Change{Base: 2, Release: silent}))
	same(t, "what was counted", got.Waves, still.Waves)
	same(t, "what was counted of all", got.Counts, still.Counts)

	_, err := s.SaveRelease(t.Context(), release.Change{Base: 1, Release: r, Targets: targets[:1], Entries: []release.Entry{{Text: "never"}}})
	isKind(t, "a step from what was", err, fault.Conflict)
	same(t, "it was never tried", []release.Target{moved}, must[[]release.Target](t)(s.Targets(t.Context(), r.ID, release.TargetPage{Limit: 10, Since: 1})))
	same(t, "nor noted", 2, len(must[[]release.Entry](t)(s.Entries(t.Context(), r.ID))))
	r.ID += 100
	_, err = s.SaveRelease(t.Context(), release.Change{Base: 1, Release: r})
	isKind(t, "a step of nothing", err, fault.NotFound)
}

func pages(t *testing.T, s release.Store) {
	first, _ := made(t, s)
	second, _ := made(t, s)
	ids := func(list []release.Release, err error) (ids []int64) {
		t.Helper()
		for _, r := range must[[]release.Release](t)(list, err) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	done := first
	done.State, done.EndedAt = release.Done, start
	must[release.Release](t)(s.SaveRelease(t.Context(), release.Change{Base: 1, Release: done}))
	same(t, "all", []int64{second.ID, first.ID}, ids(s.Releases(t.Context(), release.Page{Limit: 10})))
	same(t, "one", []int64{second.ID}, ids(s.Releases(t.Context(), release.Page{Limit: 1})))
	same(t, "the next", []int64{first.ID}, ids(s.Releases(t.Context(), release.Page{Limit: 1, Before: second.ID})))
	same(t, "done", []int64{first.ID}, ids(s.Releases(t.Context(), release.Page{Limit: 9, States: []release.State{release.Done}})))
	same(t, "elsewhere", 0, len(ids(s.Releases(t.Context(), release.Page{Limit: 9, Environment: "test"}))))
	same(t, "open", []int64{second.ID}, ids(s.OpenReleases(t.Context())))
	for _, c := range []struct {
		name string
		page release.TargetPage
		want []fleet.Certname
	}{
		{"behind", release.TargetPage{After: 1, Limit: 9}, []fleet.Certname{"b", "c"}},
		{"limit", release.TargetPage{Limit: 2}, []fleet.Certname{"a", "b"}},
		{"wave", release.TargetPage{Limit: 9, Wave: 2}, []fleet.Certname{"b"}},
		{"state", release.TargetPage{Limit: 9, States: []release.Standing{release.Refused, release.Sent}}, []fleet.Certname{"c"}},
		{"node", release.TargetPage{Limit: 9, Node: "b"}, []fleet.Certname{"b"}},
	} {
		var got []fleet.Certname
		for _, target := range must[[]release.Target](t)(s.Targets(t.Context(), second.ID, c.page)) {
			got = append(got, target.Node)
		}
		same(t, c.name, c.want, got)
	}
}

func approvals(t *testing.T, s release.Store) {
	r, _ := made(t, s)
	a := release.Approval{Role: "lead", By: "bob", Text: "yes", Digest: r.Digest, At: start}
	b := release.Approval{Role: "lead", By: "eve", Digest: r.Digest, At: start.Add(time.Second)}
	for _, each := range []release.Approval{b, a, {Role: "lead", By: "eve", Text: "sure", Digest: r.Digest, At: b.At}} {
		if err := s.AddApproval(t.Context(), r.ID, each); err != nil {
			t.Fatal(err)
		}
	}
	b.Text = "sure"
	same(t, "approvals", []release.Approval{a, b}, must[[]release.Approval](t)(s.Approvals(t.Context(), r.ID)))
	isKind(t, "of nothing", s.AddApproval(t.Context(), r.ID+1, a), fault.NotFound)
}

func retention(t *testing.T, s release.Store) {
	r, targets := made(t, s)
	digests := func() []fleet.Digest { return must[[]fleet.Digest](t)(s.ReleaseDigests(t.Context())) }
	if got := digests(); len(got) != 2 {
		t.Errorf("an open release names %v", got)
	}
	same(t, "pruned while open", 0, must[int](t)(s.PruneReleases(t.Context(), start.Add(time.Hour))))
	if err := s.AddApproval(t.Context(), r.ID, release.Approval{Role: "x", By: "y", At: start}); err != nil {
		t.Fatal(err)
	}
	r.State, r.EndedAt = release.Done, start
	must[release.Release](t)(s.SaveRelease(t.Context(), release.Change{Base: 1, Release: r, Targets: targets[:1]}))
	same(t, "an ended one names", 0, len(digests()))
	same(t, "pruned too early", 0, must[int](t)(s.PruneReleases(t.Context(), start)))
	same(t, "pruned", 1, must[int](t)(s.PruneReleases(t.Context(), start.Add(time.Second))))
	_, err := s.Release(t.Context(), r.ID)
	isKind(t, "it is gone", err, fault.NotFound)
	same(t, "and its targets", 0, len(must[[]release.Target](t)(s.Targets(t.Context(), r.ID, release.TargetPage{Limit: 10}))))
}

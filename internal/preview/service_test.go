package preview_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
)

var ann = fleet.Actor{Kind: fleet.UserActor, Name: "ann"}

// fate draws what becomes of a node.
func fate(t *rapid.T, name string) previewtest.Fate {
	digest := rapid.SampledFrom([]fleet.Digest{"aaa", "bbb", "ccc"})
	f := previewtest.Fate{
		Asks: rapid.IntRange(0, 3).Draw(t, name+" asks"), Gone: rapid.Bool().Draw(t, name+" gone"),
		Stands: rapid.SampledFrom([]preview.Standing{preview.Compiled, preview.Compiled, preview.Compiled, preview.Broken, preview.Impossible}).Draw(t,
			name+" stands"),
		Base: rapid.SampledFrom([]fleet.Digest{"", "aaa", "bbb", "ccc"}).Draw(t, name+" base"),
	}
	switch f.Stands { //nolint:exhaustive // the others end in nothing
	case preview.Compiled:
		f.Fresh, f.Order = digest.Draw(t, name+" fresh"), rapid.Bool().Draw(t, name+" order")
		f.Volatile = rapid.SampledFrom([]string{"", "", "it reads the time"}).Draw(t, name+" volatile")
	case preview.Broken:
		f.Failure.Message = rapid.SampledFrom([]string{"syntax", "unknown"}).Draw(t, name+" failure")
	}
	return f
}

// ends is how a share of a node with a fate must end.
func ends(f previewtest.Fate) preview.ShareState {
	switch {
	case f.Stands == preview.Broken:
		return preview.Failed
	case f.Stands == preview.Impossible:
		return preview.Unable
	case f.Base == "":
		return preview.First
	case f.Base == f.Fresh:
		return preview.Same
	case f.Order:
		return preview.Reordered
	default:
		return preview.Changed
	}
}

// TestEveryShareEndsAsItMust lets previews run in worlds whose calls fail every now and then, with servers that
// stop and start, and looks at what is left.
func TestEveryShareEndsAsItMust(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		world := &previewtest.World{Fates: map[fleet.Certname]previewtest.Fate{}, Fail: rapid.SampledFrom([]int{0, 0, 3, 7}).Draw(rt, "every n-th call fails")}
		for i := range rapid.IntRange(1, 12).Draw(rt, "nodes") {
			name := fmt.Sprintf("n%02d", i)
			world.Fates[fleet.Certname(name)] = fate(rt, name)
		}
		lives := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(rt, "seconds that servers live")
		synctest.Test(t, func(t *testing.T) {
			store := previewtest.NewStore()
			p := made(t, store, world)
			for _, seconds := range lives {
				live(t, store, world, time.Duration(seconds)*time.Second+time.Millisecond)
			}
			live(t, store, world, 10*time.Minute)
			verify(t, store, world, p.ID)
		})
	})
}

func service(store preview.Store, world *previewtest.World) *preview.Service {
	return preview.NewService(preview.Config{Store: store, Compiler: world, Bases: world, Resolver: world, Comparing: world.Comparing})
}

func made(t *testing.T, store preview.Store, world *previewtest.World) preview.Preview {
	t.Helper()
	p, err := service(store, world).Create(t.Context(), ann, preview.Order{Environment: "production", Version: "v", InWords: "all"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// live is a server that runs for a while.
func live(t *testing.T, store preview.Store, world *previewtest.World, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	if err := service(store, world).Run(ctx); err != nil {
		t.Error(err)
	}
}

func verify(t *testing.T, store preview.Store, world *previewtest.World, id int64) {
	t.Helper()
	p, err := store.Preview(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if p.State != preview.Ready {
		t.Fatalf("the preview is %s with %v", p.State, p.Counts)
	}
	shares, err := store.PreviewShares(t.Context(), id, preview.SharePage{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	groups, unseen := map[string][]uint32{}, 0
	for _, s := range shares {
		f := world.Fates[s.Node]
		if want := ends(f); s.State != want {
			t.Errorf("%s is %s, want %s: %+v", s.Node, s.State, want, f)
		}
		if s.State == preview.Changed {
			groups[string(f.Base+" -> "+f.Fresh)] = append(groups[string(f.Base+" -> "+f.Fresh)], s.Number)
		}
		if s.State == preview.Failed {
			groups["error "+f.Failure.Message] = append(groups["error "+f.Failure.Message], s.Number)
		}
		if f.Volatile != "" {
			unseen++
		}
	}
	if len(p.Unseen) == 1 && p.Unseen[0].Nodes != unseen || len(p.Unseen) == 0 && unseen > 0 {
		t.Errorf("unseen is %v, want %d nodes", p.Unseen, unseen)
	}
	stored, err := store.PreviewGroups(t.Context(), id, preview.GroupPage{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]uint32{}
	for _, g := range stored {
		if got[g.Key], err = store.PreviewGroupNodes(t.Context(), id, g.Key); err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff(groups, got); d != "" {
		t.Errorf("groups (-want +got):\n%s", d)
	}
}

// TestStepKeepsWhatIsFinal: no answer changes a share that has ended.
func TestStepKeepsWhatIsFinal(t *testing.T) {
	t.Parallel()
	for _, state := range preview.ShareStates() {
		for stands := preview.Pending; stands <= preview.Gone; stands++ {
			before := preview.Share{Node: "a", State: state, Compilation: 3, Fresh: "x"}
			after, compare := preview.Step(before, preview.Answer{Node: "a", Compilation: 9, Stands: stands, Catalog: "y", Failure: preview.Failure{Message: "m"}})
			if state.Final() && (after != before || compare) {
				t.Errorf("%s after answer %d: %+v", state, stands, after)
			}
			if compare != (state == preview.Waiting && stands == preview.Compiled) {
				t.Errorf("%s after answer %d is compared: %v", state, stands, compare)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := &previewtest.World{Fates: map[fleet.Certname]previewtest.Fate{"a": {Asks: 1 << 30}, "b": {Stands: preview.Compiled, Fresh: "x", Base: "y"}}}
		store := previewtest.NewStore()
		s := service(store, world)
		p := made(t, store, world)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- s.Run(ctx) }()
		<-time.After(3 * time.Second)
		groups, err := s.Groups(t.Context(), p, preview.GroupPage{Limit: 9})
		if err != nil || len(groups) != 1 || groups[0].Nodes != 1 {
			t.Errorf("while it compiles: %v, %v", groups, err)
		}
		members, err := s.Members(t.Context(), p, []string{groups[0].Key}, preview.SharePage{Limit: 9})
		if err != nil || len(members) != 1 || members[0].Node != "b" {
			t.Errorf("members: %v, %v", members, err)
		}
		if p, err = s.Cancel(t.Context(), ann, p.ID); err != nil || p.State != preview.Cancelled || p.Reason != "cancelled by ann" {
			t.Errorf("%+v, %v", p, err)
		}
		<-time.After(3 * time.Second)
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if p, err = store.Preview(t.Context(), p.ID); err != nil || p.State != preview.Cancelled {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	store, world := previewtest.NewStore(), &previewtest.World{}
	s := service(store, world)
	_, err := s.Create(t.Context(), ann, preview.Order{Environment: "production", Version: "v"})
	told(t, err, fault.Invalid, "field targets: no node is meant; see `tutti node list --environment production`")
	_, err = s.Create(t.Context(), ann, preview.Order{Environment: "prodution", Version: "v", New: true})
	told(t, err, fault.NotFound, "environment prodution is unknown: nothing was deployed to it, and no node is in it; "+
		"deploy to it (`tutti code deploy prodution DIR`), or name the nodes to preview for")
	_, err = s.Create(t.Context(), ann, preview.Order{Environment: "new", Version: "v", New: true, Targets: api.JobTargets{Group: "Web"}})
	told(t, err, fault.Invalid, "field targets: no node is meant; see `tutti node list --environment new`")
	_, err = s.Create(t.Context(), ann, preview.Order{Environment: "production", Description: "\xff"})
	told(t, err, fault.Invalid, "field description: it has 1 bytes, at most 2000 of UTF-8 are allowed")

	world.Fates = map[fleet.Certname]previewtest.Fate{"a": {Stands: preview.Compiled, Fresh: "x", Base: "y"}}
	p := made(t, store, world)
	for text, say := range map[string]preview.Saying{
		`field kind: "shout" is none of acknowledged, withdrawn and comment`: {Kind: "shout"},
		"field groups: name at least one, or all":                            {Kind: preview.Acknowledged},
		"field text: a comment needs one":                                    {Kind: preview.Comment},
		"field groups: all of them are meant already":                        {Kind: preview.Acknowledged, All: true, Groups: []string{"a"}},
		"field groups: it has 1001 entries, at most 1000 are allowed":        {Kind: preview.Acknowledged, Groups: slices.Repeat([]string{"a"}, 1001)},
		"field text: it has 4001 bytes, at most 4000 of UTF-8 are allowed":   {Kind: preview.Comment, Text: fmt.Sprintf("%04001d", 1)},
	} {
		_, err := s.Say(t.Context(), ann, p.ID, say)
		told(t, err, fault.Invalid, text)
	}
	_, err = s.Say(t.Context(), ann, p.ID, preview.Saying{Kind: preview.Acknowledged, Groups: []string{"nothing"}})
	told(t, err, fault.NotFound, `preview 1 has no change "nothing" (yet)`)
	_, err = s.Say(t.Context(), ann, p.ID, preview.Saying{Kind: preview.Acknowledged, All: true})
	told(t, err, fault.Conflict, "preview 1 is compiling: all of its changes are known when it is ready")
	_, err = s.Shares(t.Context(), 9, preview.SharePage{Limit: 1})
	told(t, err, fault.NotFound, "there is no preview 9")
}

func told(t *testing.T, err error, kind fault.Kind, text string) {
	t.Helper()
	if err == nil || fault.Of(err) != kind || fault.Detail(err) != text {
		t.Errorf("told %v, want %q", err, text)
	}
}

func TestAcknowledging(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := &previewtest.World{Fates: map[fleet.Certname]previewtest.Fate{
			"a": {Stands: preview.Compiled, Fresh: "x", Base: "y"}, "b": {Stands: preview.Compiled, Fresh: "x", Base: "z"},
		}}
		store := previewtest.NewStore()
		p := made(t, store, world)
		live(t, store, world, time.Minute)
		s := service(store, world)
		remarks, err := s.Say(t.Context(), ann, p.ID, preview.Saying{Kind: preview.Acknowledged, All: true})
		if err != nil || len(remarks) != 2 {
			t.Fatalf("%v, %v", remarks, err)
		}
		if _, err := s.Say(t.Context(), ann, p.ID, preview.Saying{Kind: preview.Comment, Text: "go"}); err != nil {
			t.Error(err)
		}
		all, err := s.Remarks(t.Context(), p.ID)
		keys := map[string]bool{}
		for _, r := range all {
			keys[r.Group] = true
		}
		if err != nil || !maps.Equal(keys, map[string]bool{"y -> x": true, "z -> x": true, "": true}) {
			t.Errorf("%v, %v", all, err)
		}
		if _, err := s.Cancel(t.Context(), ann, p.ID); fault.Of(err) != fault.Conflict {
			t.Errorf("a ready preview is cancelled: %v", err)
		}
		if groups, err := s.Groups(t.Context(), preview.Preview{ID: p.ID, State: preview.Ready}, preview.GroupPage{Limit: 1}); err != nil || len(groups) != 1 {
			t.Errorf("%v, %v", groups, err)
		}
	})
}

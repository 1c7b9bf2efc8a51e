package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/deliver/delivertest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
)

// world is a service among fakes.
type world struct {
	*deliver.Service
	store   *delivertest.Fake
	groups  *delivertest.Groups
	shown   *delivertest.Shown
	setting deliver.Mode
	changed []fleet.Certname
	apply   deliver.Apply // when the last of them applies it
}

func newWorld() *world {
	w := &world{store: delivertest.New(), groups: new(delivertest.Groups), shown: new(delivertest.Shown), setting: deliver.Live}
	w.Service = deliver.NewService(deliver.Parts{
		Store: w.store, Groups: w.groups, Promoter: w.shown, Setting: func() deliver.Mode { return w.setting },
		Changed: func(node fleet.Certname, apply deliver.Apply) { w.changed, w.apply = append(w.changed, node), apply },
	})
	return w
}

func (w *world) set(tb testing.TB, m deliver.ModeSet) int {
	tb.Helper()
	n, err := w.SetMode(context.Background(), m)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// pointer is what a node may have, in a word; empty for nothing.
func (w *world) pointer(tb testing.TB, node fleet.Certname) string {
	tb.Helper()
	p, err := w.Pointer(context.Background(), node)
	if err != nil && fault.Of(err) != fault.NotFound {
		tb.Fatal(err)
	}
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %s %d", p.Mode, p.UUID, p.Generation)
}

func (w *world) release(tb testing.TB, node fleet.Certname, text string) (deliver.Generation, bool) {
	tb.Helper()
	g, done, err := w.Release(context.Background(), node, deliver.Order{Catalog: delivertest.CatalogOf(text), By: "ann", Why: "test"}, "")
	if err != nil {
		tb.Fatal(err)
	}
	return g, done
}

func TestDecide(t *testing.T) {
	t.Parallel()
	modes := []deliver.GroupMode{
		{Group: "all", Mode: deliver.Live}, {Group: "web", Mode: deliver.Released}, {Group: "fast", Mode: deliver.Live}, {Group: "slow", Mode: deliver.Released},
	}
	in := map[string]deliver.Membership{
		"all": {Group: "all", Name: "All", Depth: 0}, "web": {Group: "web", Name: "Web", Depth: 1}, "fast": {Group: "fast", Name: "Fast", Depth: 2},
		"slow": {Group: "slow", Name: "Slow", Depth: 2}, "none": {Group: "none", Name: "None", Depth: 9},
	}
	for name, c := range map[string]struct {
		own    deliver.Mode
		member []string
		want   deliver.Mode
		reason deliver.Reason
	}{
		"nothing":               {want: deliver.Live, reason: deliver.Reason{From: deliver.FromSetting}},
		"group without a mode":  {member: []string{"none"}, want: deliver.Live, reason: deliver.Reason{From: deliver.FromSetting}},
		"a group":               {member: []string{"all", "web", "none"}, want: deliver.Released, reason: deliver.Reason{From: deliver.FromGroup, Group: "Web"}},
		"the deepest group":     {member: []string{"fast", "web", "all"}, want: deliver.Live, reason: deliver.Reason{From: deliver.FromGroup, Group: "Fast"}},
		"released among equals": {member: []string{"fast", "slow", "web"}, want: deliver.Released, reason: deliver.Reason{From: deliver.FromGroup, Group: "Slow"}},
		"the node's own":        {own: deliver.Live, member: []string{"slow"}, want: deliver.Live, reason: deliver.Reason{From: deliver.FromNode}},
	} {
		var member []deliver.Membership
		for _, group := range c.member {
			member = append(member, in[group])
		}
		mode, reason := deliver.Decide(c.own, modes, member, deliver.Live)
		if mode != c.want || reason != c.reason {
			t.Errorf("%s: got %s %+v, want %s %+v", name, mode, reason, c.want, c.reason)
		}
	}
}

func TestNothingChangesAtTheSwitch(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.Gave("web-1", delivertest.CatalogOf("one"), 1)
	if got := w.pointer(t, "web-1"); got != "live uuid-of-one 0" {
		t.Errorf("live: %q", got)
	}
	w.set(t, deliver.ModeSet{Node: "web-1", Mode: deliver.Released})
	if got := w.pointer(t, "web-1"); got != "released uuid-of-one 1" {
		t.Errorf("after the switch: %q", got)
	}
	w.store.Gave("web-1", delivertest.CatalogOf("two"), 1) // whatever is compiled
	if got := w.pointer(t, "web-1"); got != "released uuid-of-one 1" {
		t.Errorf("with another catalog: %q", got)
	}
	w.set(t, deliver.ModeSet{Node: "web-1"})
	if got := w.pointer(t, "web-1"); got != "live uuid-of-two 0" {
		t.Errorf("back in live mode: %q", got)
	}
	w.set(t, deliver.ModeSet{Node: "web-1", Mode: deliver.Released})
	if got := w.pointer(t, "web-1"); got != "released uuid-of-two 2" {
		t.Errorf("once more: %q", got)
	}
}

// TestWhoHasAppliedItIsNotHurried: a switch to the catalog that a node has applied begins no run.
func TestWhoHasAppliedItIsNotHurried(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.Gave("web-1", delivertest.CatalogOf("one"), 1)
	switched := func(mode deliver.Mode, want deliver.Apply) {
		t.Helper()
		w.set(t, deliver.ModeSet{Node: "web-1", Mode: mode})
		if w.apply != want {
			t.Errorf("in %s mode it applies its catalog %q, want %q", mode, w.apply, want)
		}
	}
	switched(deliver.Released, "") // it said nothing yet
	w.store.Ran("web-1", "uuid-of-one", time.Now())
	switched(deliver.Live, deliver.Scheduled)
	switched(deliver.Released, deliver.Scheduled)
	w.store.Gave("web-1", delivertest.CatalogOf("two"), 1)
	switched(deliver.Live, "")
}

func TestReleasedWithoutACatalog(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.setting = deliver.Released
	if got := w.pointer(t, "new-1"); got != "" {
		t.Errorf("before a release: %q", got)
	}
	w.store.Gave("new-1", delivertest.CatalogOf("slipped"), 1) // it must not
	if got := w.pointer(t, "new-1"); got != "" {
		t.Errorf("with a catalog that nobody released: %q", got)
	}
	if g, done := w.release(t, "new-1", "one"); g.Number != 1 || !done {
		t.Errorf("released: %+v %v", g, done)
	}
	if got := w.pointer(t, "new-1"); got != "released uuid-of-one 1" {
		t.Errorf("after a release: %q", got)
	}
	if got := w.shown.Of("new-1").UUID; got != "uuid-of-one" {
		t.Errorf("the inventory shows %q", got)
	}
	if g, done := w.release(t, "new-1", "one"); g.Number != 1 || done {
		t.Errorf("released again: %+v %v", g, done)
	}
}

func TestGroupModes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.groups.Put(deliver.Membership{Group: "g-web", Name: "Web", Depth: 1}, "web-1", "web-2")
	w.store.Gave("web-1", delivertest.CatalogOf("one"), 1)
	if n := w.set(t, deliver.ModeSet{Group: "g-web", Mode: deliver.Released}); n != 2 {
		t.Errorf("%d nodes switched, want 2", n)
	}
	if diff := cmp.Diff([]fleet.Certname{"web-1", "web-2"}, w.changed); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	in, err := w.InReleased(t.Context(), []fleet.Certname{"web-1", "web-2", "db-1"})
	if err != nil || len(in) != 2 || in["db-1"] {
		t.Errorf("in released mode: %v, %v", in, err)
	}
	w.groups.Put(deliver.Membership{Group: "g-web", Name: "Web", Depth: 1}, "web-2", "db-1") // facts moved them
	w.store.Gave("db-1", delivertest.CatalogOf("db"), 1)
	if got := w.pointer(t, "db-1"); got != "released uuid-of-db 1" {
		t.Errorf("a node that came into the group: %q", got)
	}
	if got := w.pointer(t, "web-1"); got != "live uuid-of-one 0" {
		t.Errorf("a node that left the group: %q", got)
	}
}

func TestReleaseIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld()
	refuse := func(node fleet.Certname, o deliver.Order, want fault.Kind) {
		t.Helper()
		if _, _, err := w.Release(t.Context(), node, o, ""); err == nil || fault.Of(err) != want {
			t.Errorf("release to %s: %v, want %s", node, err, want)
		}
	}
	refuse("web-1", deliver.Order{Catalog: delivertest.CatalogOf("one")}, fault.Conflict)
	w.set(t, deliver.ModeSet{Node: "web-1", Mode: deliver.Released})
	refuse("web-1", deliver.Order{}, fault.Invalid)
	w.release(t, "web-1", "one")
	if err := w.Pin(t.Context(), "web-1", "ann", "waits"); err != nil {
		t.Fatal(err)
	}
	refuse("web-1", deliver.Order{Catalog: delivertest.CatalogOf("two")}, fault.Conflict)
	if err := w.Pin(t.Context(), "web-1", "ann", ""); err != nil {
		t.Fatal(err)
	}
	w.release(t, "web-1", "two")
}

func TestMayHave(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.Gave("web-1", delivertest.CatalogOf("zero"), 1)
	w.set(t, deliver.ModeSet{Node: "web-1", Mode: deliver.Released})
	w.release(t, "web-1", "one")
	w.store.Gave("web-1", delivertest.CatalogOf("staged"), 1)
	w.store.Gave("web-2", delivertest.CatalogOf("other"), 1)
	for text, want := range map[string]bool{"zero": true, "one": true, "staged": false, "other": false} {
		if got, err := w.MayHave(t.Context(), "web-1", delivertest.CatalogOf(text).Digest); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
}

func TestWhatWasNotPromotedIsPromotedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.setting = deliver.Released
		w.shown.Fail(errors.New("the disk is full"))
		for i := range 250 { // more than are read at once
			w.release(t, fleet.Certname(fmt.Sprintf("web-%03d", i)), "one")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		<-time.After(30 * time.Second)
		w.shown.Fail(nil)
		if got := w.shown.Of("web-000"); got.Number != 0 {
			t.Errorf("promoted too early: %+v", got)
		}
		<-time.After(31 * time.Second)
		for i := range 250 {
			if node := fleet.Certname(fmt.Sprintf("web-%03d", i)); w.shown.Of(node).Number != 1 {
				t.Errorf("%s is not promoted", node)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	live := deliver.Pointer{Mode: deliver.Live, UUID: "u", Catalog: "c"}
	held := deliver.Pointer{Mode: deliver.Released, UUID: "u", Catalog: "c"}
	for name, c := range map[string]struct {
		p    deliver.Pointer
		a    deliver.Applied
		want deliver.State
	}{
		"nothing said":                        {held, deliver.Applied{}, deliver.Unknown},
		"the pointer's":                       {held, deliver.Applied{UUID: "u", At: since}, deliver.Current},
		"the same catalog of another version": {live, deliver.Applied{UUID: "v", Catalog: "c", At: since}, deliver.Current},
		"an older generation":                 {held, deliver.Applied{UUID: "v", Catalog: "b", Generation: 3, At: since.Add(time.Hour)}, deliver.Behind},
		"an older catalog":                    {live, deliver.Applied{UUID: "v", Catalog: "b", At: since.Add(time.Hour)}, deliver.Behind},
		"a staged one":                        {held, deliver.Applied{UUID: "v", Catalog: "b", At: since.Add(time.Hour)}, deliver.Foreign},
		"a stranger's":                        {held, deliver.Applied{UUID: "v", At: since.Add(time.Hour)}, deliver.Foreign},
		"a forgotten one":                     {held, deliver.Applied{UUID: "v", At: since.Add(-time.Hour)}, deliver.Behind},
	} {
		if got := deliver.Judge(c.p, since, c.a); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestOnlyWhatWasReleasedIsHad: whatever happens, a node in released mode has what was
// released to it last, or what it had when it came; and its generations are numbered
// without gaps.
func TestOnlyWhatWasReleasedIsHad(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.groups.Put(deliver.Membership{Group: "g", Name: "G", Depth: 1}, "a")
		had := map[fleet.Certname]string{}    // what a node in released mode must have
		newest := map[fleet.Certname]string{} // what was compiled last
		mode := map[fleet.Certname]deliver.Mode{"a": deliver.Live, "b": deliver.Live}
		own, group := map[fleet.Certname]deliver.Mode{}, deliver.Mode("")
		next := 0
		for range rapid.IntRange(1, 30).Draw(t, "acts") {
			node := fleet.Certname(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"))
			picked := deliver.Mode(rapid.SampledFrom([]string{"", "live", "released"}).Draw(t, "mode"))
			switch rapid.SampledFrom([]string{"compile", "release", "own", "group", "setting"}).Draw(t, "act") {
			case "compile":
				next++
				newest[node] = fmt.Sprint(next)
				w.store.Gave(node, delivertest.CatalogOf(newest[node]), 1)
			case "release":
				next++
				o := deliver.Order{Catalog: delivertest.CatalogOf(fmt.Sprint(next)), By: "ann"}
				_, done, err := w.Release(context.Background(), node, o, "")
				if (err == nil) != (mode[node] == deliver.Released) || done != (err == nil) {
					t.Fatalf("release to %s in %s mode: %v %v", node, mode[node], done, err)
				}
				if done {
					had[node] = fmt.Sprint(next)
				}
			case "own":
				own[node] = picked
				w.setIn(t, deliver.ModeSet{Node: node, Mode: picked})
			case "group":
				group = picked
				w.setIn(t, deliver.ModeSet{Group: "g", Mode: picked})
			case "setting":
				if picked != "" {
					w.setting = picked
				}
			}
			for _, node := range []fleet.Certname{"a", "b"} {
				is := w.setting
				if node == "a" && group != "" {
					is = group
				}
				if own[node] != "" {
					is = own[node]
				}
				if is == deliver.Released && mode[node] == deliver.Live {
					if had[node] = newest[node]; had[node] == "" {
						had[node] = w.headOf(t, node)
					}
				}
				mode[node] = is
				want := newest[node]
				if is == deliver.Released {
					want = had[node]
				}
				p, err := w.Pointer(context.Background(), node)
				switch {
				case want == "" && fault.Of(err) != fault.NotFound, want == "" && err == nil:
					t.Fatalf("%s in %s mode: %+v %v, want nothing", node, is, p, err)
				case want != "" && (err != nil || p.Mode != is || p.UUID != "uuid-of-"+want):
					t.Fatalf("%s in %s mode: %+v %v, want %s", node, is, p, err, want)
				}
				list, _ := w.store.Generations(context.Background(), node)
				for i, g := range list {
					if g.Number != int64(len(list)-i) {
						t.Fatalf("generations of %s: %+v", node, list)
					}
				}
			}
		}
	})
}

// headOf is what the newest generation of a node is.
func (w *world) headOf(t *rapid.T, node fleet.Certname) string {
	s, err := w.store.Standing(context.Background(), node)
	if err != nil {
		t.Fatal(err)
	}
	if s.Head == nil {
		return ""
	}
	return s.Head.UUID[len("uuid-of-"):]
}

func (w *world) setIn(t *rapid.T, m deliver.ModeSet) {
	if _, err := w.SetMode(context.Background(), m); err != nil {
		t.Fatal(err)
	}
}

// Servers that hear of each other know at once which mode was set elsewhere.
func TestAModeThatWasSetElsewhereIsHeardOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var relays [2]*hint.Relay
		var services [2]*deliver.Service
		for i := range relays {
			relays[i] = hint.NewRelay(func(data []byte) error { relays[1-i].Heard(data); return nil })
			parts := w.Parts
			parts.Relay = relays[i]
			services[i] = deliver.NewService(parts)
		}
		for _, r := range relays {
			go func() { _ = r.Run(ctx) }()
		}
		released := func(s *deliver.Service) bool {
			t.Helper()
			in, err := s.InReleased(t.Context(), []fleet.Certname{"web-1"})
			if err != nil {
				t.Fatal(err)
			}
			return in["web-1"]
		}
		if released(services[0]) || released(services[1]) {
			t.Fatal("it is in released mode")
		}
		if _, err := services[0].SetMode(ctx, deliver.ModeSet{Node: "web-1", Mode: deliver.Released}); err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
		if !released(services[0]) || !released(services[1]) {
			t.Errorf("in released mode here: %t, elsewhere: %t", released(services[0]), released(services[1]))
		}
	})
}

// changing is a store in which modes change while they are read.
type changing struct {
	deliver.Store

	meanwhile func()
}

func (c *changing) Modes(ctx context.Context) (groups []deliver.GroupMode, nodes int, err error) {
	groups, nodes, err = c.Store.Modes(ctx)
	if do := c.meanwhile; do != nil {
		c.meanwhile = nil
		do()
	}
	return groups, nodes, err
}

// Who reads the modes while one is set does not have everybody else believe in the old ones afterwards.
func TestModesFromBeforeAChangeAreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld()
	store := &changing{Store: w.store}
	w.Store = store
	store.meanwhile = func() { w.set(t, deliver.ModeSet{Node: "web-1", Mode: deliver.Released}) }
	for range 2 { // the first one began before the change
		if _, err := w.InReleased(t.Context(), []fleet.Certname{"web-1"}); err != nil {
			t.Fatal(err)
		}
	}
	if in, err := w.InReleased(t.Context(), []fleet.Certname{"web-1"}); err != nil || !in["web-1"] {
		t.Errorf("it is in released mode: %v, %v", in, err)
	}
}

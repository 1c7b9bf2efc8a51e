package preview_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
)

// installations is preview.Engines: what is deployed, the newest first, the previewed version's engine, and those of other versions.
type installations struct {
	deployed []code.Version
	own      string
	others   map[fleet.Digest]string
}

func (i installations) EngineOf(_ context.Context, _ fleet.Environment, version fleet.Digest) (string, error) {
	name := i.own
	if version != previewed {
		name = i.others[version]
	}
	if name == "" {
		return "", fault.New(fault.NotFound, "it is not kept")
	}
	return name, nil
}

// previewed is the version that previews are of.
const previewed = fleet.Digest("v")

func (i installations) Deployed(context.Context, fleet.Environment) ([]code.Version, error) {
	return i.deployed, nil
}

// What counts is which engine compiled what the node has; if that is not known, which one the environment's code had when the preview was made, whatever
// was deployed since.
func TestPreviewsAcrossEngines(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC) }
	deployed := []code.Version{{Engine: "eight", DeployedAt: at(12)}, {Engine: "seven", DeployedAt: at(10)}}
	for _, c := range []struct {
		name    string
		engines preview.Engines
		base    string
		made    time.Time
		want    bool
	}{
		{"one engine", nil, "", at(11), false},
		{"the step", installations{deployed, "eight", nil}, "", at(11), true},
		{"after the step", installations{deployed, "eight", nil}, "", at(13), false},
		{"and back", installations{deployed, "seven", nil}, "", at(13), true},
		{"before any code", installations{deployed, "eight", nil}, "", at(9), false},
		{"a version that is not kept", installations{deployed, "", nil}, "seven", at(11), false},
		{"a node that has taken the step already", installations{deployed, "eight", nil}, "eight", at(11), false},
		{"a node that has not taken it", installations{deployed, "eight", nil}, "seven", at(13), true},
	} {
		s := preview.NewService(preview.Config{Engines: c.engines})
		if got, err := s.AcrossEngines(t.Context(), preview.Preview{Version: previewed, CreatedAt: c.made}, preview.Share{BaseEngine: c.base}); err != nil ||
			got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// Each node is judged by the engine that compiled its own catalog, also after a restart; the environment's is taken for a version that is not kept.
func TestEachNodeHasItsEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := &previewtest.World{Fates: map[fleet.Certname]previewtest.Fate{}}
		for name, version := range map[fleet.Certname]fleet.Digest{"old": "v7", "fresh": "v8", "forgotten": "gone", "late": "v8"} {
			world.Fates[name] = previewtest.Fate{Stands: preview.Compiled, Fresh: "bbb", Base: "aaa", BaseVersion: version}
		}
		late := world.Fates["late"]
		late.Asks = 5
		world.Fates["late"] = late
		store := previewtest.NewStore()
		order := func() *preview.Service {
			s := service(store, world)
			s.Engines = installations{[]code.Version{{Engine: "seven"}}, "eight", map[fleet.Digest]string{"v7": "seven", "v8": "eight"}}
			return s
		}
		p, err := order().Create(t.Context(), ann, preview.Order{Environment: "production", Version: previewed, InWords: "all"})
		if err != nil {
			t.Fatal(err)
		}
		for _, life := range []time.Duration{1500 * time.Millisecond, 10 * time.Minute} { // the second server reads what the first one knew
			ctx, stop := context.WithTimeout(t.Context(), life)
			if err := order().Run(ctx); err != nil {
				t.Error(err)
			}
			stop()
		}
		groups, err := store.WholeGroups(t.Context(), p.ID, preview.GroupPage{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		shares, err := store.PreviewShares(t.Context(), p.ID, preview.SharePage{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]fleet.Certname{}
		for _, g := range groups {
			for _, number := range g.Nodes {
				got[g.Change.Key] = append(got[g.Change.Key], shares[number].Node)
			}
		}
		want := map[string][]fleet.Certname{"aaa -> bbb": {"fresh", "late"}, "aaa -> bbb by another engine": {"forgotten", "old"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("nodes by their change (-want +got):\n%s", diff)
		}
	})
}

// A node whose changes are all noise of the engine, beside what rules hide, is counted apart.
func TestNodesThatChangeInNoiseOfTheEngine(t *testing.T) {
	t.Parallel()
	form := change("port", "changed", "Service", "web", 3, "port")
	form.EngineNoise = []string{"a number as text"}
	s, p := readyWith(t,
		preview.Group{Change: form, Nodes: []uint32{0, 1, 2}},
		preview.Group{Change: change("motd", "changed", "File", "/etc/motd", 1, "content"), Nodes: []uint32{1}},
		preview.Group{Change: change("issue", "changed", "File", "/etc/issue", 2, "content"), Nodes: []uint32{2, 3}},
	)
	s.Engines = installations{[]code.Version{{Engine: "seven"}}, "eight", nil}
	counted := func(what string, want ...uint32) {
		t.Helper()
		quiet, err := s.Quiet(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, quiet.Form); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", what, diff)
		}
	}
	counted("without rules", 0)
	if _, err := s.SetNoise(t.Context(), ann, "motd", preview.Noise{Title: "/etc/motd"}); err != nil {
		t.Fatal(err)
	}
	counted("with a rule", 0, 1)
	if _, err := s.SetNoise(t.Context(), ann, "web", preview.Noise{Title: "web"}); err != nil {
		t.Fatal(err)
	}
	counted("with a rule that hides the noise of the engine")
}

package preview_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// installations is preview.Engines: what is deployed, the newest first, and the previewed version's engine.
type installations struct {
	deployed []code.Version
	own      string
}

func (i installations) EngineOf(context.Context, fleet.Environment, fleet.Digest) (string, error) {
	if i.own == "" {
		return "", fault.New(fault.NotFound, "it is not kept")
	}
	return i.own, nil
}

func (i installations) Deployed(context.Context, fleet.Environment) ([]code.Version, error) {
	return i.deployed, nil
}

// What counts is which engine the environment's code had when the preview was made, whatever was deployed since.
func TestPreviewsAcrossEngines(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC) }
	deployed := []code.Version{{Engine: "eight", DeployedAt: at(12)}, {Engine: "seven", DeployedAt: at(10)}}
	for _, c := range []struct {
		name    string
		engines preview.Engines
		made    time.Time
		want    bool
	}{
		{"one engine", nil, at(11), false},
		{"the step", installations{deployed, "eight"}, at(11), true},
		{"after the step", installations{deployed, "eight"}, at(13), false},
		{"and back", installations{deployed, "seven"}, at(13), true},
		{"before any code", installations{deployed, "eight"}, at(9), false},
		{"a version that is not kept", installations{deployed, ""}, at(11), false},
	} {
		s := preview.NewService(preview.Config{Engines: c.engines})
		if got, err := s.AcrossEngines(t.Context(), preview.Preview{CreatedAt: c.made}); err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
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
	s.Engines = installations{[]code.Version{{Engine: "seven"}}, "eight"}
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

package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/sim"
)

// releaseNodes is how many simulated nodes a release of the chaos has.
const releaseNodes = 24

// The server is killed the moment each state of a release, and of its waves, is seen for the first time: while it waits to be
// approved, releases, rehearses, runs, waits to be promoted, is paused by hand, and while it is aborted. It goes
// on by itself: every node applies what was previewed, each in its wave and once.
func TestChaosOfReleases(t *testing.T) {
	begin(t, 90)
	c := newReleaseChaos(t)
	first := c.create(t, c.preview(t, "two"), api.ReleaseOptions{Waves: []string{"2", "30%", "rest"}, Promote: "manual", NoopFirst: true, WaitOffline: 120})
	paused := false
	last := c.follow(t, first, func(r api.Release) {
		switch {
		case r.State == "paused" && r.Hold == "promotion":
			c.act(t, "promote", first)
		case r.State == "paused" && r.Hold == "by_hand":
			c.act(t, "resume", first)
		case r.State == "running" && r.Wave == 2 && !paused:
			paused = true
			c.act(t, "pause", first)
		}
	})
	if last.State != "done" || last.Counts["changed"] != releaseNodes {
		t.Errorf("the release is %s (%s), %v", last.State, last.Reason, last.Counts)
	}
	c.judge(t, first)

	second := c.create(t, c.preview(t, "three"), api.ReleaseOptions{Waves: []string{"2", "rest"}, Promote: "manual", WaitOffline: 120})
	aborted := c.follow(t, second, func(r api.Release) {
		if r.State == "paused" && r.Hold == "promotion" {
			c.act(t, "abort", second)
		}
	})
	if aborted.State != "aborted" || aborted.Counts["changed"] != 2 {
		t.Errorf("the aborted release is %s (%s), %v", aborted.State, aborted.Reason, aborted.Counts)
	}
	back := c.create(t, 0, api.ReleaseOptions{Waves: []string{"1", "rest"}, WaitOffline: 120}, second)
	if last := c.follow(t, back, func(api.Release) {}); last.State != "done" || last.Counts["changed"] != 2 {
		t.Errorf("the roll back is %s (%s), %v", last.State, last.Reason, last.Counts)
	}
	t.Logf("killed at %d states: %s", len(c.seen), strings.Join(c.order, "; "))
	if len(c.seen) < 8 {
		t.Error("the chaos has shown too little")
	}
	checkIntegrity(t, c.server)
}

type releaseChaos struct {
	server *server
	client *api.Client
	fleet  *sim.Fleet
	names  []string
	seen   map[string]bool // states in which the server was killed
	order  []string
}

func (c *releaseChaos) code(t *testing.T, word string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), "notify { '"+word+"': }\n")
	return dir
}

func newReleaseChaos(t *testing.T) *releaseChaos {
	t.Helper()
	c := &releaseChaos{names: sim.Names(releaseNodes, "waves.test"), seen: map[string]bool{}}
	c.server = startRaced(t, "--autosign", "all", "--access-log=false", "--listen", steadyAddress(t), "--max-load", "0", "--delivery-mode", "released", "--job-poll-interval", "3s")
	c.client = apiClient(t, c.server)
	enroller, err := sim.NewEnroller(c.server.url, c.server.roots(t))
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	c.fleet = sim.New(sim.Config{
		URLs: []string{"wss://localhost:" + c.server.port()}, Names: c.names, Catalogs: c.server.url, CatalogPoll: 10 * time.Second,
		Identity:   func(ctx context.Context, name string) (*tls.Config, error) { return enroller.Enrol(ctx, name) },
		FirstPause: 100 * time.Millisecond, LongestPause: time.Second,
	})
	if err := c.fleet.Enrol(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.server.tutti(t, "code", "deploy", "production", c.code(t, "one"))
	if err := c.fleet.SubmitFacts(t.Context(), c.server.url, 1); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.fleet.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := c.fleet.AwaitConnected(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	first := c.preview(t, "one")
	id := c.create(t, first, api.ReleaseOptions{WaitOffline: 120})
	if last := c.until(t, id); last.State != "done" {
		t.Fatalf("the first release is %s: %s, %v", last.State, last.Reason, last.Counts)
	}
	return c
}

// preview previews code and returns its number.
func (c *releaseChaos) preview(t *testing.T, word string) int64 {
	t.Helper()
	return c.previewOf(t, c.code(t, word))
}

func (c *releaseChaos) previewOf(t *testing.T, dir string) int64 {
	t.Helper()
	out := c.server.tutti(t, "preview", "create", "production", "--ref", dir)
	var id int64
	if _, err := fmt.Sscanf(out, "Preview %d ", &id); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return id
}

// create makes a release of a preview, or a roll back of a release.
func (c *releaseChaos) create(t *testing.T, preview int64, options api.ReleaseOptions, rollsBack ...string) string {
	t.Helper()
	var made api.ReleaseReport
	var err error
	if len(rollsBack) > 0 {
		of, _ := strconv.ParseInt(rollsBack[0], 10, 64)
		err = c.client.Call(t.Context(), api.ReleaseRollback, api.RollbackRequest{Release: of, ReleaseOptions: options}, &made)
	} else {
		err = c.client.Call(t.Context(), api.ReleaseCreate, api.ReleaseCreateRequest{Preview: preview, Targets: api.JobTargets{Nodes: c.names}, ReleaseOptions: options}, &made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// act does something with a release, and again if nobody was there: acts may be done twice.
func (c *releaseChaos) act(t *testing.T, what, id string) {
	t.Helper()
	if r := c.server.try(t, "release", what, id); r.code != 0 {
		t.Logf("tutti release %s %s: %s", what, id, r.text())
	}
}

func (c *releaseChaos) until(t *testing.T, id string) api.Release {
	t.Helper()
	return c.follow(t, id, nil)
}

// follow follows a release to its end. With a person, who acts on what is seen, the server is killed first in each new state.
func (c *releaseChaos) follow(t *testing.T, id string, person func(api.Release)) api.Release {
	t.Helper()
	var r api.ReleaseReport
	eventually(t, 2*patience, "release "+id+" ends", func() bool {
		var now api.ReleaseReport // of its own: what an answer leaves out must not stay from the one before
		if c.client.Call(t.Context(), api.ReleaseShow, api.ReleaseShowRequest{Release: id}, &now) != nil {
			return false
		}
		r = now
		if r.EndedAt != nil || person == nil {
			return r.EndedAt != nil
		}
		if state := stateOf(r.Release); !c.seen[state] {
			c.seen[state] = true
			c.order = append(c.order, state)
			if err := c.server.crash(); err != nil {
				t.Error(err)
			}
			if err := c.server.start(); err != nil {
				t.Fatal(err)
			}
		}
		person(r.Release)
		return false
	})
	return r.Release
}

func stateOf(r api.Release) string {
	phase := "nothing has begun"
	if r.Wave > 0 {
		phase = r.Waves[r.Wave-1].State
	}
	return strings.Join([]string{r.Kind, r.State, r.Hold, phase}, " ")
}

// judge looks whether every node applied the catalog that it was to have, in one run beside the rehearsal.
func (c *releaseChaos) judge(t *testing.T, id string) {
	t.Helper()
	targets := releaseTargets(t, c.client, id)
	for _, name := range c.names {
		applied := 0
		for _, a := range c.fleet.Recorder().Applied(name) {
			if a.Catalog == targets[name].Catalog && !a.Noop {
				applied++
			}
		}
		if target := targets[name]; target.State != "changed" || applied != 1 {
			t.Errorf("%s is %s (%s) and applied its catalog %d times, want once", name, target.State, target.Reason, applied)
		}
	}
}

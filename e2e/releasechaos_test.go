package e2e_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/sim"
)

// releaseNodes is how many simulated nodes a release of the chaos has. One more is known but never there.
const releaseNodes = 16

// The server is killed in each state that a release, its waves and its targets can be in: while it waits to be approved, for a
// freeze to end, a rule to change, a budget, a promotion or a person; while it releases, rehearses, runs, soaks, cannot go on, and is aborted; with
// targets in each state that there is. It goes on by itself, and ends as if nothing had happened: every node that can applies what was
// previewed, each in its wave and once.
func TestChaosOfReleases(t *testing.T) {
	begin(t, 90)
	c := newReleaseChaos(t)
	c.held(t)
	third := c.preview(t, "three")
	failing := c.failing(t, third)
	c.back(t, failing)
	c.late(t, third)
	c.trouble(t)
	t.Logf("the server was killed %d times; how often in which state:\n%s", c.count, c.kills.table())
	for _, state := range releaseStates() {
		if c.kills[state] == 0 {
			t.Errorf("the server was never killed in the state %q", state)
		}
	}
	checkIntegrity(t, c.server)
}

// held has a release wait for all that can hold it: an approval, a freeze, a promotion, a rule and a person.
func (c *releaseChaos) held(t *testing.T) {
	t.Helper()
	bob, now, paused := c.operator(t, "bob"), time.Now().UTC(), false
	c.server.tutti(t, "policy", "freeze", "set", "move", "--from", now.Add(-time.Hour).Format("2006-01-02 15:04"),
		"--to", now.Add(24*time.Hour).Format("2006-01-02 15:04"), "--zone", "UTC", "--why", "the data centre moves")
	id := c.create(t, c.preview(t, "two"), api.ReleaseOptions{
		Waves: []string{"2", "30%", "rest"}, Promote: "manual", NoopFirst: true, WaitOffline: 120, ApproveBy: "operator",
	})
	last := c.follow(t, id, func(r stands) {
		switch {
		case r.State == release.WaitingApproval:
			if by := tuttiWith(t, bob, "release", "approve", id, "--why", "seen"); by.code != 0 {
				t.Logf("bob approves: %s", by.text())
			}
		case r.Hold == release.Frozen:
			c.try(t, "policy", "freeze", "remove", "move")
		case r.Hold == release.ForPromoter:
			if r.Wave == 1 && c.kills["paused for policy"] == 0 {
				c.server.tutti(t, "policy", "set", "stop", "--when", "true", "--message", "somebody said so")
			}
			c.try(t, "release", "promote", id)
		case r.Hold == release.ByPolicy:
			c.try(t, "policy", "remove", "stop")
			c.try(t, "release", "resume", id)
		case r.Hold == release.ByHand:
			c.try(t, "release", "resume", id)
		case r.State == release.Running && r.Wave == 2 && !paused:
			paused = true
			c.try(t, "release", "pause", id)
		}
	})
	c.isEnd(t, last, release.Done, release.Counts{release.Changed: releaseNodes})
	c.judge(t, id)
}

// failing has a release pause because of its budget, and then end with nodes of all kinds.
func (c *releaseChaos) failing(t *testing.T, preview int64) (id string) {
	t.Helper()
	superseded, refused, strays := c.names[5], c.names[6], c.names[2]
	if err := sim.SubmitFacts(t.Context(), c.server.url, superseded, c.identity[superseded], 2, map[string]any{"wave": 2}); err != nil {
		t.Fatal(err)
	}
	c.server.tutti(t, "catalog", "pin", refused, "--why", "it is looked at")
	want := release.Counts{}
	for i, name := range c.names {
		switch {
		case name == superseded:
			want[release.Superseded]++
		case name == refused:
			want[release.Refused]++
		case name == strays:
			c.ends.Store(name, sim.Strays)
			want[release.Foreign]++
		case i%2 == 1:
			c.ends.Store(name, sim.Breaks)
			want[release.Failed]++
		case i%4 == 0:
			c.ends.Store(name, sim.Settled)
			want[release.Unchanged]++
		default:
			want[release.Changed]++
		}
	}
	none := 0
	id = c.create(t, preview, api.ReleaseOptions{
		Waves: []string{"50%", "rest"}, Promote: "soak", Soak: 3, MaxFailures: &none, Concurrency: 1, WaitOffline: 120,
	})
	c.isEnd(t, c.follow(t, id, func(r stands) {
		if r.Hold == release.OverBudget {
			c.try(t, "release", "resume", id, "--max-failures", "100")
		}
	}), release.DoneWithFailures, want)
	c.ends.Clear()
	c.server.tutti(t, "catalog", "unpin", refused)
	return id
}

// back rolls a release back; what failed then was given its catalog, too.
func (c *releaseChaos) back(t *testing.T, of string) {
	t.Helper()
	id := c.create(t, 0, api.ReleaseOptions{Waves: []string{"1", "rest"}, WaitOffline: 120}, of)
	c.isEnd(t, c.follow(t, id, nobody), release.Done, release.Counts{release.Changed: releaseNodes - 2})
}

// late releases to a node that is not there and to one that never ends; the second is rolled back, and that is aborted.
func (c *releaseChaos) late(t *testing.T, preview int64) {
	t.Helper()
	hangs := c.names[8]
	c.ends.Store(hangs, sim.Hangs)
	id := c.createFor(t, preview, api.ReleaseOptions{WaitOffline: 1}, c.absent)
	c.isEnd(t, c.follow(t, id, nobody), release.DoneWithFailures, release.Counts{release.Offline: 1})
	id = c.createFor(t, preview, api.ReleaseOptions{WaitOffline: 120, Timeout: 2}, hangs)
	c.isEnd(t, c.follow(t, id, nobody), release.DoneWithFailures, release.Counts{release.TimedOut: 1})
	id = c.create(t, 0, api.ReleaseOptions{WaitOffline: 120}, id)
	last := c.follow(t, id, func(r stands) {
		switch {
		case r.State == release.Stopping:
			c.try(t, "release", "abort", id, "--kill", "--no-wait")
		case r.Counts[release.AtWork] > 0:
			c.try(t, "release", "abort", id, "--no-wait")
		}
	})
	c.isEnd(t, last, release.Aborted, release.Counts{release.Failed: 1})
	c.ends.Clear()
}

// trouble releases catalogs of two nodes that wait for each other: no job can run them.
func (c *releaseChaos) trouble(t *testing.T) {
	t.Helper()
	two := c.names[:2]
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), fmt.Sprintf(`
@@notify { "from ${trusted['certname']}": }
@@file { "/from-${trusted['certname']}": }
case $trusted['certname'] {
  '%[1]s': { Notify <<| title == 'from %[2]s' |>> }
  '%[2]s': { File <<| title == '/from-%[1]s' |>> }
  default: {}
}
`, two[0], two[1]))
	id := c.createFor(t, c.previewOf(t, dir), api.ReleaseOptions{WaitOffline: 120}, two...)
	reason := ""
	last := c.follow(t, id, func(r stands) {
		if r.Hold == release.Trouble {
			reason = r.Reason
			c.try(t, "release", "abort", id, "--no-wait")
		}
	})
	c.isEnd(t, last, release.Aborted, release.Counts{release.Skipped: 2})
	for _, target := range decode[api.List[api.ReleaseTarget]](t, c.server, "release", "nodes", id).Items {
		has := decode[api.Delivery](t, c.server, "catalog", "generations", target.Name)
		same(t, "what "+target.Name+" has, which was not run", target.Base, has.Pointer.Catalog)
	}
	if !strings.Contains(reason, "wave 1 could not be run") || !strings.Contains(reason, "waits for") {
		t.Errorf("the release was in trouble because %q", reason)
	}
}

// nobody acts on what is seen.
func nobody(stands) {}

func (c *releaseChaos) isEnd(t *testing.T, r stands, state release.State, counts release.Counts) {
	t.Helper()
	if diff := cmp.Diff(counts, r.Counts); r.State != state || diff != "" {
		t.Errorf("release %d is %s (%s), want %s; targets (-want +got):\n%s", r.ID, r.State, r.Reason, state, diff)
	}
}

type releaseChaos struct {
	server   *server
	client   *api.Client
	fleet    *sim.Fleet
	names    []string
	absent   string
	identity map[string]*tls.Config
	ends     sync.Map // how a node's ordered runs end, by its name
	rows     *sql.DB  // of the server
	kills    kills
	count    int
}

func (c *releaseChaos) code(t *testing.T, word string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"),
		"notify { \""+word+" ${facts['wave']}\": }\n@@notify { \"from ${trusted['certname']}\": }\n@@file { \"/from-${trusted['certname']}\": }\n")
	return dir
}

func newReleaseChaos(t *testing.T) *releaseChaos {
	t.Helper()
	names := sim.Names(releaseNodes+1, "waves.test")
	c := &releaseChaos{names: names[:releaseNodes], absent: names[releaseNodes], kills: kills{}, identity: map[string]*tls.Config{}}
	c.server = startRaced(t, "--autosign", "all", "--access-log=false", "--listen", steadyAddress(t), "--max-load", "0", "--delivery-mode", "released",
		"--job-poll-interval", "3s")
	c.client = apiClient(t, c.server)
	enroller, err := sim.NewEnroller(c.server.url, c.server.roots(t))
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	for _, name := range names {
		if c.identity[name], err = enroller.Enrol(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	c.fleet = sim.New(sim.Config{
		URLs: []string{"wss://localhost:" + c.server.port()}, Names: c.names, Catalogs: c.server.url, CatalogPoll: 10 * time.Second,
		Identity:   func(_ context.Context, name string) (*tls.Config, error) { return c.identity[name], nil },
		FirstPause: 100 * time.Millisecond, LongestPause: time.Second,
		Ends: func(name string) sim.Ending {
			if ending, ok := c.ends.Load(name); ok {
				return ending.(sim.Ending) //nolint:forcetypeassert // nothing else is stored
			}
			return sim.Changes
		},
	})
	if err := c.fleet.Enrol(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.server.tutti(t, "code", "deploy", "--no-check", "production", c.code(t, "one"))
	if err := c.fleet.SubmitFacts(t.Context(), c.server.url, 1); err != nil {
		t.Fatal(err)
	}
	if err := sim.SubmitFacts(t.Context(), c.server.url, c.absent, c.identity[c.absent], 1, map[string]any{"wave": 1}); err != nil {
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
		made, err = api.ReleaseRollback.Call(t.Context(), c.client, api.RollbackRequest{Release: of, ReleaseOptions: options})
	} else {
		return c.createFor(t, preview, options, c.names...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// createFor makes a release of a preview for some nodes.
func (c *releaseChaos) createFor(t *testing.T, preview int64, options api.ReleaseOptions, nodes ...string) string {
	t.Helper()
	request := api.ReleaseCreateRequest{Preview: preview, Targets: api.JobTargets{Nodes: nodes}, ReleaseOptions: options}
	made, err := api.ReleaseCreate.Call(t.Context(), c.client, request)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// try does something that may have been done already.
func (c *releaseChaos) try(t *testing.T, args ...string) {
	t.Helper()
	if r := c.server.try(t, args...); r.code != 0 {
		t.Logf("tutti %s: %s", strings.Join(args, " "), r.text())
	}
}

// until waits for a release to end.
func (c *releaseChaos) until(t *testing.T, id string) (r api.Release) {
	t.Helper()
	eventually(t, 2*patience, "release "+id+" ends", func() bool {
		now, err := api.ReleaseShow.Call(t.Context(), c.client, api.ReleaseShowRequest{Release: id})
		r = now.Release
		return err == nil && r.EndedAt != nil
	})
	return r
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

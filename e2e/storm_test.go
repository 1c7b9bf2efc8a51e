//go:build soak

package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/sim"
)

// What is in the storm of facts and deployments.
const (
	stormNodes   = 200
	stormDials   = 60 // nodes whose catalog's own fact changes meanwhile
	stormAgents  = 2
	stormWorkers = 2
	stormDeploys = 5
	stormVictims = 160 // simulated nodes that one blow hits, at most
)

// blow is one of the things that happen in a storm.
type blow int

const (
	killServer blow = iota
	killRuby        // a zygote or a worker
	killAgent
	killNodes // simulated ones: their agents, or all that runs on them
	calm
)

func (b blow) String() string {
	return [...]string{"kill the server", "kill a Ruby process", "kill an agent", "kill simulated nodes", "nothing"}[b]
}

// stormMix is how often each comes.
var stormMix = map[blow]int{killServer: 4, killRuby: 10, killAgent: 4, killNodes: 8, calm: 3}

// blows is the order in which they come.
func blows(random *rand.Rand) []blow {
	var all []blow
	for b := killServer; b <= calm; b++ {
		all = append(all, slices.Repeat([]blow{b}, stormMix[b])...)
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// While code is deployed that touches one role at a time, and 200 nodes submit facts of which few matter,
// apply each new catalog, and stream what happens, the server, zygotes, workers, agents and nodes are killed. In the
// end nothing is left to do: every node has applied what a compilation from scratch gives, nothing was
// compiled that did not have to be, facts are as they were acknowledged, and each event of each run is there once, for
// who followed the stream and in the run's report, too.
func TestChaosOfCatalogs(t *testing.T) {
	begin(t, 170)
	s := newStorm(t)
	s.firstCatalogs(t)
	over, ended := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer ended()
	for _, n := range s.nodes {
		wait.Go(func() { n.live(over, s) })
	}
	deployed := make(chan struct{})
	go func() {
		defer close(deployed)
		s.deployAll(t)
	}()
	t.Cleanup(func() { <-deployed })
	for _, b := range blows(s.random) {
		<-time.After(time.Duration(s.random.IntN(1500)) * time.Millisecond)
		s.strike(t, b)
	}
	<-deployed
	ended()
	wait.Wait()
	s.settle(t)
	s.judge(t)
}

// storm is all that takes part.
type storm struct {
	seed   uint64
	random *rand.Rand
	server *server
	url    string // of the server, always
	code   string // directory of the control repository
	nodes  []*stormNode
	fleet  *sim.Fleet // of the same nodes: what applies their catalogs
	seen   *seenEvents
	agents []*daemon

	edition map[string]int // of each role's code
	touched int            // nodes of the roles that were deployed anew
	lost    int            // leases that may have been, at most
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	s := &storm{seed: chaosSeedOf(t), code: t.TempDir(), edition: map[string]int{}}
	s.random = rand.New(rand.NewPCG(s.seed, 2))
	s.server = startRaced(t, "--autosign", "all", "--access-log=false", "--listen", steadyAddress(t),
		"--compile-workers", fmt.Sprint(stormWorkers), "--max-load", "0", "--reuse-check", "0")
	s.url = s.server.url
	write(t, filepath.Join(s.code, "manifests/site.pp"), "$part = $facts['role'] ? { undef => 'web', default => $facts['role'] }\ninclude \"role::${part}\"\n")
	for _, role := range stormRoles {
		s.edit(t, role)
	}
	s.server.tutti(t, "code", "deploy", "--no-check", "production", s.code)
	s.enrol(t)
	s.startFleet(t)
	s.seen = followEvents(t, s.server)
	for i := range stormAgents {
		d := joinNode(t, s.server, fmt.Sprintf("real-%d.storm.test", i+1))
		d.start(t)
		s.agents = append(s.agents, d)
	}
	return s
}

var stormRoles = []string{"web", "db", "cache", "proxy", "build"}

// edit writes the next edition of a role's code. The catalog of a node has the edition and the fact dial.
func (s *storm) edit(t *testing.T, role string) {
	t.Helper()
	s.edition[role]++
	write(t, filepath.Join(s.code, "modules/role/manifests", role+".pp"), fmt.Sprintf(`class role::%s {
  $dial = $facts['dial']
  file { "/nonexistent/${trusted['certname']}": content => "edition %d, dial ${dial}\n" }
  Integer[1, 5].each |$n| { notify { "part ${n} of %[1]s": } }
}
`, role, s.edition[role]))
}

func (s *storm) enrol(t *testing.T) {
	t.Helper()
	enroller, err := sim.NewEnroller(s.server.url, s.server.roots(t))
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	s.nodes = make([]*stormNode, stormNodes)
	names := sim.Names(stormNodes, "storm.test")
	s.each(t, func(i int) error {
		identity, err := enroller.Enrol(t.Context(), names[i])
		if err != nil {
			return err
		}
		s.nodes[i] = newStormNode(names[i], stormRoles[i%len(stormRoles)], s.seed, i, identity)
		s.nodes[i].turns = i < stormDials
		return nil
	})
	t.Cleanup(func() {
		for _, n := range s.nodes {
			n.client.CloseIdleConnections()
		}
	})
}

// startFleet lets the nodes live that were enrolled.
func (s *storm) startFleet(t *testing.T) {
	t.Helper()
	identities := map[string]*tls.Config{}
	var names []string
	for _, n := range s.nodes {
		identities[n.name], names = n.identity, append(names, n.name)
	}
	s.fleet = sim.New(sim.Config{
		URLs: []string{"wss://localhost:" + s.server.port()}, Names: names, Seed: s.seed,
		Identity: func(_ context.Context, name string) (*tls.Config, error) { return identities[name], nil },
		Catalogs: s.url, ApplyAtOnce: true, Events: true, CatalogPoll: 10 * time.Second,
		FirstPause: 100 * time.Millisecond, LongestPause: time.Second,
	})
	if err := s.fleet.Enrol(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.fleet.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// each does something for every node, a few at a time.
func (s *storm) each(t *testing.T, do func(i int) error) {
	t.Helper()
	work, ctx := errgroup.WithContext(t.Context())
	work.SetLimit(8)
	for i := range stormNodes {
		work.Go(func() error {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // another one failed
			}
			return do(i)
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
}

// firstCatalogs gives every node facts, and waits until each has a catalog.
func (s *storm) firstCatalogs(t *testing.T) {
	t.Helper()
	s.each(t, func(i int) error { return s.nodes[i].submit(t.Context(), s.url) })
	var victims []int
	eventually(t, patience, "a node applies its first catalog", func() bool { victims = s.fleet.Applying(); return len(victims) > 0 })
	s.killNodes(sim.Reboot, victims)
	s.each(t, func(i int) error {
		_, err := s.nodes[i].pointer(t.Context(), s.url)
		return err
	})
}

func (s *storm) killNodes(how sim.Kind, victims []int) {
	for _, i := range victims {
		s.nodes[i].kill()
	}
	s.fleet.Do(sim.Step{Kind: how, Nodes: victims})
}

// deployAll deploys new editions of one role after the other, whatever becomes of the server.
func (s *storm) deployAll(t *testing.T) {
	t.Helper()
	random := rand.New(rand.NewPCG(s.seed, 3))
	for range stormDeploys {
		role := stormRoles[random.IntN(len(stormRoles))]
		s.edit(t, role)
		for _, n := range s.nodes {
			if n.role == role {
				s.touched++
			}
		}
		var r result
		if !within(patience, func() bool {
			r = s.server.try(t, "code", "deploy", "--no-check", "production", s.code)
			return r.code == 0
		}) {
			t.Errorf("deploy: %s", r.text())
		}
		<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
	}
}

// strike does what b says.
func (s *storm) strike(t *testing.T, b blow) {
	t.Helper()
	switch b {
	case killServer:
		s.lost += stormWorkers
		if err := s.server.crash(); err != nil {
			t.Error(err)
		}
		if err := s.server.start(); err != nil {
			t.Fatal(err)
		}
	case killRuby:
		children := below(s.server.cmd.Process.Pid)
		if len(children) == 0 {
			return // those that were killed are not back yet
		}
		s.lost += stormWorkers // with a zygote go all of its workers
		children[s.random.IntN(len(children))].kill()
	case killAgent:
		d := s.agents[s.random.IntN(len(s.agents))]
		if d.gone() {
			t.Errorf("the agent of %s had ended by itself", d.name)
		}
		d.kill()
		d.start(t)
	case killNodes:
		s.killNodes([]sim.Kind{sim.Crash, sim.Reboot}[s.random.IntN(2)], s.random.Perm(stormNodes)[:1+s.random.IntN(stormVictims)])
	case calm:
	}
}

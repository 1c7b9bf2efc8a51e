package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/hint/natsbus/natsbustest"
	"github.com/tutti-project/tutti/internal/sim"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

// What is in the havoc, unless the environment says otherwise: `make soak-cluster` has more of it.
const (
	havocFaults = 20
	havocNodes  = 30
)

// Three servers, PostgreSQL, NATS and an S3 store are killed, frozen and cut off from each other and from their nodes, disks fill, and clocks are an hour
// off, while nodes send facts and reports, are ordered, get other catalogs, and a release goes on. In the end nothing is lost that
// a client was told is there, nothing was executed twice, everything has ended, and the servers show the same.
func TestChaosOfServers(t *testing.T) {
	begin(t, 160)
	if !alone(t) {
		return
	}
	began := time.Now()
	h := newHavoc(t)
	stop := h.load(t)
	t.Logf("all is there after %s", time.Since(began).Round(time.Second))
	h.strike(t, planBlights(h.seed, numberOf(t, "TUTTI_CHAOS_FAULTS", havocFaults), h.clocks()))
	t.Logf("the last fault is over after %s", time.Since(began).Round(time.Second))
	h.recover(t)
	stop()
	t.Logf("all is well again, and nothing new begins after %s", time.Since(began).Round(time.Second))
	seen, there := h.settle(t)
	t.Logf("nothing is left to do after %s", time.Since(began).Round(time.Second))
	for _, b := range judgeHavoc(seen, there) {
		t.Errorf("BROKEN: %s: %s", b.invariant, b.what)
	}
	h.wasReal(t, seen)
	catchAll(t, h.seed, seen, there)
}

// numberOf is a number in the environment.
func numberOf(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q; it can be a number from 1 on", variable, text)
	}
	return n
}

// havoc is all that takes part.
type havoc struct {
	seed     uint64
	soak     bool // it is longer than the suite's
	network  *network
	database *database
	nats     *natsbustest.Server
	store    *blobs3test.Server
	servers  map[string]*watched
	clients  map[string]*api.Client // of the servers
	env      []string
	fleets   map[string]*sim.Fleet // by place
	nodes    []*havocNode
	agents   map[string]scheduled // by place
	disks    map[string]string    // by place: directories that can be filled
	code     editions             // that is deployed, and goes to nodes in live mode
	next     editions             // that is previewed and released
	marks    string               // directory in which real nodes write what they execute

	notes struct { // what clients were told; the rest of it is gathered in the end
		sync.Mutex
		heard
	}
}

func newHavoc(t *testing.T) *havoc {
	t.Helper()
	h := &havoc{
		seed: chaosSeedOf(t), soak: numberOf(t, "TUTTI_CHAOS_FAULTS", havocFaults) > havocFaults,
		servers: map[string]*watched{}, clients: map[string]*api.Client{}, fleets: map[string]*sim.Fleet{}, agents: map[string]scheduled{},
		disks: map[string]string{}, marks: t.TempDir(),
		code: editions{dir: t.TempDir()}, next: editions{dir: t.TempDir()},
	}
	h.notes.heard = heard{facts: map[string]factsTold{}, reports: map[string]bool{}, orders: map[string]orderTold{}, releases: map[string]releaseTold{}}
	h.network = newNetwork(t, slices.Concat(serverPlaces, []string{databasePlace, natsPlace, storePlace}, nodePlaces, agentPlaces)...)
	for _, name := range nodePlaces {
		for _, s := range serverPlaces {
			h.network.places[name].among = append(h.network.places[name].among, h.network.places[s])
		}
	}
	h.database = startDatabase(t, h.network, databasePlace)
	h.disks[databasePlace] = h.database.data()
	h.nats = natsbustest.StartAt(t, h.network.places[natsPlace].address+":4222", "", h.network.through(natsPlace)...)
	h.disks[storePlace] = mountTmpfs(t, "size=256m")
	h.store = blobs3test.StartAt(t, h.disks[storePlace], h.network.places[storePlace].address+":9000", h.network.through(storePlace)...)
	h.startServers(t)
	first := h.servers[serverPlaces[0]]
	h.code.write(t)
	first.tutti(t, "code", "deploy", "--no-check", "production", h.code.dir)
	h.startFleets(t, numberOf(t, "TUTTI_CHAOS_NODES", havocNodes))
	for _, place := range agentPlaces {
		h.startAgent(t, place)
	}
	for _, name := range serverPlaces {
		eventually(t, patience, "all nodes are connected, says "+name, func() bool { return connected(t, h.servers[name].server) == len(h.nodes)+len(agentPlaces) })
	}
	return h
}

// startServers starts all servers, each with a small disk of its own.
func (h *havoc) startServers(t *testing.T) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "cluster.key")
	writeKey(t, key)
	h.env = append(cleanEnv(),
		"TUTTI_NATS_URL=nats://"+natsPlace+":4222", "TUTTI_BLOBS_ENDPOINT=http://"+storePlace+":9000",
		"TUTTI_BLOBS_CREDENTIALS="+h.store.Credentials(blobs3test.SecretKey))
	program := binary
	if h.soak {
		program = buildSkewed(t)
	}
	starting := make([]*server, len(serverPlaces))
	for i, name := range serverPlaces {
		h.disks[name] = mountTmpfs(t, "size=96m")
		s := newServer(h.disks[name],
			"--cluster", "--cluster-key-file", key, "--database", h.database.url, "--blobs", "s3://tutti/content", "--blobs-cache-bytes", "16777216",
			"--listen", h.network.places[name].address+":8140", "--dns-alt-names", name+","+anyServer, "--autosign", "all", "--access-log=false",
			"--compile-workers", "1", "--max-load", "0", "--reuse-check", "0", "--job-poll-interval", "3s", "--facts-per-minute", "0", "--reports-per-minute", "0")
		s.env, s.host, s.log = h.env, name, filepath.Join(t.TempDir(), name+".log")
		s.program = h.network.program(name, program)
		s.showLog(t)
		starting[i] = s
		t.Cleanup(func() {
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
	}
	if err := starting[0].start(); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for _, s := range starting[1:] {
		wait.Go(func() {
			if err := s.start(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, s := range starting {
		h.servers[s.host], h.clients[s.host] = watch(t, s), apiClient(t, s)
	}
}

// clocks are whose clock can be an hour off: the database's, and in the soak the servers', for which all of tutti is compiled anew.
func (h *havoc) clocks() []string {
	if h.soak {
		return append([]string{databasePlace}, serverPlaces...)
	}
	return []string{databasePlace}
}

// editions is a control repository of which there is one edition after the other. Only one goroutine writes it.
type editions struct {
	dir    string
	number int
}

// write writes the next edition: all nodes of all parts get it.
func (e *editions) write(t *testing.T) {
	t.Helper()
	e.number++
	write(t, filepath.Join(e.dir, "manifests/site.pp"), `$which = $facts['story'] ? { 'basic' => 'real', default => $facts['part'] }
include "part::${which}"
`)
	class := func(name, body string) {
		write(t, filepath.Join(e.dir, "modules/part/manifests", name+".pp"),
			fmt.Sprintf("class part::%s {\n%s}\n", name, strings.ReplaceAll(body, "EDITION", strconv.Itoa(e.number))))
	}
	const simulated = `  file { "/nonexistent/${trusted['certname']}": content => "edition EDITION\n" }
  Integer[1, 3].each |$n| { notify { "part ${n}": } }
`
	class("live", simulated)
	class("released", strings.ReplaceAll(simulated, "edition", "released edition"))
	class("real", "  file { \"${facts['scratch']}/edition\": content => 'EDITION' }\n")
}

func (h *havoc) startFleets(t *testing.T, count int) {
	t.Helper()
	first := h.servers[serverPlaces[0]]
	enroller, err := sim.NewEnroller("https://"+first.host+":8140", first.roots(t))
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	names := sim.Names(count, "havoc.test")
	for i, place := range nodePlaces {
		at := h.network.places[place]
		mine := names[i*count/len(nodePlaces) : (i+1)*count/len(nodePlaces)]
		identities := map[string]*tls.Config{}
		for _, name := range mine {
			if identities[name], err = enroller.Enrol(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			h.nodes = append(h.nodes, newHavocNode(h, name, at, identities[name]))
		}
		urls := make([]string, len(serverPlaces))
		for j := range serverPlaces {
			urls[j] = "wss://" + serverPlaces[(i+j)%len(serverPlaces)] + ":8140"
		}
		fleet := sim.New(sim.Config{
			URLs: urls, Names: mine, Seed: h.seed, Dial: at.dial, Catalogs: "https://" + anyServer + ":8140", ApplyAtOnce: place == "live", Events: true,
			Identity:    func(_ context.Context, name string) (*tls.Config, error) { return identities[name], nil },
			CatalogPoll: 10 * time.Second, ConnectTimeout: 5 * time.Second, FirstPause: 100 * time.Millisecond, LongestPause: 2 * time.Second,
		})
		if err := fleet.Enrol(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.fleets[place] = fleet
		for _, n := range h.nodes[len(h.nodes)-len(mine):] {
			n.submit(t.Context())
			if place != "released" {
				continue
			}
			if _, err := api.NodeModeSet.Call(t.Context(), h.clients[serverPlaces[0]], api.NodeModeRequest{Name: n.name, Mode: "released"}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- fleet.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// startAgent starts a real node with a real Puppet.
func (h *havoc) startAgent(t *testing.T, place string) {
	t.Helper()
	name := place + ".havoc.test"
	first := h.servers[serverPlaces[0]]
	urls := make([]string, len(serverPlaces))
	for i, s := range serverPlaces {
		urls[i] = "https://" + s + ":8140"
	}
	own := machines
	own.puppet = func() ([]string, error) { return append(h.network.through(place), "puppet"), nil }
	h.disks[place] = mountTmpfs(t, "size=32m")
	n := own.joinScheduledIn(t, h.disks[place], first.server, name, "basic", "--servers", strings.Join(urls, ","),
		"--run-interval", "8760h", "--ping-interval", "5s", "--return-after", "20s", "--connect-timeout", "5s")
	n.program = h.network.program(place, binary)
	n.daemon.env = []string{"CHAOS_MARKS=" + h.marks, "CHAOS_NODE=" + name}
	n.start(t)
	h.agents[place] = n
}

// strike does what a plan says, when it says so. Each harm must have been done at least once: what is done to a server that has ended by itself harms nobody.
func (h *havoc) strike(t *testing.T, plan []blight) {
	t.Helper()
	began := time.Now()
	planned, done := map[harm]int{}, map[harm]int{}
	for _, m := range moments(plan) {
		<-time.After(time.Until(began.Add(m.when())))
		if m.ends {
			h.end(t, m.blight)
			continue
		}
		t.Logf("%5.1f s: %s", time.Since(began).Seconds(), m)
		planned[m.harm]++
		if h.begin(t, m.blight) {
			done[m.harm]++
		} else {
			t.Logf("fault %d harmed nobody", m.number)
		}
	}
	for _, harm := range slices.Sorted(maps.Keys(planned)) {
		if done[harm] == 0 {
			t.Errorf("%s (%d): planned %d times, and never done", harm, harm, planned[harm])
		}
	}
}

// begin begins a fault, and says whether it harms anybody.
func (h *havoc) begin(t *testing.T, b blight) bool {
	t.Helper()
	v := b.victim()
	switch b.harm {
	case serverKilled:
		return h.servers[v].die(t)
	case serverFrozen:
		return within(5*time.Second, func() bool { return h.servers[v].freeze(true) }) // it may be started again just now
	case databaseKilled:
		return h.database.kill()
	case databaseFrozen:
		return h.database.freeze(true)
	case natsKilled:
		h.nats.Kill()
	case storeKilled:
		h.store.Kill()
	case agentKilled:
		h.killAgent(t, v)
	case nodesCrashed:
		return h.crashNodes(b)
	case linkCut, linkHalfCut:
		for _, l := range b.ways() {
			h.network.cut(l, b.refuse)
		}
	case diskFull, otherDisk:
		return fill(t, h.disks[v])
	case clockSkewed:
		h.skew(t, v, b.offset)
	}
	return true
}

// end ends a fault.
func (h *havoc) end(t *testing.T, b blight) {
	t.Helper()
	v := b.victim()
	switch b.harm {
	case serverKilled:
		h.servers[v].live(t)
	case serverFrozen:
		h.servers[v].freeze(false)
	case databaseKilled:
		h.database.start()
		h.database.awaitUp()
	case databaseFrozen:
		h.database.freeze(false)
	case natsKilled:
		h.nats.Again()
	case storeKilled:
		h.store.Again()
	case agentKilled:
		h.agents[v].start(t)
	case nodesCrashed: // they come again by themselves
	case linkCut, linkHalfCut:
		for _, l := range b.ways() {
			h.network.heal(l, b.refuse)
		}
	case diskFull:
		empty(t, h.disks[v])
	case otherDisk:
		empty(t, h.disks[v])
		if v == databasePlace {
			t.Logf("PostgreSQL found its disk full: %v", h.database.found("No space left on device"))
			h.database.awaitUp()
		}
	case clockSkewed:
		h.skew(t, v, "+0")
	}
}

func (h *havoc) killAgent(t *testing.T, place string) {
	t.Helper()
	a := h.agents[place]
	if a.gone() {
		t.Errorf("the agent of %s had ended by itself", place)
	}
	a.kill()
}

// crashNodes says whether there is a node that it crashes.
func (h *havoc) crashNodes(b blight) bool {
	how := sim.Crash
	if b.reboot {
		how = sim.Reboot
	}
	var victims []int
	for i := range len(h.nodes) / len(nodePlaces) {
		if b.share>>(i%60)&1 == 1 {
			victims = append(victims, i)
		}
	}
	h.fleets[b.victim()].Do(sim.Step{Kind: how, Nodes: victims})
	return len(victims) > 0
}

// skew sets a clock off by -1h, +0 or +1h.
func (h *havoc) skew(t *testing.T, victim, offset string) {
	t.Helper()
	ahead, err := time.ParseDuration(strings.TrimSuffix(offset, "h") + "h")
	if err != nil {
		t.Fatal(err)
	}
	if victim == databasePlace {
		h.database.skew(offset)
		eventually(t, patience, "the clock of the database is off by "+offset, func() bool { return (h.database.ahead(t) - ahead).Abs() < 5*time.Second })
		return
	}
	s := h.servers[victim] // its machine starts again with another clock
	s.die(t)
	s.env = append(slices.Clone(h.env), fmt.Sprintf("%s=%.0f", clockAhead, ahead.Seconds()))
	s.live(t)
}

// recover waits until all is there again.
func (h *havoc) recover(t *testing.T) {
	t.Helper()
	for _, name := range serverPlaces {
		if !within(patience, h.servers[name].runs) {
			t.Errorf("%s is not well again", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.servers)) {
		for said, times := range h.servers[name].ends {
			t.Logf("%s ended by itself %d times: %.300s", name, times, said)
		}
	}
}

package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// crashRounds is how often the server is killed under load.
const crashRounds = 4

// acknowledged is what the server said it has; it must have it for good.
type acknowledged struct {
	mu           sync.Mutex
	facts        map[string]int  // newest round of facts by node
	reports      map[string]bool // transactions
	certificates map[string]bool
	versions     []string
}

func (a *acknowledged) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.reports) + len(a.certificates) + len(a.versions)
}

func (a *acknowledged) note(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// The server is killed at random moments while nodes send facts and reports, ask for
// certificates and catalogs, and code is deployed. Each start after it is clean, and
// nothing that was acknowledged is missing.
func TestKillServer(t *testing.T) {
	begin(t, 120)
	s := startRaced(t, "--autosign", "all", "--access-log=false")
	s.deploy(t, "production")
	nodes := make([]*node, 5)
	for i := range nodes {
		nodes[i] = enrol(t, s, fmt.Sprintf("crash-%d.test", i))
	}
	acks := &acknowledged{facts: map[string]int{}, reports: map[string]bool{}, certificates: map[string]bool{}}
	a := newAgent(t, s, "crash-agent.test", "story=basic")
	a.run(t, 2)
	acks.note(func() { acks.reports[a.reports(t)[0].TransactionUUID] = true })

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range crashRounds {
		stop := load(t, s, nodes, acks, round)
		running := make(chan struct{})
		go func() { // how this run ends does not matter
			a.puppet(t, "agent", "--test", "--http_connect_timeout", "5")
			close(running)
		}()
		goal := acks.count() + 20 + random.IntN(60)
		eventually(t, patience, "the load is under way", func() bool { return acks.count() >= goal })
		err := s.crash()
		stop()
		<-running
		if err != nil {
			t.Error(err)
		}
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		checkAcknowledged(t, s, acks)
	}
	t.Logf("%d reports, %d certificates, %d versions acknowledged over %d crashes",
		len(acks.reports), len(acks.certificates), len(acks.versions), crashRounds)
	a.run(t, 0)
}

// load keeps everybody busy until stop is called. What fails then fails: only what was
// acknowledged counts.
func load(t *testing.T, s *server, nodes []*node, acks *acknowledged, round int) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wait sync.WaitGroup
	repeat := func(once func(i int) error) {
		wait.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				if once(i) != nil {
					return // the server is gone
				}
			}
		})
	}
	asking := nodes[0] // sends other facts with its catalog requests, so none that are counted
	for _, n := range nodes[1:] {
		repeat(func(i int) error { return sendFacts(n, acks, round*1_000_000+i+1) })
		repeat(func(int) error { return sendReport(n, acks) })
	}
	repeat(func(int) error { _, err := asking.catalog("production", nil); return err })
	by := anonymous(t, s)
	repeat(func(i int) error {
		name := fmt.Sprintf("joins-%d-%d.test", round, i)
		_, err := requestCertificate(by, name)
		if err == nil {
			acks.note(func() { acks.certificates[name] = true })
		}
		return err
	})
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/control/other")); err != nil {
		t.Fatal(err)
	}
	repeat(func(i int) error { return deployOnce(t, s, acks, dir, fmt.Sprintf("%d.%d", round, i)) })
	return func() {
		close(done)
		wait.Wait()
	}
}

func sendFacts(n *node, acks *acknowledged, number int) error {
	body := factsJSON(n.name, map[string]any{"number": number, "noise": newUUID()})
	a, err := n.patient(http.MethodPut, "/puppet/v3/facts/"+n.name+"?environment=production", "application/json", body)
	if err == nil && a.status == http.StatusOK {
		acks.note(func() { acks.facts[n.name] = number })
	}
	return err
}

func sendReport(n *node, acks *acknowledged) error {
	uuid := newUUID()
	a, err := n.patient(http.MethodPut, "/puppet/v3/report/"+n.name+"?environment=production", "application/json", reportJSON(n.name, uuid))
	if err == nil && a.status == http.StatusOK {
		acks.note(func() { acks.reports[uuid] = true })
	}
	return err
}

func deployOnce(t *testing.T, s *server, acks *acknowledged, dir, text string) error {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "turn.txt"), []byte(text), 0o600); err != nil {
		return err
	}
	r := s.try(t, "code", "deploy", "--no-check", "other", dir, "-o", "json")
	if r.code != 0 {
		return fmt.Errorf("deploy: %s", r.text())
	}
	var version api.Version
	if err := json.Unmarshal([]byte(r.out), &version); err != nil {
		return err
	}
	acks.note(func() { acks.versions = append(acks.versions, version.ID) })
	return nil
}

// checkAcknowledged compares what the server has with what it said.
func checkAcknowledged(t *testing.T, s *server, acks *acknowledged) {
	t.Helper()
	acks.mu.Lock()
	defer acks.mu.Unlock()
	for name, number := range acks.facts {
		stored := decode[map[string]any](t, s, "node", "facts", name)
		if got, _ := stored["number"].(float64); int(got) < number {
			t.Errorf("%s: facts %v are stored, but %d were acknowledged", name, stored["number"], number)
		}
	}
	stored := storedReports(t, s)
	for uuid := range acks.reports {
		if !stored[uuid] {
			t.Errorf("report of transaction %s was acknowledged and is missing", uuid)
		}
	}
	certificates := map[string]bool{}
	for _, c := range decode[api.List[api.Certificate]](t, s, "ca", "list").Items {
		certificates[c.Name] = c.State == "signed"
	}
	for name := range acks.certificates {
		if !certificates[name] {
			t.Errorf("the certificate of %s was acknowledged and is missing", name)
		}
	}
	versions := map[string]bool{}
	if len(acks.versions) > 0 {
		for _, v := range decode[api.List[api.Version]](t, s, "code", "versions", "other").Items {
			versions[v.ID] = true
		}
	}
	for _, id := range acks.versions {
		if !versions[id] {
			t.Errorf("version %s was acknowledged and is missing", id)
		}
	}
}

// storedReports reads every page of the list.
func storedReports(t *testing.T, s *server) map[string]bool {
	t.Helper()
	stored, after := map[string]bool{}, ""
	for {
		page := decode[api.List[api.Report]](t, s, "report", "list", "--limit", "1000", "--after", after)
		for _, r := range page.Items {
			stored[r.TransactionUUID] = true
		}
		if after = page.Next; after == "" {
			return stored
		}
	}
}

// Ruby processes are killed at random moments while catalogs are asked for: nodes get their
// catalogs all the same, and the server grows new ones.
func TestKillRubyProcesses(t *testing.T) {
	begin(t, 100)
	s := startRaced(t, "--autosign", "all", "--compile-patience", "5s")
	s.deploy(t, "production")
	n := enrol(t, s, "killed-ruby.test")
	if a, err := n.catalog("production", nil); err != nil || a.status != http.StatusOK {
		t.Fatalf("catalog: %d %.300s %v", a.status, a.body, err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 6 {
		asked := make(chan error, 1)
		go func() {
			// A fact the catalog has never seen before: it must be compiled.
			a, err := n.catalog("production", map[string]any{"scratch": fmt.Sprintf("/nonexistent/%d", round)})
			if err == nil && a.status != http.StatusOK {
				err = fmt.Errorf("%d %.300s", a.status, a.body)
			}
			asked <- err
		}()
		var children []process // a zygote that was killed the round before may not be back yet
		eventually(t, patience, "the server has Ruby processes", func() bool {
			children = s.children()
			return len(children) > 0
		})
		victim := children[random.IntN(len(children))]
		victim.kill()
		if err := <-asked; err != nil {
			t.Errorf("round %d, killed %s: %v", round, victim.command, err)
		}
	}
	newAgent(t, s, "after-ruby.test", "story=basic").run(t, 2)
}

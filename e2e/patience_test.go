package e2e_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// A catalog that takes longer than the server keeps an agent on the line: an agent that can
// is told when to come back, comes back by itself, and converges. Debian's 7.23 cannot
// (PUP-11853): it is kept on the line, and converges too.
func TestSlowCompile(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "2s")
	s.deploy(t, "production")
	shim, err := filepath.Abs("testdata/agent-7.26/mended.rb")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, env string
		comesBack bool
	}{{"slow-mended.test", "RUBYOPT=-r" + shim, true}, {"slow-stock.test", "RUBYOPT=", installed().comesBack}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, s, c.name, "story=slow")
			a.env = append(a.env, c.env)
			out := a.run(t, 2)
			same(t, "file", "worth the wait\n", a.read(t, "slow.txt"))
			if told := strings.Contains(out, "Sleeping for"); told != c.comesBack {
				t.Errorf("told to come back: %v, want %v\n%s", told, c.comesBack, tail(out, 3000))
			}
			if c.comesBack {
				s.logged(t, "/puppet/v3/catalog/"+c.name, "status=503")
			}
			s.logged(t, "/puppet/v3/catalog/"+c.name, "status=200")
			a.run(t, 0)
		})
	}
}

// fleetSize is how many agents ask for their catalogs at once.
const fleetSize = 300

// memoryBound is what server, zygotes and workers together may hold while they do.
const memoryBound = 1500 << 20

// Three hundred agents ask for their catalogs in the same moment, over TLS with a
// certificate each: all are served, those that can after being told to come back, and
// the server's memory stays bounded.
func TestFleetAsksAtOnce(t *testing.T) {
	begin(t, 110)
	s := startServer(t, "--autosign", "all", "--compile-patience", "5s", "--access-log=false")
	s.deploy(t, "production")
	fleet := enrolFleet(t, s)
	watch := watchMemory(s)
	began := time.Now()

	var wait sync.WaitGroup
	start := make(chan struct{})
	answers, failures := make([]answer, fleetSize), make([]error, fleetSize)
	for i, n := range fleet {
		wait.Go(func() {
			<-start
			answers[i], failures[i] = n.catalog("production", nil)
		})
	}
	close(start)
	wait.Wait()
	took, peak := time.Since(began), watch.stop()

	postponed := 0
	for i, a := range answers {
		if failures[i] != nil || a.status != http.StatusOK {
			t.Errorf("%s: %d %.300s %v", fleet[i].name, a.status, a.body, failures[i])
		} else if !strings.Contains(a.body, "/nonexistent/"+fleet[i].name+"/basic") {
			t.Errorf("%s got another node's catalog: %.300s", fleet[i].name, a.body)
		}
		if a.postponed > 0 {
			postponed++
		}
		if a.postponed > 0 && fleet[i].version == "7.23.0" {
			t.Errorf("%s was told to come back, but agents of its version cannot", fleet[i].name)
		}
	}
	t.Logf("%d catalogs in %s, %d asked to come back, peak memory of server, zygotes and workers %d MB",
		fleetSize, took.Round(time.Millisecond), postponed, peak>>20)
	if peak > memoryBound {
		t.Errorf("peak memory %d MB, want at most %d MB", peak>>20, memoryBound>>20)
	}
	if nodes := decode[api.List[api.Node]](t, s, "node", "list").Items; len(nodes) != fleetSize {
		t.Errorf("the server knows %d nodes, want %d", len(nodes), fleetSize)
	}
}

// enrolFleet gives every node a key and a certificate; each keeps a connection of its own.
func enrolFleet(t *testing.T, s *server) []*node {
	t.Helper()
	fleet, failures := make([]*node, fleetSize), make([]error, fleetSize)
	by, pool := anonymous(t, s), s.roots(t)
	work := make(chan int)
	var wait sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		wait.Go(func() {
			for i := range work {
				name := fmt.Sprintf("fleet-%03d.test", i)
				certificate, err := requestCertificate(by, name)
				failures[i] = err
				fleet[i] = &node{server: s, name: name, version: []string{"7.23.0", "8.10.0"}[i%2], client: newHTTPClient(t, &tls.Config{
					RootCAs: pool, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
				})}
			}
		})
	}
	for i := range fleet {
		work <- i
	}
	close(work)
	wait.Wait()
	for _, err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
	return fleet
}

// memoryWatch keeps the largest sum of resident memory of a server and its children.
type memoryWatch struct {
	done chan struct{}
	peak chan int64
}

func watchMemory(s *server) memoryWatch {
	w, pids := memoryWatch{make(chan struct{}), make(chan int64)}, s.pids()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		peak := int64(0)
		for {
			for _, pid := range pids {
				peak = max(peak, memoryOf(pid))
			}
			select {
			case <-w.done:
				w.peak <- peak
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

func (w memoryWatch) stop() int64 {
	close(w.done)
	return <-w.peak
}

package demo

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/sim"
)

// joinTimeout is how long the simulated nodes may take to join.
const joinTimeout = 10 * time.Minute

// simulated are the nodes that only this process plays.
type simulated struct {
	stage   *stage
	failing atomic.Bool  // some of them fail when they apply a catalog
	asked   atomic.Int64 // how often one was asked to apply one meanwhile
}

// start lets simulated nodes join: each gets a certificate, sends facts and
// connects. stop ends them and waits for them.
func (m *simulated) start(ctx context.Context) (stop func() error, err error) {
	m.stage.title(fault.Count(m.stage.Nodes, "simulated node") + ": each joins with a certificate and a connection of its own")
	begin := time.Now()
	joining, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	fleet, err := m.fleet(joining)
	if err != nil {
		return nil, err
	}
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- fleet.Run(living) }()
	stop = func() error {
		end()
		return <-ended
	}
	if err := fleet.AwaitConnected(joining, time.Time{}); err != nil {
		return nil, errors.Join(err, stop())
	}
	m.stage.sayf("%s connected after %s", fault.Are(fleet.Connected(time.Time{}), "simulated node"), time.Since(begin).Round(100*time.Millisecond))
	return stop, nil
}

// fleet makes the nodes, with their certificates and facts.
func (m *simulated) fleet(ctx context.Context) (*sim.Fleet, error) {
	url, roots, err := m.stage.contact()
	if err != nil {
		return nil, err
	}
	enroller, err := sim.NewEnroller(url, roots)
	if err != nil {
		return nil, err
	}
	defer enroller.Close()
	fleet := sim.New(sim.Config{
		URLs: []string{"wss" + strings.TrimPrefix(url, "https")}, Names: sim.Names(m.stage.Nodes, domain), Identity: enroller.Enrol,
		FirstPause: 500 * time.Millisecond, Catalogs: url, Facts: facts, Fails: m.fails,
	})
	if err := fleet.Enrol(ctx); err != nil {
		return nil, err
	}
	return fleet, fleet.SendFacts(ctx, url)
}

// fails says whether a node fails now: every second one that is asked does while the demo wants failures.
func (m *simulated) fails(string) bool { return m.failing.Load() && m.asked.Add(1)%2 == 0 }

// facts are a simulated node's, with those that the control repository and its modules go by.
func facts(name string) map[string]any {
	facts := sim.Facts(name)
	facts["demo_root"], facts["clientversion"] = "/srv/demo", "7.23.0"
	if role := facts["role"]; role == "web" || role == "db" {
		facts["demo_role"] = role
	}
	return facts
}

// contact is where the server is, and which authority it is of.
func (s *stage) contact() (url string, roots *x509.CertPool, err error) {
	ca, err := os.ReadFile(filepath.Join(s.Dir, "data", "ca", "ca_crt.pem"))
	if err != nil {
		return "", nil, err
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return "", nil, errors.New("the server's CA file holds no certificate")
	}
	return "https://localhost:" + s.port(), roots, nil
}

// port is where the server listens.
func (s *stage) port() string {
	address, _ := os.ReadFile(filepath.Join(s.Dir, "data", "address"))
	text := strings.TrimSpace(string(address))
	return text[strings.LastIndex(text, ":")+1:]
}

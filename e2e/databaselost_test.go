package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// PostgreSQL is lost to a server that runs: first it is gone, then it is silent. The server says so in a time in which monitors still
// listen, to whoever asks; it refuses with words what needs the database, and goes on by itself when the database is back.
func TestALostPostgreSQLIsSaidAndComesBack(t *testing.T) {
	begin(t, 30)
	between := startProxy(t, startPostgres(t))
	s := startServer(t, "--autosign", "all", "--database", between.url)
	n := enrol(t, s, "web-1.test")
	stranger := anonymous(t, s)
	process := s.cmd.Process.Pid

	for lost, c := range map[string]struct {
		lose   func()
		reason string
	}{
		"gone":   {between.cut, "the database cannot be reached"},
		"silent": {between.silence, "the database does not answer within 3s"},
	} {
		c.lose()
		for who, by := range map[string]*node{"a stranger": stranger, "a node": n} {
			began := time.Now()
			a := by.must(t, http.MethodGet, "/status/v1/simple", "", nil)
			if a.status != http.StatusServiceUnavailable || a.body != "error" {
				t.Errorf("%s: %s is told %d %s", lost, who, a.status, a.body)
			}
			if took := time.Since(began); took > answersWithin {
				t.Errorf("%s: %s waited %s for the status", lost, who, took)
			}
		}
		began := time.Now()
		parts := statusOf(t, stranger)
		for _, name := range []string{"server", "ca", "puppetdb-status"} {
			p := parts[name]
			said := p.Status.Reason == c.reason || p.Status.Reason == "the database cannot be reached" // a silent one is cut off at last
			if p.State != "error" || !said {
				t.Errorf("%s: %s is %+v, want the reason %q", lost, name, p, c.reason)
			}
		}
		if took := time.Since(began); took > answersWithin {
			t.Errorf("%s: the status took %s", lost, took)
		}
		began = time.Now()
		a := n.must(t, http.MethodPut, "/puppet/v3/facts/"+n.name+"?environment=production", "application/json", factsOf(t, n.name))
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: facts are answered with %d %s", lost, a.status, a.body)
		}
		if took := time.Since(began); took > refusedWithin {
			t.Errorf("%s: facts were refused after %s", lost, took)
		}
		t.Logf("%s: facts were refused after %s: %s", lost, time.Since(began).Round(time.Millisecond), a.body)
		between.heal()
		eventually(t, patience, lost+": the server is well again", func() bool {
			return stranger.must(t, http.MethodGet, "/status/v1/simple", "", nil).body == "running"
		})
		if a := n.must(t, http.MethodPut, "/puppet/v3/facts/"+n.name+"?environment=production", "application/json", factsOf(t, n.name)); a.status != http.StatusOK {
			t.Errorf("%s and back: facts are answered with %d %s", lost, a.status, a.body)
		}
		contains(t, s.tutti(t, "node", "list"), n.name)
	}
	if s.gone() || s.cmd.Process.Pid != process {
		t.Error("the server did not live through it")
	}
}

// answersWithin is how long a status may take: the three seconds that the database has, on a machine that has other things to do.
const answersWithin = 10 * time.Second

// refusedWithin is how long what needs the database may wait for one that is silent: until the server has found that out, by its claim.
const refusedWithin = time.Minute

type statusPart struct {
	State  string `json:"state"`
	Status struct {
		Reason string `json:"reason"`
	} `json:"status"`
}

func statusOf(t *testing.T, by *node) (parts map[string]statusPart) {
	t.Helper()
	a := by.must(t, http.MethodGet, "/status/v1/services", "", nil)
	if err := json.Unmarshal([]byte(a.body), &parts); err != nil || a.status != http.StatusServiceUnavailable {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return parts
}

func factsOf(t *testing.T, name string) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"name": name, "values": map[string]any{"at": time.Now().String()}, "timestamp": time.Now().Format(time.RFC3339Nano),
		"expiration": time.Now().Add(time.Hour).Format(time.RFC3339Nano),
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// proxy stands between a server and its PostgreSQL, and can be cut or made silent.
type proxy struct {
	url      string // of the database, through here
	network  string // unix or tcp
	to       string // PostgreSQL's socket, or another address
	listener net.Listener

	mu    sync.Mutex
	flows sync.Cond // while it is not silent
	state proxyState
	conns map[net.Conn]bool
}

type proxyState int

const (
	flowing proxyState = iota
	refusing
	silent
)

// startProxy starts one for a cluster on a Unix socket.
func startProxy(t *testing.T, cluster string) *proxy {
	t.Helper()
	at, err := url.Parse(cluster)
	if err != nil {
		t.Fatal(err)
	}
	p := startForwarder(t, "unix", filepath.Join(at.Query().Get("host"), ".s.PGSQL.5432"))
	p.url = fmt.Sprintf("postgres://tutti@%s/postgres?sslmode=disable", p.listener.Addr())
	return p
}

// startForwarder starts one for any address.
func startForwarder(t *testing.T, network, to string) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{network: network, to: to, listener: listener, conns: map[net.Conn]bool{}}
	p.flows.L = &p.mu
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
		serving.Wait()
	})
	return p
}

func (p *proxy) serve(serving *sync.WaitGroup) {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		if !p.keep(from) {
			continue
		}
		to, err := (&net.Dialer{}).Dial(p.network, p.to)
		if err != nil || !p.keep(to) {
			_ = from.Close()
			continue
		}
		serving.Go(func() { p.pass(from, to) })
		serving.Go(func() { p.pass(to, from) })
	}
}

// keep remembers a connection, unless none is wanted.
func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == refusing {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = true
	return true
}

// pass passes on what comes, and holds it back while the proxy is silent.
func (p *proxy) pass(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		for p.state == silent {
			p.flows.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = io.EOF
			}
		}
		if err != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

func (p *proxy) become(state proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state = state; state == refusing {
		for conn := range p.conns {
			_ = conn.Close()
		}
		clear(p.conns)
	}
	p.flows.Broadcast()
}

func (p *proxy) cut()     { p.become(refusing) }
func (p *proxy) silence() { p.become(silent) }
func (p *proxy) heal()    { p.become(flowing) }

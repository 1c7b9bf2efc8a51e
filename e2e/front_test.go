package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// behind describes servers that a load balancer may stand before.
func (f *several) behind(t *testing.T, flags ...string) (a, b, c *server) {
	t.Helper()
	describe := func(name string) *server {
		return f.server(t, name,
			append([]string{"--listen", steadyAddress(t), "--autosign", "all", "--compile-patience", "30s", "--proxy-protocol-from", balancerSource}, flags...)...)
	}
	return describe("a"), describe("b"), describe("c")
}

// Three servers behind HAProxy are restarted one by one, while two real agents are given orders, and nodes check in and report: each order is executed
// once, and no request fails for longer than one repetition.
func TestRollingRestartBehindALoadBalancer(t *testing.T) {
	begin(t, 200)
	f := startSeveral(t)
	a, b, c := f.behind(t)
	all := []*server{a, b, c}
	for _, s := range all {
		s.startFor(t)
	}
	lb, one := f.balance(t, all...)
	f.addressesAreTheClients(t, lb, all)
	one.deploy(t, "production")
	going := startTraffic(t, one, map[string]string{"web-1.test": binary, "web-2.test": binary})
	for i, s := range all {
		other := all[(i+1)%len(all)]
		before, checked := going.orders(), going.checkIns()
		f.restart(t, lb, s, other, nil)
		eventually(t, patience, "orders and check-ins go on after a restart", func() bool {
			return going.orders() >= before+4 && going.checkIns() >= checked+4
		})
	}
	going.stop(t)
	going.judge(t, f, 0)
	rows, err := lb.statistics()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		t.Logf("HAProxy: %s had %s connections, %s were sent to another one, %s failed", row["svname"], row["stot"], row["wredis"], row["econ"])
		if row["stot"] == "0" {
			t.Errorf("%s had no connection", row["svname"])
		}
	}
}

// restart drains a server, asking another one, stops it, does something, and starts it; it returns when the load balancer has it again. Nobody waits until
// the load balancer has noticed that it is away: connections that come meanwhile go elsewhere.
func (f *several) restart(t *testing.T, lb *balancer, s, other *server, meanwhile func()) {
	t.Helper()
	id := idOf(t, s)
	other.tutti(t, "cluster", "drain", id, "--over", "2s")
	eventually(t, patience, "its agents have gone", func() bool { return f.count(t, "SELECT count(*) FROM presence WHERE server = '"+id+"'") == 0 })
	eventually(t, patience, "it is drained", func() bool { return strings.Contains(afterLast(s.logText(), "msg=serving "), "msg=\"drained: ") })
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	lb.ready(t, s, true)
}

// afterLast is what follows the last of a word.
func afterLast(text, word string) string {
	if at := strings.LastIndex(text, word); at >= 0 {
		return text[at:]
	}
	return ""
}

// addressesAreTheClients has servers take the client's address from the load balancer, and from nobody else.
func (f *several) addressesAreTheClients(t *testing.T, lb *balancer, all []*server) {
	t.Helper()
	f.haproxySays(t, lb)
	from := func(s *server, address, head string) error {
		d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: time.Minute}
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: all[0].roots(t), MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
				conn, err := d.DialContext(ctx, network, strings.Replace(at, "localhost", "127.0.0.1", 1))
				if err == nil {
					_, err = io.WriteString(conn, head)
				}
				return conn, err
			},
		}}
		answer, err := (&node{server: s, client: client}).do(http.MethodGet, "/status/v1/live?from="+address, "", nil)
		if err == nil && answer.status != http.StatusOK {
			err = fmt.Errorf("%d %s", answer.status, answer.body)
		}
		return err
	}
	if err := from(&server{url: lb.url}, "127.0.0.7", ""); err != nil {
		t.Errorf("through the load balancer: %v", err)
	}
	eventually(t, patience, "the log has the client's address", func() bool {
		for _, s := range all {
			for line := range strings.Lines(s.logText()) {
				if holdsAll(line, []string{"/status/v1/live", "remote=127.0.0.7:"}) {
					return true
				}
			}
		}
		return false
	})
	const header = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\xc7\x38\x1f\xcc" // of 192.0.2.7
	s := all[0]
	if err := from(s, balancerSource, ""); err == nil {
		t.Error("the load balancer's address is served without a header")
	}
	if err := from(s, "127.0.0.8", header); err == nil {
		t.Error("a stranger says that it is another one, and is served")
	}
	if err := from(s, balancerSource, header); err != nil {
		t.Errorf("with the load balancer's address and a header: %v", err)
	}
	s.logged(t, "/status/v1/live", "remote=192.0.2.7:51000")
	s.logged(t, "connections refused", "proxy_protocol_from") // the first of the two; one a minute is told
}

// haproxySays follows what the page says of the load balancer's configuration.
func (f *several) haproxySays(t *testing.T, lb *balancer) {
	t.Helper()
	program, err := haproxyPath()
	if err != nil {
		t.Fatal(err)
	}
	f.follows(t, &server{}, "A load balancer", map[string]string{"haproxy -c -f haproxy.cfg": program + " -c -f " + lb.config()})
}

// traffic is what goes on while servers are restarted: orders to real agents, one after the other for each, and check-ins with reports of nodes.
type traffic struct {
	server  *server
	agents  []*daemon
	count   string // a node's commands write into the file of this name with its own
	ending  context.CancelFunc
	working sync.WaitGroup

	mu       sync.Mutex
	ordered  map[string]int // by node: commands whose order said that they succeeded
	checked  int            // check-ins with their report
	repeated int            // requests that had to be made once more
	longest  time.Duration  // until one was answered as it should
	wrong    []error
}

// startTraffic begins with agents of these programs, by name, that are connected, and returns when everything has happened once.
func startTraffic(t *testing.T, s *server, programs map[string]string) *traffic {
	t.Helper()
	l := &traffic{server: s, count: filepath.Join(t.TempDir(), "count."), ordered: map[string]int{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l.ending = cancel
	t.Cleanup(func() {
		if cancel(); t.Failed() {
			t.Logf("when it failed: %v orders, %d check-ins; %v; runs that had not ended: %s", l.ordered, l.checked, l.wrong, l.active())
		}
		l.working.Wait()
	})
	for name, program := range programs {
		d := joinNode(t, s, name)
		d.program = program
		d.start(t)
		d.connectedTo(t, strings.TrimPrefix(s.url, "https://"))
		l.agents = append(l.agents, d)
	}
	fresh, kept := enrol(t, s, "fresh.test"), enrol(t, s, "kept.test")
	fresh.client.Transport.(*http.Transport).DisableKeepAlives = true // a connection for each request, or one for all
	for name := range programs {
		l.working.Go(func() { l.order(ctx, name) })
	}
	for _, n := range []*node{fresh, kept} {
		l.working.Go(func() { l.checkIn(ctx, n) })
	}
	eventually(t, patience, "orders and check-ins begin", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.ordered) == len(programs) && l.checked > 3 || len(l.wrong) > 0
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = 0 // the first catalogs had to be compiled
	return l
}

// active is the jobs that go on.
func (l *traffic) active() string {
	cmd := exec.Command(binary, "job", "list", "--state", "active")
	cmd.Env = slices.Concat(l.server.env, []string{"TUTTI_DATA=" + l.server.data})
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}

// order has a node execute one command after the other.
func (l *traffic) order(ctx context.Context, node string) {
	for i := 1; ctx.Err() == nil; i++ {
		command := fmt.Sprintf("echo %d >> %s%s; echo done-%d", i, l.count, node, i)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		cmd := exec.CommandContext(limit, binary, "command", "run", command, "--targets", node, "--yes")
		cmd.Env = slices.Concat(l.server.env, []string{"TUTTI_DATA=" + l.server.data})
		began := time.Now()
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil || !bytes.Contains(out, fmt.Append(nil, "done-", i)) {
			l.fails(fmt.Errorf("order %d of %s, after %s: %w\n%s", i, node, time.Since(began), err, out))
			return
		}
		l.mu.Lock()
		l.ordered[node] = i
		l.mu.Unlock()
	}
}

// orders is how many have been executed.
func (l *traffic) orders() (sum int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.ordered {
		sum += n
	}
	return sum
}

// checkIns is how many there were, with their report.
func (l *traffic) checkIns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checked
}

func (l *traffic) fails(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, err)
}

// checkIn has a node fetch its catalog and report, again and again.
func (l *traffic) checkIn(ctx context.Context, n *node) {
	tick := time.NewTicker(1200 * time.Millisecond) // reports_per_minute is 60
	defer tick.Stop()
	for i := 1; ctx.Err() == nil; i++ {
		//nolint:contextcheck // what was begun ends
		err := l.once(func() (answer, error) { return n.catalog("production", map[string]any{"role": "web", "story_load": i}) })
		if err == nil {
			report := reportJSON(n.name, newUUID())
			err = l.once(func() (answer, error) { //nolint:contextcheck // the same
				return n.patient(http.MethodPut, "/puppet/v3/report/"+n.name+"?environment=production", "application/json", report)
			})
		}
		if err != nil {
			l.fails(fmt.Errorf("check-in %d of %s: %w", i, n.name, err))
			return
		}
		l.mu.Lock()
		l.checked++
		l.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// once makes a request, and once more after a second if it fails.
func (l *traffic) once(request func() (answer, error)) error {
	began := time.Now()
	got, err := request()
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("%d %s", got.status, got.body)
	}
	if err != nil {
		first := err
		<-time.After(time.Second)
		if got, err = request(); err == nil && got.status != http.StatusOK {
			err = fmt.Errorf("%d %s", got.status, got.body)
		}
		if err != nil {
			return errors.Join(first, err)
		}
		l.mu.Lock()
		l.repeated++
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, time.Since(began))
	return nil
}

// stop ends it when what was begun is over.
func (l *traffic) stop(t *testing.T) {
	t.Helper()
	l.ending()
	l.working.Wait()
	for _, err := range l.wrong {
		t.Error(err)
	}
}

// judge compares what was ordered with what nodes did, and what was sent with what is stored. besides is how many further jobs all agents were given.
func (l *traffic) judge(t *testing.T, f *several, besides int) {
	t.Helper()
	t.Logf("%v orders, %d check-ins with reports; %d requests were made twice, the longest took %s", l.ordered, l.checked, l.repeated, l.longest)
	for _, d := range l.agents {
		var want strings.Builder
		for i := range l.ordered[d.name] {
			fmt.Fprintln(&want, i+1)
		}
		same(t, "what commands wrote on "+d.name, want.String(), readText(t, l.count+d.name))
		eventually(t, patience, "what was asked of "+d.name+" is over", func() bool {
			return strings.Count(d.executed(t), " success\n") == l.ordered[d.name]+besides
		})
		same(t, "what the servers know of "+d.name, d.executed(t),
			f.sql(t, "SELECT id || ' success' FROM job_runs WHERE node = '"+d.name+"' AND state = 'succeeded' ORDER BY id")+"\n")
	}
	stored := 0
	eventually(t, patience, "all reports are stored", func() bool {
		stored = f.count(t, "SELECT count(*) FROM reports r JOIN nodes n ON n.id = r.node_id WHERE n.certname IN ('fresh.test', 'kept.test')")
		return stored >= l.checked
	})
	if stored > l.checked+l.repeated { // one may have been stored whose answer was lost
		t.Errorf("%d reports are stored, %d were sent", stored, l.checked)
	}
	if jobs := decode[api.List[api.Job]](t, l.server, "job", "list", "--limit", "1000").Items; len(jobs) != l.orders()+besides {
		t.Errorf("there are %d jobs, %d were ordered", len(jobs), l.orders())
	}
}

package e2e_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// balancerSource is the address from which the load balancer connects to servers, so that they can tell it from everybody else on this machine.
const balancerSource = "127.0.0.2"

// balancer is HAProxy with the configuration that docs/many-servers.md shows.
type balancer struct {
	url, dir, log string
	cmd           *exec.Cmd
	ended         chan struct{}
}

// haproxyPath finds HAProxy where Debian has it.
func haproxyPath() (string, error) {
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("haproxy is missing: apt-get install haproxy")
}

// newBalancer describes a load balancer at an address in front of servers, by name. proxying is whether it says whose connections it passes on.
func newBalancer(dir, address, ca string, proxying bool, servers map[string]string) (*balancer, error) {
	page, err := os.ReadFile(filepath.Join(docs, "many-servers.md"))
	if err != nil {
		return nil, err
	}
	_, text, found := strings.Cut(string(page), "\n```\nglobal\n")
	text, _, closed := strings.Cut(text, "\n```\n")
	if !found || !closed {
		return nil, errors.New("many-servers.md shows no configuration of HAProxy")
	}
	text = "global\n" + text + "\n"
	b := &balancer{dir: dir, log: filepath.Join(dir, "haproxy.log")}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	b.url = "https://localhost:" + port
	lines := ""
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		lines += fmt.Sprintf("  server %s %s\n", name, servers[name])
	}
	head, _, _ := strings.Cut(text, "  server pup-1 ")
	instead := map[string]string{
		"bind :8140": "bind " + address, "/run/haproxy/admin.sock": b.socket(), "/etc/haproxy/tutti-ca.pem": ca,
		"maxconn 50000":       "maxconn 2000", // a test has fewer open files
		"balance leastconn\n": "balance leastconn\n  source " + balancerSource + "\n",
	}
	if !proxying {
		instead[" send-proxy-v2 check-send-proxy"] = ""
	}
	for old, now := range instead {
		if strings.Count(head, old) != 1 {
			return nil, fmt.Errorf("the configuration of HAProxy in many-servers.md has no %q", old)
		}
		head = strings.Replace(head, old, now, 1)
	}
	return b, os.WriteFile(b.config(), []byte(head+lines), 0o600)
}

func (b *balancer) config() string { return filepath.Join(b.dir, "haproxy.cfg") }
func (b *balancer) socket() string { return filepath.Join(b.dir, "admin.sock") }

// start starts it, and returns when it has found all servers to be ready.
func (b *balancer) start() error {
	program, err := haproxyPath()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(b.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	b.cmd = exec.Command(program, "-db", "-f", b.config())
	b.cmd.Stdout, b.cmd.Stderr, b.cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		return err
	}
	cmd, ended := b.cmd, make(chan struct{})
	b.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }()
	gone := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	ready := func() bool {
		s, err := b.servers()
		return err == nil && len(s) > 0 && !slices.Contains(slices.Collect(maps.Values(s)), false)
	}
	if !within(patience, func() bool { return gone() || ready() }) || gone() {
		text, _ := os.ReadFile(b.log)
		return fmt.Errorf("HAProxy does not find all servers to be ready:\n%s", tail(string(text), 4000))
	}
	return nil
}

func (b *balancer) stop() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill()
	<-b.ended
	b.cmd = nil
}

// servers tells which servers it takes for ready.
func (b *balancer) servers() (map[string]bool, error) {
	rows, err := b.statistics()
	if err != nil {
		return nil, err
	}
	up := map[string]bool{}
	for _, row := range rows {
		up[row["svname"]] = strings.HasPrefix(row["status"], "UP") && row["check_status"] == "L7OK"
	}
	return up, nil
}

// statistics are HAProxy's own, a row for each server.
func (b *balancer) statistics() ([]map[string]string, error) {
	conn, err := net.DialTimeout("unix", b.socket(), time.Second)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, "show stat\n"); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return nil, err
	}
	reader := csv.NewReader(strings.NewReader(strings.TrimPrefix(strings.TrimSpace(string(text)), "# ")))
	reader.FieldsPerRecord = -1
	table, err := reader.ReadAll()
	if err != nil || len(table) == 0 {
		return nil, fmt.Errorf("statistics of HAProxy: %q, %w", text, err)
	}
	var rows []map[string]string
	for _, line := range table[1:] {
		row := map[string]string{}
		for i, name := range table[0] {
			if i < len(line) {
				row[name] = line[i]
			}
		}
		if row["pxname"] == "tutti" && row["svname"] != "FRONTEND" && row["svname"] != "BACKEND" {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// balance puts a load balancer in front of servers that run, and returns it with all of them as one.
func (f *several) balance(t *testing.T, servers ...*server) (*balancer, *server) {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e-lb-") //nolint:usetesting // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at, proxying := map[string]string{}, slices.Contains(servers[0].flags, "--proxy-protocol-from")
	for _, s := range servers {
		at[filepath.Base(filepath.Dir(s.data))] = "127.0.0.1:" + s.port()
	}
	b, err := newBalancer(dir, steadyAddress(t), filepath.Join(servers[0].data, "ca", "ca_crt.pem"), proxying, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.stop()
		if t.Failed() {
			t.Logf("the end of HAProxy's log:\n%s", tail(readText(t, b.log), 2000))
		}
	})
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	return b, &server{program: binary, data: servers[0].data, log: servers[0].log, env: append(slices.Clone(f.env), "TUTTI_SERVER="+b.url), url: b.url}
}

// ready waits until the load balancer takes a server for ready, or not.
func (b *balancer) ready(t *testing.T, s *server, want bool) {
	t.Helper()
	name := filepath.Base(filepath.Dir(s.data))
	eventually(t, patience, fmt.Sprintf("HAProxy finds %s ready: %t", name, want), func() bool {
		servers, err := b.servers()
		return err == nil && servers[name] == want
	})
}

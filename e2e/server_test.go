package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// startTimeout is how long a server may take until it answers.
const startTimeout = patience

// server is one `tutti server`.
type server struct {
	program   string // the tutti that it is
	data, log string
	flags     []string
	env       []string
	url       string
	host      string              // by which it is asked, at port 8140; empty: localhost, at any port
	as        *syscall.Credential // whom it runs as; nil: as we do
	cmd       *exec.Cmd
	names     sync.Map      // certnames given out, and how often
	ended     chan struct{} // closed when the process is gone
	three     *three        // the servers that stand for this one; nil: it is one
}

// newServer describes a server in a new data directory; start starts it.
func newServer(dir string, flags ...string) *server {
	return &server{program: binary, data: filepath.Join(dir, "data"), log: filepath.Join(dir, "server.log"), flags: flags, env: cleanEnv()}
}

// startServer starts a server for one story and ends it with the story.
func startServer(t *testing.T, flags ...string) *server {
	t.Helper()
	return newServer(t.TempDir(), flags...).startFor(t)
}

// startRaced is startServer with a server that has the race detector.
func startRaced(t *testing.T, flags ...string) *server {
	t.Helper()
	s := newServer(t.TempDir(), flags...)
	s.program = raced(t)
	return s.startFor(t)
}

// startFor starts the server for one story and ends it with the story.
func (s *server) startFor(t *testing.T) *server {
	t.Helper()
	s.showLog(t)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// showLog shows the end of the server's log when the story fails.
func (s *server) showLog(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", tail(s.logText(), 3000))
		}
	})
}

// start starts the process and returns when it answers, or when it has ended.
func (s *server) start() error {
	if s.standsForThree() {
		return s.startThree()
	}
	return s.startOne()
}

func (s *server) startOne() error {
	if err := s.launch(); err != nil {
		return err
	}
	ready := within(startTimeout, func() bool { return s.gone() || s.answers() })
	if s.gone() || !ready {
		code := s.exitCode()
		_ = s.stop()
		return fmt.Errorf("the server did not come up (exit code %d):\n%s", code, tail(s.logText(), 8000))
	}
	return nil
}

// launch starts the process, and does not wait for anything.
func (s *server) launch() error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.url = ""
	_ = os.Remove(filepath.Join(s.data, "address")) // of a server that was killed
	// Plain Puppet compiles nothing beside, unless a story is about that: it would take most of the processors.
	args := append([]string{
		"server", "--data", s.data, "--listen", "127.0.0.1:0", "--dns-alt-names", "localhost",
		"--verify-share", "off", "--verify-after-deploy", "0",
	}, s.flags...)
	s.cmd = exec.Command(s.program, args...)
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = s.env, log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.as}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	cmd, ended := s.cmd, make(chan struct{})
	s.ended = ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// fresh makes a certname that this server has not seen: with -count a story is told again.
func (s *server) fresh(name string) string {
	count, _ := s.names.LoadOrStore(name, new(atomic.Int64))
	if n := count.(*atomic.Int64).Add(1); n > 1 {
		return fmt.Sprintf("again-%d-%s", n, name)
	}
	return name
}

// gone says whether the process has ended.
func (s *server) gone() bool {
	if s.three != nil {
		return slices.ContainsFunc(s.three.servers, (*server).gone)
	}
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// pids are its processes: several with three servers.
func (s *server) pids() (pids []int) {
	if s.three == nil && s.cmd != nil {
		return []int{s.cmd.Process.Pid}
	}
	if s.three == nil {
		return nil
	}
	for _, member := range s.three.servers {
		pids = append(pids, member.pids()...)
	}
	return pids
}

// children are all processes below the server's own.
func (s *server) children() (all []process) {
	for _, pid := range s.pids() {
		all = append(all, below(pid)...)
	}
	return all
}

func (s *server) exitCode() int {
	if !s.gone() {
		return -1
	}
	return s.cmd.ProcessState.ExitCode()
}

// answers reads the address and asks for the status.
func (s *server) answers() bool {
	address, err := os.ReadFile(filepath.Join(s.data, "address"))
	if err != nil {
		return false
	}
	url := strings.TrimSpace(string(address))
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "https://"), ":")
	s.url = "https://" + s.at() + ":" + port
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Get(s.url + "/status/v1/simple")
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode == http.StatusOK && strings.TrimSpace(string(text)) == "running"
}

// stop ends the server with SIGTERM; it must end in time and with 0, leave no process
// behind, and have seen no data race.
func (s *server) stop() error {
	if s.three != nil {
		return s.three.each((*server).stop)
	}
	if s.cmd == nil {
		return nil
	}
	children := below(s.cmd.Process.Pid)
	clean := !s.gone()
	if clean {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
	}
	var err error
	select {
	case <-s.ended:
		if code := s.exitCode(); clean && code != 0 {
			err = fmt.Errorf("the server ended with %d after SIGTERM", code)
		}
	case <-time.After(patience):
		err = fmt.Errorf("the server did not end within %s of SIGTERM", patience)
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	if _, race, there := strings.Cut(s.logText(), "WARNING: DATA RACE"); there {
		err = errors.Join(err, fmt.Errorf("the server's log holds a data race:%s", race[:min(len(race), 8000)]))
	}
	s.cmd = nil
	return errors.Join(err, orphans(children))
}

// crash kills the server at once; its children must follow it.
func (s *server) crash() error {
	if s.three != nil {
		return s.three.each((*server).crash)
	}
	children := below(s.cmd.Process.Pid)
	_ = s.cmd.Process.Kill()
	<-s.ended
	s.cmd = nil
	return orphans(children)
}

// orphans waits until all of them are gone, and names and ends those that stay.
func orphans(children []process) error {
	left := func() (alive []process) {
		for _, p := range children {
			if p.alive() {
				alive = append(alive, p)
			}
		}
		return alive
	}
	if within(patience, func() bool { return len(left()) == 0 }) {
		return nil
	}
	var err error
	for _, p := range left() {
		err = errors.Join(err, fmt.Errorf("process %d outlived its server: %s", p.pid, p.command))
		p.kill()
	}
	return err
}

func (s *server) logText() string {
	text, _ := os.ReadFile(s.log)
	if s.three != nil {
		for _, member := range s.three.servers[1:] {
			text = append(text, member.logText()...)
		}
	}
	return string(text)
}

// logged waits until the log holds every one of texts in one line.
func (s *server) logged(t *testing.T, texts ...string) {
	t.Helper()
	found := within(patience, func() bool {
		for line := range strings.Lines(s.logText()) {
			if holdsAll(line, texts) {
				return true
			}
		}
		return false
	})
	if !found {
		t.Errorf("no line of the server's log holds all of %q", texts)
	}
}

func holdsAll(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

func (r result) text() string { return r.out + r.err }

// tutti runs a command of this server's operator; it must succeed.
func (s *server) tutti(t *testing.T, args ...string) string {
	t.Helper()
	r := s.try(t, args...)
	if r.code != 0 {
		t.Fatalf("tutti %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.text())
	}
	return r.out
}

// try runs a command of this server's operator.
func (s *server) try(t *testing.T, args ...string) result {
	t.Helper()
	return tuttiWith(t, slices.Concat(s.env, s.access()), args...)
}

// at is the name of its host.
func (s *server) at() string {
	if s.host == "" {
		return "localhost"
	}
	return s.host
}

// access is how commands find the server: on this machine by its directory, elsewhere by its name.
func (s *server) access() []string {
	if s.host == "" {
		return []string{"TUTTI_DATA=" + s.data}
	}
	return []string{
		"TUTTI_SERVER=https://" + s.host + ":8140", "TUTTI_TOKEN_FILE=" + filepath.Join(s.data, "admin.token"),
		"TUTTI_CA_FILE=" + filepath.Join(s.data, "ca", "ca_crt.pem"),
	}
}

func tuttiWith(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return execute(t, env, 5*time.Minute, binary, args...)
}

// execute runs a program to its end.
func execute(t *testing.T, env []string, limit time.Duration, program string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, err bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &err
	cmd.WaitDelay = 5 * time.Second
	if failure := cmd.Run(); cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("%s %s: %v %v\n%s%s", program, strings.Join(args, " "), failure, ctx.Err(), out.String(), err.String())
	}
	return result{code: cmd.ProcessState.ExitCode(), out: out.String(), err: err.String()}
}

// decode runs a command with -o json and decodes what it prints.
func decode[T any](t *testing.T, s *server, args ...string) T {
	t.Helper()
	return decodeText[T](t, s.tutti(t, append(args, "-o", "json")...))
}

// decodeText reads what a command printed as JSON.
func decodeText[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, text)
	}
	return value
}

// deploy makes the environments of testdata/control current. They have mistakes on purpose.
func (s *server) deploy(t *testing.T, environments ...string) {
	t.Helper()
	for _, environment := range environments {
		s.tutti(t, "code", "deploy", "--no-check", environment, filepath.Join("testdata", "control", environment))
	}
}

// port is where the server listens.
func (s *server) port() string {
	_, port, _ := strings.Cut(strings.TrimPrefix(s.url, "https://"), ":")
	return port
}

// roots is the pool that trusts this server.
func (s *server) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	pool, err := s.pool()
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func (s *server) pool() (*x509.CertPool, error) {
	text, err := os.ReadFile(filepath.Join(s.data, "ca", "ca_crt.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("ca_crt.pem holds no certificate")
	}
	return pool, nil
}

// shared is the server that most stories use.
type shared struct {
	once   sync.Once
	server *server
	dir    string
	err    error
}

var house shared

// theHouse returns the shared server with its environments deployed.
func theHouse(t *testing.T) *server {
	t.Helper()
	house.once.Do(func() {
		house.dir, house.err = os.MkdirTemp("", "e2e-house-") //nolint:usetesting // it outlives this story
		if house.err != nil {
			return
		}
		house.server = newServer(house.dir, "--autosign", "all", "--compile-patience", "30s")
		if house.err = house.server.start(); house.err == nil {
			house.server.deploy(t, "production", "other", "broken")
		}
	})
	if house.err != nil {
		t.Fatal(house.err)
	}
	house.server.showLog(t)
	return house.server
}

// close ends the shared server, if a story used it.
func (h *shared) close() error {
	if h.server == nil {
		return nil
	}
	err := h.server.stop()
	if err != nil {
		err = fmt.Errorf("the shared server: %w\n%s", err, tail(h.server.logText(), 8000))
	}
	return errors.Join(err, os.RemoveAll(h.dir))
}

// cleanEnv is the environment without settings of other programs' servers.
func cleanEnv() []string {
	var clean []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TUTTI_") && !strings.HasPrefix(entry, "FACTER_") && !strings.HasPrefix(entry, "PG") {
			clean = append(clean, entry)
		}
	}
	return append(clean, "TUTTI_AGENT_FACTS_INTERVAL=0") // Facter takes seconds of CPU: agents ask it in the stories about facts
}

// tail is the end of a long text.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "…" + text[len(text)-most:]
}

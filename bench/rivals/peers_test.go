package rivals

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

func TestCAIssuesForBothEndsOfAHandshake(t *testing.T) {
	t.Parallel()
	ca, err := NewCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue("localhost")
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client("node-1.example.org")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := ca.Client("node-1.example.org"); again != client {
		t.Error("a second certificate for the same name")
	}
	near, far := net.Pipe()
	server := tls.Server(far, &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool,
	})
	done := make(chan error, 1)
	go func() { done <- server.HandshakeContext(t.Context()) }()
	if err := tls.Client(near, client).HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := server.ConnectionState().PeerCertificates[0].Subject.CommonName; got != "node-1.example.org" {
		t.Errorf("client is %q", got)
	}
}

func TestMissingProgramNamesThePackage(t *testing.T) {
	t.Parallel()
	_, err := need("no-such-program-anywhere", "some-package")
	var missing *MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "apt-get install --no-install-recommends some-package") {
		t.Errorf("err = %v", err)
	}
}

// script starts a shell as a server.
func script(t *testing.T, text string) *process {
	t.Helper()
	dir := t.TempDir()
	p, err := start(t.Context(), command{path: "/bin/sh", args: []string{"-c", text}, dir: dir, log: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.stop(syscall.SIGTERM) })
	return p
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	p := script(t, `sleep 1000 & echo ready; wait`)
	ready := func(context.Context) bool { return strings.Contains(p.tail(), "ready") }
	if err := p.waitFor(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	pids, err := measure.PIDs(p.pid())
	if err != nil || len(pids) != 2 {
		t.Fatalf("processes %v, err %v", pids, err)
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("stop twice: %v", err)
	}
	deadline := time.After(2 * time.Minute)
	for _, pid := range pids {
		for alive(pid) {
			select {
			case <-deadline:
				t.Fatalf("process %d outlived stop", pid)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// alive says whether a process exists and is more than a zombie.
func alive(pid int) bool {
	usage, err := measure.Tree(pid)
	return err == nil && usage.RSSBytes > 0
}

func TestAStartThatFailsShowsTheLog(t *testing.T) {
	t.Parallel()
	p := script(t, `echo "cannot do that" >&2; exit 3`)
	err := p.waitFor(t.Context(), func(context.Context) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "cannot do that") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("err = %v", err)
	}
	slow := script(t, `sleep 1000`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := slow.waitFor(ctx, func(context.Context) bool { return false }); err == nil {
		t.Error("no error after the time was up")
	}
}

// TestAcceptsKnowsAListener asks at a port that is taken and does not listen yet, and then at the same when it does:
// a port nobody holds would be anybody's the next moment.
func TestAcceptsKnowsAListener(t *testing.T) {
	t.Parallel()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(socket) }()
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	port := address.(*syscall.SockaddrInet4).Port
	if accepts(t.Context(), port) {
		t.Error("a port where nobody listens accepts")
	}
	if err := syscall.Listen(socket, 1); err != nil {
		t.Fatal(err)
	}
	if !accepts(t.Context(), port) {
		t.Error("a listener does not accept")
	}
}

func TestConfigurationsLeaveNothingToFill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := PuppetserverConfig{Dir: dir, EnvironmentPath: "/e", BaseModulePath: "/m", JRubies: 2, Heap: "1g"}
	if _, err := config.write(8140); err != nil {
		t.Fatal(err)
	}
	if err := writePuppetDB(filepath.Join(dir, "db"), 1, 2, PuppetDBConfig{}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, mark := range []string{"@DIR@", "@PORT@", "@CERT@", "@POSTGRES@", "@JRUBIES@", "@THREADS@", "@EXPIRY@"} {
			if strings.Contains(string(text), mark) {
				t.Errorf("%s still has %s", path, mark)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCopyTreeCopiesAll(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	if err := os.MkdirAll(filepath.Join(from, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "a/b/c"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CopyTree(from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "a/b/c")); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
}

// What psql says is in the error, and what is measured is not mixed with it.
func TestErrorsHaveTheWordsOfPsql(t *testing.T) {
	t.Parallel()
	p := &Postgres{bin: t.TempDir()}
	psql := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.bin, "psql"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	psql("echo 'FATAL: there is no such database' >&2; exit 2\n")
	if _, err := p.Bytes(t.Context(), "lost"); err == nil || !strings.Contains(err.Error(), "FATAL: there is no such database") ||
		!strings.Contains(err.Error(), "lost") {
		t.Errorf("the size: %v", err)
	}
	if err := p.Analyze(t.Context(), "lost"); err == nil || !strings.Contains(err.Error(), "FATAL: there is no such database") {
		t.Errorf("a statement: %v", err)
	}
	psql("echo 'WARNING: collation version mismatch' >&2; echo 4711\n")
	if n, err := p.Bytes(t.Context(), "db"); n != 4711 || err != nil {
		t.Errorf("the size is %d, %v", n, err)
	}
}

// A server that does not stop is said, also when nothing was measured.
func TestAServerThatDoesNotStopIsSaid(t *testing.T) {
	t.Parallel()
	broken, stuck := errors.New("nothing was measured"), errors.New("it does not stop")
	for _, wrong := range []error{nil, broken} {
		_, err := whileItRuns(func() error { return stuck }, func() ([]measure.Row, error) { return nil, wrong })
		if !errors.Is(err, stuck) || wrong != nil && !errors.Is(err, wrong) {
			t.Errorf("with %v: %v", wrong, err)
		}
	}
}

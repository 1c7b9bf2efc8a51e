// Package blobs3test starts a real S3 store, versitygw, for tests and benchmarks. `make bin/versitygw` builds it.
package blobs3test

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/store/blobs3"
)

// Server is an S3 store on this machine, in a directory. Its bucket is called tutti.
type Server struct {
	Endpoint string // http://HOST:PORT
	Dir      string // the buckets are directories of it

	tb      testing.TB
	command []string // the program, and what is before it
	address string
	mu      sync.Mutex
	process *exec.Cmd
}

// AccessKey and SecretKey are the credentials of every Server.
const (
	AccessKey = "tuttitest"
	SecretKey = "not-a-secret-of-anybody"
)

// Start starts a store that ends with the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return StartAt(tb, tb.TempDir(), freeAddress(tb))
}

// StartAt starts one in a directory, on an address, through other programs that become it, such as nsenter with its flags.
func StartAt(tb testing.TB, dir, address string, through ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, Dir: dir, command: append(through, find(tb)), address: address}
	s.Endpoint = "http://" + s.address
	if err := os.Mkdir(filepath.Join(s.Dir, "tutti"), 0o700); err != nil {
		tb.Fatal(err)
	}
	s.Again()
	tb.Cleanup(s.Kill)
	return s
}

// Config is how the store is used, below a prefix of its own bucket.
func (s *Server) Config(prefix string) blobs3.Config {
	s.tb.Helper()
	return blobs3.Config{
		Place: "s3://tutti/" + prefix, Endpoint: s.Endpoint, Region: "us-east-1", PathStyle: true,
		CredentialsFile: s.Credentials(SecretKey), Timeout: 10 * time.Second,
	}
}

// Credentials is a new file with a secret key.
func (s *Server) Credentials(secret string) string {
	s.tb.Helper()
	file := filepath.Join(s.tb.TempDir(), "credentials")
	text := "[default]\naws_access_key_id = " + AccessKey + "\naws_secret_access_key = " + secret + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.tb.Fatal(err)
	}
	return file
}

// Again starts the store after a Kill: on the same address, with what it had.
func (s *Server) Again() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	arguments := append(slices.Clone(s.command[1:]), "--quiet", "--health", "/health", "--port", s.address, "posix", s.Dir)
	s.process = exec.CommandContext(context.WithoutCancel(s.tb.Context()), s.command[0], arguments...) //nolint:gosec // `make` built it
	s.process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	s.process.Stderr = os.Stderr
	if err := s.process.Start(); err != nil {
		s.tb.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1500 {
		request, err := http.NewRequestWithContext(s.tb.Context(), http.MethodGet, s.Endpoint+"/health", nil)
		if err != nil {
			s.tb.Fatal(err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			return
		}
		<-tick.C
	}
	s.tb.Fatalf("%s did not come up on %s within 30 s", s.command, s.address)
}

// Kill ends the store at once, as a crash does.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// Object is the file of an object.
func (s *Server) Object(name string) string { return filepath.Join(s.Dir, "tutti", name) }

// find looks for the program in bin/ of this repository.
func find(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		program := filepath.Join(dir, "bin", "versitygw")
		if _, err := os.Stat(program); err == nil {
			return program
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("there is no bin/versitygw: `make bin/versitygw` builds it")
		}
		dir = filepath.Dir(dir)
	}
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// Package natsbustest starts a real NATS server for tests. `make test-deps` installs it.
package natsbustest

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/hint/natsbus"
)

// Server is a NATS server on this machine.
type Server struct {
	Address string // HOST:PORT

	tb      testing.TB
	command []string // the program, and what is before it
	config  string   // file
	mu      sync.Mutex
	process *exec.Cmd
}

// Start starts a server that ends with the test. config is what is in its configuration file besides the address.
func Start(tb testing.TB, config string) *Server {
	tb.Helper()
	return StartAt(tb, freeAddress(tb), config)
}

// StartAt starts one on an address, through other programs that become it, such as nsenter with its flags.
func StartAt(tb testing.TB, address, config string, through ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, command: append(through, find(tb)), Address: address, config: filepath.Join(tb.TempDir(), "nats.conf")}
	if err := os.WriteFile(s.config, []byte("listen: \""+s.Address+"\"\n"+config+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	s.Again()
	tb.Cleanup(s.Kill)
	return s
}

// Config is how the server is used, without encryption or credentials.
func (s *Server) Config() natsbus.Config {
	return natsbus.Config{URL: "nats://" + s.Address, Name: "test", Prefix: "tutti"}
}

// Again starts the server after a Kill: on the same address.
func (s *Server) Again() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = exec.CommandContext(context.WithoutCancel(s.tb.Context()), s.command[0], append(s.command[1:], "-c", s.config)...) //nolint:gosec // Debian's
	if err := s.process.Start(); err != nil {
		s.tb.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if conn, err := new(net.Dialer).DialContext(s.tb.Context(), "tcp", s.Address); err == nil {
			_ = conn.Close()
			return
		}
		<-tick.C
	}
	s.tb.Fatalf("%s did not come up on %s within 30 s", s.command, s.Address)
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// Freeze makes the server silent, and with false lets it go on: as a cut network does, nobody is told.
func (s *Server) Freeze(frozen bool) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	signal := syscall.SIGCONT
	if frozen {
		signal = syscall.SIGSTOP
	}
	if err := s.process.Process.Signal(signal); err != nil {
		s.tb.Fatal(err)
	}
}

// Join implements bustest.World.
func (s *Server) Join(t *testing.T) bus.Bus {
	t.Helper()
	return s.JoinAs(t, s.Config())
}

// JoinAs makes a member with a configuration of its own.
func (s *Server) JoinAs(t *testing.T, config natsbus.Config) bus.Bus {
	t.Helper()
	b, err := natsbus.Open(config, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Cut implements bustest.World.
func (s *Server) Cut(t *testing.T, cut bool) {
	t.Helper()
	if cut {
		s.Kill()
	} else {
		s.Again()
	}
}

// find looks for the program where Debian has it.
func find(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"nats-server", "/usr/sbin/nats-server"} {
		if path, err := exec.LookPath(name); err == nil || errors.Is(err, exec.ErrDot) {
			return path
		}
	}
	tb.Fatal("nats-server is missing, install it with: apt-get install nats-server")
	return ""
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

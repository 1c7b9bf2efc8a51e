package rivals

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// NATS is Debian's nats-server on a loopback port, without encryption.
type NATS struct {
	URL string

	proc *process
}

// StartNATS starts one that logs below dir.
func StartNATS(ctx context.Context, dir string) (*NATS, error) {
	const sbin = "/usr/sbin/nats-server" // not on everybody's PATH
	program := sbin
	if _, err := os.Stat(sbin); err != nil {
		if program, err = need("nats-server", "nats-server"); err != nil {
			return nil, err
		}
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	n := &NATS{URL: "nats://127.0.0.1:" + strconv.Itoa(port)}
	n.proc, err = start(ctx, command{path: program, dir: dir, log: filepath.Join(dir, "nats.log"), args: []string{"-a", "127.0.0.1", "-p", strconv.Itoa(port)}})
	if err != nil {
		return nil, err
	}
	if err := n.proc.waitFor(ctx, func(ctx context.Context) bool { return accepts(ctx, port) }); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// Usage is the process's.
func (n *NATS) Usage() (measure.Usage, error) { return n.proc.usage() }

// Stop ends it.
func (n *NATS) Stop() error { return n.proc.stop(syscall.SIGTERM) }

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// node is a real one: Debian's puppet in directories of its own, and `tutti agent` beside it.
type node struct {
	name, home, binary string
	tutti              *rivals.Tutti
	cmd                *exec.Cmd
}

// connecting is how often it is asked whether the agent is there.
const connecting = 100 * time.Millisecond

// site is the code: files whose content is missing at the beginning of each run, and notifies.
func (n *node) site(resources int) string {
	return fmt.Sprintf("Integer[1, %d].each |$n| {\n  file { \"%s/${n}\": content => \"${n}\\n\" }\n  notify { \"message ${n}\": }\n}\n", resources/2, n.scratch())
}

func (n *node) scratch() string { return filepath.Join(n.home, "scratch") }

// start gets a certificate, and lets the agent use it.
func (n *node) start(ctx context.Context) error {
	if err := os.MkdirAll(n.scratch(), 0o755); err != nil { //nolint:gosec // nothing is in there
		return err
	}
	puppet, err := n.wrap()
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, puppet, "ssl", "bootstrap").CombinedOutput(); err != nil { //nolint:gosec // our own program
		return fmt.Errorf("puppet ssl bootstrap: %w\n%s", err, out)
	}
	dir := filepath.Join(n.home, "agent")
	_, err = n.tutti.Run(ctx, "agent", "join", n.tutti.LocalhostURL(), "--dir", dir, "--certname", n.name,
		"--use-puppet-certificates", "--puppet-ssldir", filepath.Join(n.home, "ssldir"))
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(n.home, "agent.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()             // the agent has its own
	n.cmd = exec.Command(n.binary, "agent", "run", //nolint:gosec,noctx // stop ends it
		"--dir", dir, "--puppet", puppet, "--runs", "off", "--facts-interval", "0s")
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		return err
	}
	return n.connected(ctx)
}

// wrap writes a program that is the node's puppet.
func (n *node) wrap() (string, error) {
	words := []string{
		"--certname", n.name, "--server", "localhost", "--serverport", strings.TrimPrefix(n.tutti.LocalhostURL(), "https://localhost:"), "--color", "false",
		// Debian's modules bring facts that ask apt for updates: seconds for nothing.
		"--basemodulepath", filepath.Join(n.home, "no-modules"),
	}
	for _, dir := range []string{"confdir", "codedir", "vardir", "ssldir", "logdir", "rundir", "publicdir"} {
		words = append(words, "--"+dir, filepath.Join(n.home, dir))
	}
	path := filepath.Join(n.home, "puppet")
	return path, os.WriteFile(path, []byte("#!/bin/sh\nexec puppet \"$@\" '"+strings.Join(words, "' '")+"'\n"), 0o750) //nolint:gosec // a program
}

// connected waits until the server has the agent.
func (n *node) connected(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		out, err := n.tutti.Run(ctx, "agent", "status", "--dir", filepath.Join(n.home, "agent"), "-o", "json")
		if err == nil && strings.Contains(string(out), `"connected": true`) {
			return nil
		}
		if err := measure.Settle(ctx, connecting); err != nil {
			text, _ := os.ReadFile(filepath.Join(n.home, "agent.log"))
			return fmt.Errorf("the agent is not connected: %w\n%s", err, text)
		}
	}
}

// run orders a Puppet run that finds every file missing, and waits for its end.
func (n *node) run(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(n.scratch()), os.MkdirAll(n.scratch(), 0o755)); err != nil { //nolint:gosec // as above
		return err
	}
	_, err := n.tutti.Run(ctx, "run", n.name, "--yes")
	return err
}

func (n *node) stop() error {
	if n.cmd == nil {
		return nil
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	err := n.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		return nil
	}
	return err
}

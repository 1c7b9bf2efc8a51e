package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// agentTimeout is how long an agent may take to connect.
const agentTimeout = 5 * time.Minute

// start starts a `tutti agent` beside each node's puppet, with the certificate that
// Puppet has got. stop ends them.
func (p *puppets) start(ctx context.Context) (stop func() error, err error) {
	p.stage.title("A tutti agent joins beside each puppet agent, with the same certificate")
	var started []*process
	stop = func() error {
		var err error
		for _, p := range started {
			err = errors.Join(err, p.stop())
		}
		return errors.Join(err, p.awaitRuns())
	}
	for _, n := range nodes {
		one, err := p.join(ctx, n)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		started = append(started, one)
	}
	for i, n := range nodes {
		err := until(ctx, agentTimeout, "the agent of "+n.name, started[i], func(ctx context.Context) bool {
			text, err := p.stage.command(ctx, "node", "show", n.name).Output()
			return err == nil && strings.Contains(string(text), "connected to ")
		})
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		p.stage.sayf("%s is connected", n.name)
	}
	return stop, nil
}

// runTimeout is how long a Puppet run may take to its end.
const runTimeout = 10 * time.Minute

// awaitRuns waits for Puppet runs that go on: they outlive the agent that began them, and write into the nodes' directories.
func (p *puppets) awaitRuns() error {
	limit := time.NewTimer(runTimeout)
	defer limit.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for namedInCommands(filepath.Join(p.stage.Dir, "nodes") + "/") {
		select {
		case <-look.C:
		case <-limit.C:
			return fmt.Errorf("a Puppet run did not end within %s: %w", runTimeout, context.DeadlineExceeded)
		}
	}
	return nil
}

// namedInCommands says whether the command of a process names a directory.
func namedInCommands(dir string) bool {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range commands {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), dir) { // else it has ended
			return true
		}
	}
	return false
}

// join joins one node and starts its agent.
func (p *puppets) join(ctx context.Context, n node) (*process, error) {
	home := filepath.Join(p.home(n), "agent")
	puppet, err := p.wrap(n)
	if err != nil {
		return nil, err
	}
	err = p.stage.tutti(ctx, "agent", "join", "https://localhost:"+p.stage.port(), "--dir", home, "--certname", n.name,
		"--use-puppet-certificates", "--puppet-ssldir", filepath.Join(p.home(n), "ssldir"))
	if err != nil {
		return nil, err
	}
	args := []string{"agent", "run", "--dir", home, "--puppet", puppet, "--runs", "scheduled", "--run-interval", "8760h"}
	p.stage.sayf("$ tutti %s &", strings.Join(args, " "))
	return p.stage.launch("agent-"+n.name, args...)
}

// wrap writes a program that is the node's puppet: it stays in the node's directories.
func (p *puppets) wrap(n node) (string, error) {
	var line strings.Builder
	for _, word := range append(p.facts(n), "puppet") {
		fmt.Fprintf(&line, " %s", quoted(word))
	}
	line.WriteString(` "$@"`)
	for _, word := range p.settings(n) {
		fmt.Fprintf(&line, " %s", quoted(word))
	}
	path := filepath.Join(p.home(n), "puppet")
	return path, os.WriteFile(path, []byte("#!/bin/sh\nexec env"+line.String()+"\n"), 0o750) //nolint:gosec // a program
}

// quoted is a word for the shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

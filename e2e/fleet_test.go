package e2e_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tutti-project/tutti/internal/sim"
)

// fleet is simulated nodes whose agents are connected: an agent's own code on machines that
// are made up. They stay until it is closed.
type fleet struct {
	stop func()
	done chan error
}

// newEnroller gets certificates from a server that signs at once.
func newEnroller(s *server) (*sim.Enroller, error) {
	roots, err := s.pool()
	if err != nil {
		return nil, err
	}
	return sim.NewEnroller("https://localhost:"+s.port(), roots)
}

// startFleet makes nodes, sends their facts and returns when all of them are connected.
func startFleet(s *server, enroller *sim.Enroller, names ...string) (*fleet, error) {
	return startNodes(s, enroller, sim.Config{Names: names})
}

// startNodes is startFleet for nodes with more of a life than orders.
func startNodes(s *server, enroller *sim.Enroller, config sim.Config) (*fleet, error) {
	config.URLs, config.LongestPause = []string{"wss://localhost:" + s.port()}, time.Second
	config.Identity = func(ctx context.Context, name string) (*tls.Config, error) { return enroller.Enrol(ctx, name) }
	nodes := sim.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	starting, started := context.WithTimeout(ctx, patience)
	defer started()
	f := &fleet{stop: sync.OnceFunc(cancel), done: make(chan error, 1)}
	if err := nodes.Enrol(starting); err != nil {
		f.stop()
		return nil, err
	}
	if err := nodes.SendFacts(starting, "https://localhost:"+s.port()); err != nil {
		f.stop()
		return nil, err
	}
	go func() { f.done <- nodes.Run(ctx) }()
	if err := nodes.AwaitConnected(starting, time.Time{}); err != nil {
		return nil, fmt.Errorf("%w; %w", err, f.close())
	}
	return f, nil
}

// close ends the nodes' agents and waits for them.
func (f *fleet) close() error {
	f.stop()
	err := <-f.done
	f.done <- err
	return err
}

// connectNodes is the command `fleet NODE...` of stories; `! fleet` disconnects them all.
func connectNodes(script *testscript.TestScript, not bool, names []string) {
	story := script.Value(storyKey{}).(*storyServer)
	if not {
		for _, f := range story.fleets {
			script.Check(f.close())
		}
		story.fleets = nil
		return
	}
	if story.enroller == nil { // nodes that come back have the key that they had
		enroller, err := newEnroller(story.server)
		script.Check(err)
		script.Defer(enroller.Close)
		story.enroller = enroller
	}
	f, err := startFleet(story.server, story.enroller, names...)
	script.Check(err)
	script.Defer(func() { script.Check(f.close()) })
	story.fleets = append(story.fleets, f)
}

// runAgents is the command `agent NODE...` of stories: real agents on this machine, each in a
// directory of its own, agent-NODE. They end with the story.
func runAgents(script *testscript.TestScript, not bool, names []string) {
	if not || len(names) == 0 {
		script.Fatalf("usage: agent NODE...")
	}
	story := script.Value(storyKey{}).(*storyServer)
	for _, name := range names {
		dir := script.MkAbs("agent-" + name)
		script.Check(script.Exec("tutti", "agent", "join", "https://localhost:"+story.port(), "--certname", name,
			"--ca-file", filepath.Join(story.data, "ca", "ca_crt.pem"), "--dir", dir))
		script.Check(story.runAgent(script, dir))
	}
	for _, name := range names {
		if !within(startTimeout, func() bool { return strings.Contains(story.logText(), "uri=pcp://"+name+"/agent") }) {
			script.Fatalf("the agent of %s did not connect:\n%s", name, script.ReadFile("agent-"+name+"/log"))
		}
	}
}

// runAgent starts an agent that ends with the story.
func (s *storyServer) runAgent(script *testscript.TestScript, dir string) error {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	cmd := exec.Command(binary, "agent", "run", "--dir", dir)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	if err := cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	script.Check(os.WriteFile(filepath.Join(dir, "agent.pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600))
	script.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		script.Check(cmd.Wait())
		script.Check(log.Close())
	})
	return nil
}

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// stage runs commands and shows them.
type stage struct {
	Config
	env     []string
	failing atomic.Bool  // some simulated nodes fail when they apply a catalog
	asked   atomic.Int64 // how often a simulated node was asked to apply one meanwhile
}

func (s *stage) title(text string)               { s.sayf("\n== %s", text) }
func (s *stage) sayf(format string, args ...any) { _, _ = fmt.Fprintf(s.Out, format+"\n", args...) }

// startServer starts `tutti server` and waits until it answers. stop ends it
// and waits for it.
func (s *stage) startServer(ctx context.Context) (stop func() error, err error) {
	data := filepath.Join(s.Dir, "data")
	args := []string{
		"server", "--data", data, "--listen", s.Listen, "--dns-alt-names", "localhost", "--autosign", "list",
		"--autosign-list", "*." + domain, "--access-log=false", "--hint-apply", "now", "--max-load", "0",
		"--reuse-check", "0", // what is compiled again to be compared waits for an idle machine
	}
	s.title("Start a server")
	s.sayf("$ tutti %s", strings.Join(args, " "))
	server, err := s.launch("server", args...)
	if err != nil {
		return nil, err
	}
	if err := s.awaitServer(ctx, server); err != nil {
		_ = server.stop() // its end is no news
		return nil, err
	}
	s.sayf("%s", strings.TrimRight(server.text(), "\n"))
	return server.stop, nil
}

// awaitServer polls until the server answers, or says what it said at its end.
func (s *stage) awaitServer(ctx context.Context, server *process) error {
	return until(ctx, startTimeout, "the server", server, func(ctx context.Context) bool {
		return s.command(ctx, "node", "list", "-q").Run() == nil
	})
}

// until polls until something is ready, or the process it needs has ended.
func until(ctx context.Context, limit time.Duration, what string, p *process, ready func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if ready(ctx) {
			return nil
		}
		if err := p.early(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready within %s: %w\n%s", what, limit, ctx.Err(), p.text())
		case <-tick.C:
		}
	}
}

func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Binary, args...) //nolint:gosec // our own executable
	cmd.Env = s.env
	return cmd
}

// tutti shows and runs one command line.
func (s *stage) tutti(ctx context.Context, args ...string) error {
	s.sayf("$ tutti %s", shown(args))
	cmd := s.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = s.Out, s.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("tutti %s: %w", shown(args), err)
	}
	return nil
}

// reportID is the id of the newest run that changed something.
func (s *stage) reportID(ctx context.Context) (string, error) {
	out, err := s.command(ctx, "report", "list", "--status", "changed", "--limit", "1", "-o", "name").Output()
	id := strings.TrimSpace(string(out))
	if err != nil || len(id) < 12 {
		return "", fmt.Errorf("no report of a change is stored: %q: %w", id, err)
	}
	return id[:12], nil
}

// agent is the command line of one node's puppet agent.
func (s *stage) agent(n node) []string {
	args := append([]string{"env"}, s.facts(n)...)
	return append(append(args, "puppet", "agent", "--test", "--color=false"), s.settings(n)...)
}

// facts is what a node's puppet learns of it by its environment.
func (s *stage) facts(n node) []string {
	return []string{"FACTER_demo_root=" + filepath.Join(s.home(n), "root"), "FACTER_demo_role=" + n.role}
}

// home is where everything of a node lies.
func (s *stage) home(n node) string { return filepath.Join(s.Dir, "nodes", n.name) }

// settings keep a node's puppet in its own directories.
func (s *stage) settings(n node) []string {
	args := []string{"--certname", n.name, "--server", "localhost", "--serverport", s.port()}
	// Debian's modules lie in the base module path, and some bring facts that ask apt for updates: seconds for nothing.
	args = append(args, "--basemodulepath", filepath.Join(s.home(n), "no-modules"))
	for _, dir := range []string{"confdir", "codedir", "ssldir", "vardir", "logdir", "rundir", "publicdir"} {
		args = append(args, "--"+dir, filepath.Join(s.home(n), dir))
	}
	return args
}

// puppet runs one node's agent; changes must come exactly when they are expected.
func (s *stage) puppet(ctx context.Context, n node, changes bool) error {
	args := s.agent(n)
	if err := os.MkdirAll(s.home(n), 0o750); err != nil {
		return err
	}
	s.sayf("$ puppet agent --test --certname %s --server localhost …", n.name)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the line is ours
	shown := &plugins{out: s.Out}
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, shown, shown
	err := cmd.Run()
	shown.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := cmd.ProcessState.ExitCode()
	if want := map[bool]int{true: 2, false: 0}[changes]; code != want {
		return fmt.Errorf("puppet agent on %s ended with %d instead of %d: %w", n.name, code, want, err)
	}
	s.sayf("%s %s", n.name, s.summary(ctx, n))
	return nil
}

// summary counts what the node's run did, from the agent's own report.
func (s *stage) summary(ctx context.Context, n node) string {
	var reports struct {
		Items []struct {
			Counts struct{ Resources, Changed, Failed int }
			Status string
		}
	}
	out, err := s.command(ctx, "report", "list", "--node", n.name, "--limit", "1", "-o", "json").Output()
	if err != nil || json.Unmarshal(out, &reports) != nil || len(reports.Items) != 1 {
		return "has no report"
	}
	r := reports.Items[0]
	return fmt.Sprintf("%s: %d resources, %d changed, %d failed", r.Status, r.Counts.Resources, r.Counts.Changed, r.Counts.Failed)
}

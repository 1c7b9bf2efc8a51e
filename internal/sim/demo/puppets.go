package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/fault"
)

// puppets are the real nodes: each has a puppet agent with directories of its own.
type puppets struct{ stage *stage }

// agent is the command line of one node's puppet agent.
func (p *puppets) agent(n node) []string {
	args := append([]string{"env"}, p.facts(n)...)
	return append(append(args, "puppet", "agent", "--test", "--color=false"), p.settings(n)...)
}

// facts is what a node's puppet learns of it by its environment.
func (p *puppets) facts(n node) []string {
	return []string{"FACTER_demo_root=" + filepath.Join(p.home(n), "root"), "FACTER_demo_role=" + n.role}
}

// home is where everything of a node lies.
func (p *puppets) home(n node) string { return filepath.Join(p.stage.Dir, "nodes", n.name) }

// settings keep a node's puppet in its own directories.
func (p *puppets) settings(n node) []string {
	args := []string{"--certname", n.name, "--server", "localhost", "--serverport", p.stage.port()}
	// Debian's modules lie in the base module path, and some bring facts that ask apt for updates: seconds for nothing.
	args = append(args, "--basemodulepath", filepath.Join(p.home(n), "no-modules"))
	for _, dir := range []string{"confdir", "codedir", "ssldir", "vardir", "logdir", "rundir", "publicdir"} {
		args = append(args, "--"+dir, filepath.Join(p.home(n), dir))
	}
	return args
}

// run runs one node's agent; changes must come exactly when they are expected.
func (p *puppets) run(ctx context.Context, n node, changes bool) error {
	args := p.agent(n)
	if err := os.MkdirAll(p.home(n), 0o750); err != nil {
		return err
	}
	p.stage.sayf("$ puppet agent --test --certname %s --server localhost …", n.name)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the line is ours
	shown := &plugins{out: p.stage.Out}
	cmd.Env, cmd.Stdout, cmd.Stderr = p.stage.env, shown, shown
	err := cmd.Run()
	shown.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := cmd.ProcessState.ExitCode()
	if want := map[bool]int{true: 2, false: 0}[changes]; code != want {
		return fmt.Errorf("puppet agent on %s ended with %d instead of %d: %w", n.name, code, want, err)
	}
	p.stage.sayf("%s %s", n.name, p.summary(ctx, n))
	return nil
}

// summary counts what the node's run did, from the agent's own report.
func (p *puppets) summary(ctx context.Context, n node) string {
	var reports struct {
		Items []struct {
			Counts struct{ Resources, Changed, Failed int }
			Status string
		}
	}
	out, err := p.stage.command(ctx, "report", "list", "--node", n.name, "--limit", "1", "-o", "json").Output()
	if err != nil || json.Unmarshal(out, &reports) != nil || len(reports.Items) != 1 {
		return "has no report"
	}
	r := reports.Items[0]
	return fmt.Sprintf("%s: %s, %d changed, %d failed", r.Status, fault.Count(r.Counts.Resources, "resource"), r.Counts.Changed, r.Counts.Failed)
}

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stage runs commands and shows them.
type stage struct {
	Config
	env []string
}

func (s *stage) title(text string)               { s.sayf("\n== %s", text) }
func (s *stage) sayf(format string, args ...any) { _, _ = fmt.Fprintf(s.Out, format+"\n", args...) }

// startServer starts `tutti server` and waits until it answers. stop ends it
// and waits for it.
func (s *stage) startServer(ctx context.Context) (stop func() error, err error) {
	data := filepath.Join(s.Dir, "data")
	args := []string{
		"server", "--data", data, "--listen", s.Listen, "--dns-alt-names", "localhost", "--autosign", "list",
		"--autosign-list", "*.demo.test", "--access-log=false",
	}
	s.title("Start a server")
	s.sayf("$ tutti %s", strings.Join(args, " "))
	log, err := os.Create(filepath.Join(s.Dir, "server.log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.Binary, args...) //nolint:gosec,noctx // it is ended by stop, gently
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is ours to pass on
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return errors.Join(<-ended, log.Close())
	}
	if err := s.awaitServer(ctx, ended); err != nil {
		return nil, errors.Join(err, stopped(stop))
	}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		return nil, errors.Join(err, stopped(stop))
	}
	s.sayf("%s", strings.TrimRight(string(text), "\n"))
	return stop, nil
}

// stopped ends a server whose end is no news.
func stopped(stop func() error) error {
	_ = stop()
	return nil
}

// awaitServer polls until the server answers, or says what it said at its end.
func (s *stage) awaitServer(ctx context.Context, ended chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if s.command(ctx, "node", "list", "-q").Run() == nil {
			return nil
		}
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(filepath.Join(s.Dir, "server.log"))
			return fmt.Errorf("the server ended: %w\n%s", err, text)
		case <-ctx.Done():
			return fmt.Errorf("the server did not answer within %s", startTimeout)
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
	s.sayf("$ tutti %s", strings.Join(args, " "))
	cmd := s.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = s.Out, s.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("tutti %s: %w", strings.Join(args, " "), err)
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
	home := filepath.Join(s.Dir, "nodes", n.name)
	root := filepath.Join(home, "root")
	address, _ := os.ReadFile(filepath.Join(s.Dir, "data", "address"))
	_, port, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(address)), "https://"), ":")
	args := []string{
		"env", "FACTER_demo_root=" + root, "FACTER_demo_role=" + n.role, "puppet", "agent", "--test", "--color=false", "--certname", n.name,
		"--server", "localhost", "--serverport", port,
	}
	// Debian's modules lie in the base module path, and some bring facts that ask apt for updates: seconds for nothing.
	args = append(args, "--basemodulepath", filepath.Join(home, "no-modules"))
	for _, dir := range []string{"confdir", "codedir", "ssldir", "vardir", "logdir", "rundir", "publicdir"} {
		args = append(args, "--"+dir, filepath.Join(home, dir))
	}
	return args
}

// puppet runs one node's agent; changes must come exactly when they are expected.
func (s *stage) puppet(ctx context.Context, n node, changes bool) error {
	args := s.agent(n)
	if err := os.MkdirAll(filepath.Join(s.Dir, "nodes", n.name), 0o750); err != nil {
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

package demo

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
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
		"--autosign-list", "*." + domain, "--access-log=false", "--hint-apply", "now", "--max-load", "0",
		"--reuse-check", "0", // what is compiled again to be compared waits for an idle machine
		"--console-listen", "127.0.0.1:0", "--console-plain",
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

// console shows a link into the console, and how to get another: this one is good once, and not for long.
func (s *stage) console(ctx context.Context) error {
	s.title("Look at it in a browser")
	if err := s.tutti(ctx, "console", "open"); err != nil {
		return err
	}
	s.sayf("The link logs in once, within a minute. Another one: TUTTI_DATA=%s %s console open", filepath.Join(s.Dir, "data"), s.Binary)
	return nil
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

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// liveEvents is what a run says that changes one resource: its beginning, the change, its end.
const liveEvents = "3"

// watching does something while events are shown as they come, and returns when as many came as
// are chosen.
func (s *stage) watching(ctx context.Context, choice []string, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, quietTimeout)
	defer cancel()
	args := append([]string{"event", "tail"}, choice...)
	s.sayf("$ tutti %s &", shown(args))
	tail := s.command(ctx, args...)
	tail.Cancel = func() error { return tail.Process.Kill() }
	tail.WaitDelay = 5 * time.Second
	live := &lines{out: s.Out, before: "    live: "}
	tail.Stdout, tail.Stderr = live, live
	if err := tail.Start(); err != nil {
		return err
	}
	before := s.Out
	s.Out = live.beside()
	defer func() { s.Out = before }()
	if err := do(); err != nil {
		cancel()
		return errors.Join(err, tail.Wait())
	}
	if err := tail.Wait(); err != nil {
		return fmt.Errorf("tutti %s: %w", shown(args), err)
	}
	return nil
}

// applied shows what the node's agent has done, and fails if it was not what was deployed.
func (p *puppets) applied(ctx context.Context, name string) error {
	var home string
	for _, n := range nodes {
		if n.name == name {
			home = p.home(n)
		}
	}
	p.stage.title("The agent has fetched the catalog that it was told of, and applied it")
	if err := p.stage.tutti(ctx, "agent", "status", "--dir", home+"/agent"); err != nil {
		return err
	}
	p.stage.sayf("$ grep workers %s/root/etc/app.ini", home)
	line, err := exec.CommandContext(ctx, "grep", "workers", home+"/root/etc/app.ini").Output() //nolint:gosec // the path is ours
	if err != nil || strings.TrimSpace(string(line)) != "workers = 6" {
		return fmt.Errorf("%s has %q in its file: %w", name, line, errors.Join(err, errNotApplied))
	}
	p.stage.sayf("%s", bytes.TrimSpace(line))
	return nil
}

var errNotApplied = errors.New("what was deployed is not applied")

// lines writes whole lines, each with something before it, to an output that others use, too.
type lines struct {
	mu     sync.Mutex
	out    io.Writer
	before string
	begun  []byte
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = append(l.begun, text...)
	for {
		line, rest, whole := bytes.Cut(l.begun, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		if _, err := fmt.Fprintf(l.out, "%s%s\n", l.before, line); err != nil {
			return 0, err
		}
		l.begun = rest
	}
}

// beside is the same output for the others.
func (l *lines) beside() io.Writer { return beside{l} }

type beside struct{ *lines }

func (b beside) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(text)
}

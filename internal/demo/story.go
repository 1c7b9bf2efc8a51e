package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The waves of the demo's releases: one node first, the rest a few at a time, and no node may fail.
var inWaves = []string{"--wave", "1", "--wave", "rest", "--max-failures", "0", "--concurrency", "4"}

// someFailed is how `tutti release create` ends when nodes have failed.
const someFailed = 4

// story is a change from its preview to the fleet: a good one is released in waves, a bad one is stopped by
// its failures and taken back. What is released is what the preview has shown.
func (s *stage) story(ctx context.Context, repo string) error {
	s.title("From now on nodes have what is released to them, whatever is deployed")
	if err := s.tutti(ctx, "catalog", "mode", "--group", "All Nodes", "released"); err != nil {
		return err
	}
	if err := s.preview(ctx, "1", repo, "s/^site /# shown by Tutti\\nsite /"); err != nil {
		return err
	}
	s.title("Release exactly that: to one node first, then to the rest")
	if err := s.tutti(ctx, append([]string{"release", "create", "--preview", "1"}, inWaves...)...); err != nil {
		return err
	}
	if s.Nodes == 0 {
		return s.wayBack(ctx, "1")
	}
	if err := s.preview(ctx, "2", repo, "s/listen/bind/"); err != nil {
		return err
	}
	if err := s.stopped(ctx); err != nil {
		return err
	}
	return s.wayBack(ctx, "2")
}

// preview changes a template in a branch, which is a copy of the control repository, and shows what that would change.
func (s *stage) preview(ctx context.Context, number, repo, edit string) error {
	s.title("Change a template in a branch, and see what that would change, before anything does")
	branch := repo + "-" + number
	s.sayf("$ cp -r %s %s", repo, branch)
	if err := os.CopyFS(branch, os.DirFS(repo)); err != nil {
		return err
	}
	if err := s.edit(ctx, edit, filepath.Join(branch, "site", "profile", "templates", "site.conf.epp")); err != nil {
		return err
	}
	if err := s.tutti(ctx, "preview", "create", "production", "--ref", branch); err != nil {
		return err
	}
	return s.tutti(ctx, "preview", "diff", number, committedNode)
}

// stopped releases what some nodes cannot take: the release pauses, and the nodes whose turn has not come are left alone.
func (s *stage) stopped(ctx context.Context) error {
	s.title("Release it; some simulated nodes fail with it, and none may: the second wave stops")
	s.failing.Store(true)
	defer s.failing.Store(false)
	err := s.tutti(ctx, append([]string{"release", "create", "--preview", "2"}, inWaves...)...)
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != someFailed {
		return fmt.Errorf("a release with nodes that fail does not end with exit code %d: %w", someFailed, errors.Join(err, errNotStopped))
	}
	return s.tutti(ctx, "release", "show", "2")
}

var errNotStopped = errors.New("nothing has stopped it")

// wayBack gives nodes what they had before a release, and fails unless all of them have applied it.
func (s *stage) wayBack(ctx context.Context, release string) error {
	s.title("Roll back: nothing is compiled, every node gets what it had before")
	if err := s.tutti(ctx, "rollback", "--release", release, "--wave", "1", "--wave", "rest", "--max-failures", "0"); err != nil {
		return err
	}
	s.title("All green: every node of the release has applied the catalog that it is to have")
	return s.green(ctx, release)
}

// green looks at each node of a release: it has applied what it may have.
func (s *stage) green(ctx context.Context, release string) error {
	var targets []struct{ Name string }
	if err := s.ask(ctx, &targets, "release", "nodes", release); err != nil {
		return err
	}
	var behind []string
	for _, t := range targets {
		var node struct{ Delivery struct{ State string } }
		if err := s.ask(ctx, &node, "node", "show", t.Name); err != nil {
			return err
		}
		if node.Delivery.State != "current" {
			behind = append(behind, t.Name+" is "+node.Delivery.State)
		}
	}
	s.sayf("%d of %d nodes are current", len(targets)-len(behind), len(targets))
	if len(behind) > 0 || len(targets) == 0 {
		return fmt.Errorf("not all nodes are green: %.500s", strings.Join(behind, ", "))
	}
	return s.tutti(ctx, "release", "list")
}

package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gitEnv keeps the configuration and the name of whoever runs the demo out of its repository.
var gitEnv = []string{
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=demo", "GIT_AUTHOR_EMAIL=demo@" + domain, "GIT_COMMITTER_NAME=demo",
	"GIT_COMMITTER_EMAIL=demo@" + domain,
}

// The one branch that is there at first, and the template that others change.
const (
	trunk    = "main"
	template = "site/profile/templates/site.conf.epp"
)

// repository is the control repository, one of git.
type repository struct {
	stage *stage
	dir   string
}

// begin makes it one of git.
func (g *repository) begin(ctx context.Context) error {
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch", trunk}, {"add", "--all"}, {"commit", "--quiet", "--message", "first"}} {
		if err := g.stage.quietly(ctx, "git", append([]string{"-C", g.dir}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// branch makes a branch that differs in one file.
func (g *repository) branch(ctx context.Context, name, edit, file, message string) error {
	if err := g.stage.shell(ctx, "git", "-C", g.dir, "switch", "--quiet", "--create", name); err != nil {
		return err
	}
	return g.change(ctx, edit, file, message)
}

// change edits a file and commits that.
func (g *repository) change(ctx context.Context, edit, file, message string) error {
	path := filepath.Join(g.dir, file)
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := g.stage.shell(ctx, "sed", "-i", edit, path); err != nil {
		return err
	}
	after, err := os.ReadFile(path)
	if err == nil && string(after) == string(before) {
		err = fmt.Errorf("sed has changed nothing in %s", path)
	}
	if err != nil {
		return err
	}
	return g.stage.shell(ctx, "git", "-C", g.dir, "commit", "--quiet", "--all", "--message", message)
}

// merge brings a branch to the trunk.
func (g *repository) merge(ctx context.Context, name string) error {
	if err := g.stage.shell(ctx, "git", "-C", g.dir, "switch", "--quiet", trunk); err != nil {
		return err
	}
	return g.stage.shell(ctx, "git", "-C", g.dir, "merge", "--quiet", name)
}

// shell shows and runs a command that is not ours.
func (s *stage) shell(ctx context.Context, name string, args ...string) error {
	s.sayf("$ %s %s", name, shown(args))
	return s.quietly(ctx, name, args...)
}

// quietly runs a command that says nothing when it succeeds.
func (s *stage) quietly(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the line is ours
	cmd.Env = append(s.env, gitEnv...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, shown(args), err, out)
	}
	return nil
}

// shown is words as one types them into a shell.
func shown(words []string) string {
	typed := make([]string, len(words))
	for i, word := range words {
		if typed[i] = word; word == "" || strings.ContainsAny(word, " ;&|<>()$`\\\"'*?#~!{}") {
			typed[i] = quoted(word)
		}
	}
	return strings.Join(typed, " ")
}

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

// beginRepo makes the control repository one of git.
func (s *stage) beginRepo(ctx context.Context, repo string) error {
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch", trunk}, {"add", "--all"}, {"commit", "--quiet", "--message", "first"}} {
		if err := s.quietly(ctx, "git", append([]string{"-C", repo}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// branch makes a branch that differs in one file.
func (s *stage) branch(ctx context.Context, repo, name, edit, file, message string) error {
	if err := s.shell(ctx, "git", "-C", repo, "switch", "--quiet", "--create", name); err != nil {
		return err
	}
	return s.change(ctx, repo, edit, file, message)
}

// change edits a file and commits that.
func (s *stage) change(ctx context.Context, repo, edit, file, message string) error {
	path := filepath.Join(repo, file)
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := s.shell(ctx, "sed", "-i", edit, path); err != nil {
		return err
	}
	after, err := os.ReadFile(path)
	if err == nil && string(after) == string(before) {
		err = fmt.Errorf("sed has changed nothing in %s", path)
	}
	if err != nil {
		return err
	}
	return s.shell(ctx, "git", "-C", repo, "commit", "--quiet", "--all", "--message", message)
}

// merge brings a branch to the trunk.
func (s *stage) merge(ctx context.Context, repo, name string) error {
	if err := s.shell(ctx, "git", "-C", repo, "switch", "--quiet", trunk); err != nil {
		return err
	}
	return s.shell(ctx, "git", "-C", repo, "merge", "--quiet", name)
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

package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/program/git"
)

func TestHeadOfAWorkTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := git.Head(t.Context(), dir); got != "" {
		t.Errorf("no work tree has commit %q", got)
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.test"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "--quiet")
	run("commit", "--quiet", "--allow-empty", "-m", "first")
	if got := git.Head(t.Context(), dir); len(got) != 40 {
		t.Errorf("the commit is %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := git.Head(t.Context(), dir); got != "" {
		t.Errorf("a changed work tree has commit %q", got)
	}
}

// A commit speaks for a directory below a work tree only if it holds it.
func TestHeadOfADirectoryInAWorkTree(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, text := range map[string]string{".gitignore": "build/\n", "control/site.pp": "", "build/site.pp": ""} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "first"}} {
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=t", "-c", "user.email=t@example.test"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for dir, known := range map[string]bool{".": true, "control": true, "build": false, "empty": false} {
		if got := git.Head(t.Context(), filepath.Join(root, dir)); (got != "") != known {
			t.Errorf("%s has commit %q", dir, got)
		}
	}
}

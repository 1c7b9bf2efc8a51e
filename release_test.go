package tutti_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// tried is a version that no release has.
const tried = "900.1.0"

// A release is made in a copy of this tree: archives whose program says its version, with pages and completions, a changelog, a commit, a tag.
// What is wrong is refused before anything is done, and the source that is released gives the same program without git, to the byte.
func TestAReleaseIsWhatItSays(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"git", "make", "zip", "sha256sum", "mandoc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: make test-deps", program)
		}
	}
	tree := copyOfTree(t)
	in := func(dir string, args ...string) string {
		t.Helper()
		out, err := command(t, dir, args...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(out)
	}
	// There is something to release, also right after a release.
	change := filepath.Join(tree, "changelog/unreleased/of-this-test.md")
	if err := os.MkdirAll(filepath.Dir(change), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(change, []byte("The release is tested.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in(tree, "git", "init", "--quiet", "--initial-branch", "main")
	in(tree, "git", "config", "user.name", "A Maintainer")
	in(tree, "git", "config", "user.email", "maintainer@example.test")
	in(tree, "git", "add", "--all")
	in(tree, "git", "commit", "--quiet", "--message", "all")
	before := in(tree, "git", "rev-parse", "HEAD")
	refused := func(want string, version string) {
		t.Helper()
		if out, err := command(t, tree, "tools/release", version); err == nil || !strings.Contains(out, want) {
			t.Errorf("release %q: %v, %q; want it refused with %q", version, err, out, want)
		}
		if now := in(tree, "git", "rev-parse", "HEAD"); now != before {
			t.Fatalf("release %q made a commit", version)
		}
	}
	for _, version := range []string{"", "1", "0.1", "v0.1.0", "01.2.3", "0.1.0 ", "main"} {
		refused("is no version such as 0.1.0", version)
	}
	note := filepath.Join(tree, "note")
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("changes that are not committed", tried)
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}

	platform := runtime.GOOS + "/" + runtime.GOARCH
	in(tree, "env", "PLATFORMS="+platform, "tools/release", tried)
	if kind := in(tree, "git", "cat-file", "-t", "v"+tried); kind != "tag" {
		t.Errorf("the tag is a %s, want an annotated one", kind)
	}
	head := in(tree, "git", "rev-parse", "HEAD")
	if tagged, parent := in(tree, "git", "rev-parse", "v"+tried+"^{commit}"), in(tree, "git", "rev-parse", "HEAD^"); tagged != head || parent != before {
		t.Errorf("the tag is at %s and its parent %s, want the one new commit %s behind %s", tagged, parent, head, before)
	}
	if changed := in(tree, "git", "status", "--porcelain"); changed != "" {
		t.Errorf("the tree is not clean:\n%s", changed)
	}
	changelog(t, tree)

	dist := filepath.Join(tree, "dist")
	in(dist, "sha256sum", "--check", "--strict", "SHA256SUMS")
	name := "tutti-" + tried + "-" + strings.ReplaceAll(platform, "/", "-")
	for _, archive := range []string{name, "tutti-" + tried} {
		in(dist, "tar", "xzf", archive+".tar.gz")
	}
	released := filepath.Join(dist, name)
	for _, file := range []string{
		"LICENSE", "LICENCES.md", "README.md", "CHANGELOG.md", "completions/tutti.bash", "completions/_tutti", "completions/tutti.fish",
		"systemd/tutti-server.service", "sysusers.d/tutti.conf", "man/tutti.1.gz", "man/tutti-node-list.1.gz",
	} {
		if info, err := os.Stat(filepath.Join(released, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s is not in the archive: %v", file, err)
		}
	}
	said := in(released, "./tutti", "version")
	for what, want := range map[string]string{"Version": tried, "Commit": head, "Platform": platform} {
		if !regexp.MustCompile(`(?m)^` + what + ` +` + regexp.QuoteMeta(want) + `$`).MatchString(said) {
			t.Errorf("the program does not say %s %s:\n%s", what, want, said)
		}
	}
	in(released, "sh", "-c", "gzip -dc man/tutti.1.gz | mandoc -T lint -W warning")
	refused2, err := command(t, tree, "tools/release", tried)
	if err == nil || !strings.Contains(refused2, "there is a tag v"+tried) {
		t.Errorf("the same version again: %v, %q", err, refused2)
	}
	sameProgram(t, tree, filepath.Join(dist, "tutti-"+tried), in)
}

// changelog looks at what became of the files of changes.
func changelog(t *testing.T, tree string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(tried) + ` \(\d{4}-\d\d-\d\d\)$`).Match(text) {
		t.Errorf("CHANGELOG.md has no section:\n%.500s", text)
	}
	left, err := filepath.Glob(filepath.Join(tree, "changelog/unreleased/*.md"))
	if err != nil || len(left) > 0 {
		t.Errorf("not released: %v, %v", left, err)
	}
	files, err := filepath.Glob(filepath.Join(tree, "changelog", tried, "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of changes: %v", err)
	}
	words := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\n- ", "\n")), " ")
	for _, file := range files {
		change, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(strings.Fields(strings.ReplaceAll("\n"+string(change), "\n- ", "\n")), " ")
		if !strings.Contains(words, want) {
			t.Errorf("%s is not in CHANGELOG.md as it was written", filepath.Base(file))
		}
	}
}

// sameProgram builds the released commit in its checkout, and from the archive that has no git.
func sameProgram(t *testing.T, checkout, archive string, in func(dir string, args ...string) string) {
	t.Helper()
	if one, other := in(checkout, "tools/version"), in(archive, "tools/version"); one != other || !strings.HasPrefix(one, tried+"\n") {
		t.Errorf("the checkout says %q, the archive %q", one, other)
	}
	var programs [][]byte
	for _, dir := range []string{checkout, archive} {
		in(dir, "make", "build")
		program, err := os.ReadFile(filepath.Join(dir, "bin/tutti"))
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program)
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the archive gives another program than the checkout")
	}
	in(checkout, "git", "commit", "--quiet", "--allow-empty", "--message", "later")
	if later := in(checkout, "tools/version"); !regexp.MustCompile(`^` + regexp.QuoteMeta(tried) + `\+1\.g[0-9a-f]+\n`).MatchString(later) {
		t.Errorf("one commit behind the tag: %q", later)
	}
}

// copyOfTree is this tree as it is now, without what is built.
func copyOfTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains([]string{".git", "bin", "dist", ".cache", "node_modules", "bench/out"}, path) || strings.HasSuffix(path, ".test") {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		to := filepath.Join(tree, path)
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(to, text, info.Mode().Perm()))
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// command runs a program of the release, and returns all that it says.
func command(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

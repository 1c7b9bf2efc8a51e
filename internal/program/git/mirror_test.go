package git

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

func mirrorOf(t *testing.T, url string) Mirror {
	t.Helper()
	return Mirror{Dir: filepath.Join(t.TempDir(), "mirror"), URL: url, MaxBytes: 1 << 30, Timeout: time.Minute}
}

// checkedOut is the file n of a branch, and its commit.
func checkedOut(t *testing.T, m Mirror, branch string) (n, commit string) {
	t.Helper()
	dir := t.TempDir()
	commit, err := m.Checkout(t.Context(), branch, dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "n"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), commit
}

func TestMirrorFollowsBranches(t *testing.T) {
	t.Parallel()
	dir, commits := repository(t, nil)
	run(t, dir, "branch", "odd;name")
	m := mirrorOf(t, "file://"+dir)
	heads, err := m.Branches(t.Context())
	want := map[string]string{"main": commits[1], "old/line": commits[0], "odd;name": commits[1]}
	if diff := cmp.Diff(want, heads); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	for branch, want := range map[string]string{"main": "2", "old/line": "1", "odd;name": "2"} {
		if n, commit := checkedOut(t, m, branch); n != want || commit != heads[branch] {
			t.Errorf("%s: n is %s of %s", branch, n, commit)
		}
	}
	write(t, filepath.Join(dir, "n"), "3")
	newer := commit(t, dir)
	if n, got := checkedOut(t, m, "main"); n != "3" || got != newer {
		t.Errorf("after a push n is %s of %s", n, got)
	}
	run(t, dir, "reset", "--quiet", "--hard", commits[0])
	write(t, filepath.Join(dir, "n"), "4")
	forced := commit(t, dir)
	if n, got := checkedOut(t, m, "main"); n != "4" || got != forced {
		t.Errorf("after a forced push n is %s of %s", n, got)
	}
	run(t, dir, "branch", "-D", "old/line")
	if _, err := m.Checkout(t.Context(), "old/line", t.TempDir()); fault.Of(err) != fault.NotFound || err == nil {
		t.Errorf("of a deleted branch: %v, want NotFound", err)
	}
	run(t, dir, "branch", "old") // where a directory of branches was
	if n, _ := checkedOut(t, m, "old"); n != "4" {
		t.Errorf("n is %s", n)
	}
}

// A work tree that is checked out again is what an empty directory would become, and files that do not differ are not written.
func TestATreeIsCheckedOutAgain(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t, map[string]string{"same": "a\n", "gone/x": "x", "script": "#!/bin/sh\n"})
	m := mirrorOf(t, "file://"+dir)
	tree := t.TempDir()
	compare := func(when string) {
		t.Helper()
		if _, err := m.Checkout(t.Context(), "main", tree); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		anew := t.TempDir()
		if _, err := m.Checkout(t.Context(), "main", anew); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if diff := cmp.Diff(content(t, anew), content(t, tree)); diff != "" {
			t.Errorf("%s (-anew +again):\n%s", when, diff)
		}
	}
	compare("at first")
	before, err := os.Stat(filepath.Join(tree, "same"))
	if err != nil {
		t.Fatal(err)
	}

	write(t, filepath.Join(dir, "n"), "3")
	run(t, dir, "rm", "--quiet", "-r", "gone")
	write(t, filepath.Join(dir, "gone"), "now a file")
	if err := errors.Join(os.Chmod(filepath.Join(dir, "script"), 0o755), os.Symlink("n", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	commit(t, dir)
	compare("after a push")
	if after, err := os.Stat(filepath.Join(tree, "same")); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("a file that is the same was written again: %v", err)
	}

	write(t, filepath.Join(dir, ".gitattributes"), "same text eol=crlf\n")
	commit(t, dir)
	compare("after attributes of a file that does not differ")

	write(t, filepath.Join(dir, ".gitignore"), ".resource_types\n")
	commit(t, dir)
	compare("after names of files that git passes over")
	write(t, filepath.Join(tree, "same"), "somebody changed it\n")
	write(t, filepath.Join(tree, "more"), "")
	if err := errors.Join(os.Mkdir(filepath.Join(tree, ".resource_types"), 0o700), os.Mkdir(filepath.Join(tree, "module"), 0o700)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tree, ".resource_types", "x.pp"), "")
	run(t, filepath.Join(tree, "module"), "init", "--quiet")
	compare("after somebody wrote into it")

	if err := os.RemoveAll(m.Dir); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "n"), "4")
	commit(t, dir)
	compare("when what was fetched is lost")

	write(t, filepath.Join(tree, ".git", "index"), "garbage")
	write(t, filepath.Join(dir, "n"), "5")
	commit(t, dir)
	compare("after a damaged index")
}

// content is the files and directories of a work tree, with the modes of files and where links lead.
func content(t *testing.T, tree string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(tree, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		}
		rel, _ := filepath.Rel(tree, name)
		if entry.IsDir() {
			found[rel] = "a directory"
			return nil
		}
		if entry.Type() == fs.ModeSymlink {
			target, err := os.Readlink(name)
			found[rel] = "-> " + target
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		found[rel] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMirrorHeals(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t, nil)
	m := mirrorOf(t, "file://"+dir)
	checkedOut(t, m, "main")
	for _, harm := range []func() error{
		func() error { return os.RemoveAll(filepath.Join(m.Dir, "objects")) },
		func() error { return os.WriteFile(filepath.Join(m.Dir, "shallow.lock"), nil, 0o600) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		if n, _ := checkedOut(t, m, "main"); n != "2" {
			t.Errorf("n is %s", n)
		}
	}
}

func TestMirrorRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t, nil)
	for _, branch := range []string{"a..b", "--upload-pack=id", "a b", "x.lock", "a:b", strings.Repeat("x", 300)} {
		m := mirrorOf(t, "file://"+dir)
		if _, err := m.Checkout(t.Context(), branch, t.TempDir()); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%q: %v, want Invalid", branch, err)
		}
	}
	if _, err := mirrorOf(t, "file:///does/not/exist").Branches(t.Context()); fault.Of(err) != fault.Invalid || err == nil {
		t.Errorf("%v, want Invalid", err)
	}
}

func TestMirrorIsBounded(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 2<<20)
	_, _ = rand.Read(noise)
	for name, content := range map[string][]byte{
		"what is fetched":     noise,
		"what is packed well": bytes.Repeat([]byte("x"), 4<<20), // small in the repository, large in the work tree
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := repository(t, map[string]string{"large": string(content)})
			m := mirrorOf(t, "file://"+dir)
			m.MaxBytes = 1 << 20
			_, err := m.Checkout(t.Context(), "main", t.TempDir())
			if fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(m.Dir); !os.IsNotExist(err) {
				t.Errorf("it is kept: %v", err)
			}
		})
	}
}

func TestAMirrorsGitHasItsTime(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	m := mirrorOf(t, server.URL+"/x.git")
	m.Timeout = 200 * time.Millisecond
	if _, err := m.Branches(t.Context()); fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "did not come in time") {
		t.Errorf("got %v", err)
	}
	if _, err := m.Checkout(t.Context(), "main", t.TempDir()); fault.Of(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

// A server that hangs up, a repository that is away, and a machine without git are each said, and nothing of them is taken for an empty repository.
func TestAGitThatVanishes(t *testing.T) {
	hangsUp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000"))
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(hangsUp.Close)
	away := httptest.NewServer(nil)
	away.Close()
	for name, url := range map[string]string{"hangs up": hangsUp.URL + "/x.git", "refuses the connection": away.URL + "/x.git"} {
		m := mirrorOf(t, url)
		if heads, err := m.Branches(t.Context()); err == nil || len(heads) > 0 {
			t.Errorf("%s: %v, %v", name, heads, err)
		}
		if _, err := m.Checkout(t.Context(), "main", t.TempDir()); err == nil || fault.Is(err, fault.NotFound) { // that would be a deleted branch
			t.Errorf("%s: %v", name, err)
		}
	}

	dir, _ := repository(t, nil)
	m := mirrorOf(t, "file://"+dir)
	checkedOut(t, m, "main")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Checkout(t.Context(), "main", t.TempDir()); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("a repository that is away: %v", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if n, _ := checkedOut(t, m, "main"); n != "2" {
		t.Errorf("back again, n is %s", n)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := m.Branches(t.Context()); err == nil || !strings.Contains(err.Error(), "git") {
		t.Errorf("without git: %v", err)
	}
}

// A branch may have a long name; it is a file of what is kept, as it is in the repository.
func TestABranchOfALongName(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t, nil)
	long := strings.Repeat("x", 200)
	run(t, dir, "branch", long)
	if n, _ := checkedOut(t, mirrorOf(t, "file://"+dir), long); n != "2" {
		t.Errorf("n is %s", n)
	}
}

// The key is a file that nobody else can read, as long as ssh needs it.
func TestAMirrorsKey(t *testing.T) {
	dir := t.TempDir()
	ssh := programtest.Write(t, filepath.Join(dir, "ssh"), `#!/bin/sh
echo "$@" > `+dir+`/arguments
while [ "$1" != -i ]; do shift; done
stat -c %a "$2" > `+dir+`/mode
cat "$2" > `+dir+`/seen
exit 1
`)
	t.Setenv("GIT_SSH_COMMAND", ssh)
	m := Mirror{
		Dir: filepath.Join(dir, "it's", "mirror"), URL: "git@git.example:control", Key: "the key", KnownHosts: "git.example ssh-ed25519 AAAA", Timeout: time.Minute,
	}
	_, err := m.Branches(t.Context())
	if err == nil || strings.Contains(err.Error(), "the key") {
		t.Errorf("got %v", err)
	}
	for name, want := range map[string]string{"mode": "600\n", "seen": "the key\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	arguments, err := os.ReadFile(filepath.Join(dir, "arguments"))
	if err != nil || !strings.Contains(string(arguments), "StrictHostKeyChecking=yes") || strings.Contains(string(arguments), "the key") {
		t.Errorf("ssh is called with %s, %v", arguments, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "it's", "ssh-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestSubmodulesAreAnOption(t *testing.T) {
	t.Parallel()
	inner, _ := repository(t, map[string]string{"manifests/init.pp": "class inner {}"})
	outer, _ := repository(t, nil)
	run(t, outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "file://"+inner, "modules/inner")
	commit(t, outer)
	for _, wanted := range []bool{false, true} {
		m, dir := mirrorOf(t, "file://"+outer), t.TempDir()
		m.Submodules = wanted
		if _, err := m.Checkout(t.Context(), "main", dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "modules/inner/manifests/init.pp")); (err == nil) != wanted {
			t.Errorf("submodules %v: %v", wanted, err)
		}
	}
}

package r10k

import (
	"archive/tar"
	"bytes"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/cell"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

func resolver(t *testing.T) Resolver {
	t.Helper()
	keeper, err := cell.Open(t.Context(), cell.Config{Mode: cell.BestEffort, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return Resolver{Cells: keeper, Dir: t.TempDir(), Timeout: time.Minute, MaxBytes: 64 << 20, MaxFiles: 1000}
}

// tree is a directory with a Puppetfile.
func tree(t *testing.T, puppetfile string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Puppetfile"), []byte(puppetfile), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// served is a repository of a module that the real r10k can fetch over HTTP, and the port.
func served(t *testing.T) (address string, port int) {
	t.Helper()
	dir := t.TempDir()
	module := filepath.Join(dir, "motd")
	if err := os.MkdirAll(filepath.Join(module, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "manifests/init.pp"), []byte("class motd {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.test", "commit", "--quiet", "-m", "x"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", module}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	server := httptest.NewServer(&cgi.Handler{
		Path: "/usr/lib/git-core/git-http-backend", Env: []string{
			"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + dir, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	})
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err = strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return server.URL + "/motd/.git", port
}

func TestTheRealR10kInACell(t *testing.T) {
	t.Parallel()
	address, port := served(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := tree(t, "raise 'it could be read' if File.readable?('"+secret+"')\nmod 'example/motd', git: '"+address+"', branch: 'main'\n")
	r := resolver(t)
	r.Reach.Ports = []int{port}
	if err := r.Install(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "modules/motd/manifests/init.pp"))
	if err != nil || string(text) != "class motd {}\n" {
		t.Errorf("the module has %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "modules/motd/.git")); err == nil {
		t.Error("the module's repository came along")
	}
	r.Reach.Ports = nil
	if err := r.Install(t.Context(), dir); fault.Of(err) != fault.Invalid || err == nil {
		t.Errorf("without the port: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(r.Dir, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWithoutPuppetfile(t *testing.T) {
	t.Parallel()
	if err := (Resolver{Program: "/does/not/exist"}).Install(t.Context(), t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestWithoutR10k(t *testing.T) {
	t.Parallel()
	err := Resolver{Program: "no-such-r10k"}.Install(t.Context(), tree(t, "mod 'a/b'"))
	if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Hint(err), "apt-get install r10k") {
		t.Errorf("got %v, hint %q", err, fault.Hint(err))
	}
}

// What is in the place of r10k does what a Puppetfile could make r10k do.
func TestR10kIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does string
		with func(r *Resolver)
		kind fault.Kind
		says string
	}{
		"it fails": {
			"echo 'https://user:s3cret@git.example cannot be cloned' >&2; exit 1", nil, fault.Invalid, "https://***@git.example cannot be cloned",
		},
		"it does not end":            {"sleep 1000", func(r *Resolver) { r.Timeout = 300 * time.Millisecond }, fault.Unavailable, "did not end"},
		"it leaves something behind": {"setsid sleep 1000 & sleep 1000", func(r *Resolver) { r.Timeout = 300 * time.Millisecond }, fault.Unavailable, "did not end"},
		"it writes too much":         {"head -c 20m /dev/zero > x", func(r *Resolver) { r.MaxBytes = 10 << 20 }, fault.Invalid, "cannot be resolved"},
		"it makes too many files":    {"for i in 1 2 3 4 5 6 7 8 9; do echo > $i; done", func(r *Resolver) { r.MaxFiles = 5 }, fault.Invalid, "more than 5 files"},
		"it makes a fifo":            {"mkfifo pipe", nil, fault.Invalid, "neither a file"},
		"it takes too much memory": {
			"exec perl -e '$x = \"x\" x 80_000_000; sleep 1000'", func(r *Resolver) { r.MemoryBytes = 40 << 20 }, fault.Invalid, "MiB of memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resolver(t)
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			r.Program = programtest.Write(t, filepath.Join(dir, "r10k"), "#!/bin/sh\n"+c.does+"\n")
			if err := os.Chmod(r.Program, 0o755); err != nil {
				t.Fatal(err)
			}
			if c.with != nil {
				c.with(&r)
			}
			err := r.Install(t.Context(), tree(t, "mod 'a/b'"))
			if fault.Of(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnArchiveStaysBelowItsRoot(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for name, entries := range map[string][]tar.Header{
		"a path":                {{Name: "../x", Typeflag: tar.TypeReg}},
		"an absolute path":      {{Name: outside + "/x", Typeflag: tar.TypeReg}},
		"through a link":        {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "link/x", Typeflag: tar.TypeReg}},
		"a link to another one": {{Name: "x", Typeflag: tar.TypeLink, Linkname: "../secret"}},
		"a device":              {{Name: "x", Typeflag: tar.TypeChar}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var archive bytes.Buffer
			to := tar.NewWriter(&archive)
			for _, entry := range entries {
				entry.Mode = 0o644
				if err := to.WriteHeader(&entry); err != nil {
					t.Fatal(err)
				}
			}
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			if err := (Resolver{MaxBytes: 1 << 20, MaxFiles: 10}).unpack(&archive, root); err == nil {
				t.Error("it was unpacked")
			}
			if left, _ := os.ReadDir(outside); len(left) > 0 {
				t.Errorf("outside is %v", left)
			}
		})
	}
}

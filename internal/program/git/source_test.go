package git

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]Source{
		"https://git.example/control.git":               {URL: "https://git.example/control.git"},
		"https://git.example/control.git@v1.2":          {URL: "https://git.example/control.git", Ref: "v1.2"},
		"https://git.example/control.git@feature/x":     {URL: "https://git.example/control.git", Ref: "feature/x"},
		"https://user:pw@git.example/control@main":      {URL: "https://user:pw@git.example/control", Ref: "main"},
		"https://user:pw@git.example/control":           {URL: "https://user:pw@git.example/control"},
		"https://git.example/@org/control@main":         {URL: "https://git.example/@org/control", Ref: "main"},
		"ssh://git@git.example:2222/control.git@main":   {URL: "ssh://git@git.example:2222/control.git", Ref: "main"},
		"git@git.example:team/control.git":              {URL: "git@git.example:team/control.git"},
		"git@git.example:team/control.git@0123456789ab": {URL: "git@git.example:team/control.git", Ref: "0123456789ab"},
		"git.example:control@production":                {URL: "git.example:control", Ref: "production"},
		"file:///srv/control@main":                      {URL: "file:///srv/control", Ref: "main"},
	}
	for text, want := range tests {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "/srv/control", "./control", "https://", "https://git.example/x@", "ftp://git.example/x",
		"ext::sh -c id", "ext::id", "-oProxyCommand=id:x", "ssh://-oProxyCommand=id/x", "https://git.example/x@-flag",
		"https://git.example/x@a..b", "https://git.example/x@a b", "https://git.example/x@a:b", "https:///x", "file://host/x",
		"https://git.example/" + strings.Repeat("x", maxURLBytes),
	} {
		if _, err := Parse(text); fault.Of(err) != fault.Invalid {
			t.Errorf("%.60q: got %v, want Invalid", text, err)
		}
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://user:pw@git.example/x": "https://git.example/x",
		"https://token@git.example/x":   "https://git.example/x",
		"https://a:b@c@git.example/x":   "https://git.example/x",
		"ssh://git@git.example/x":       "ssh://git@git.example/x",
		"ssh://git:pw@git.example/x":    "ssh://git.example/x",
		"git@git.example:x":             "git@git.example:x",
		"https://git.example/@x":        "https://git.example/@x",
	} {
		if got := Redact(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"https://u:p@h/x@r", "git@h:x@r", "file:///x", "ext::x", "-x:y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if strings.HasPrefix(s.URL, "-") || strings.HasPrefix(s.Ref, "-") {
			t.Errorf("%q became an option", text)
		}
		again, err := Parse(text)
		if err != nil || again != s {
			t.Errorf("%q: %+v, then %+v, %v", text, s, again, err)
		}
	})
}

// repository makes a git repository with a branch, a tag, and a commit on top of
// them; it returns its directory and the commits, the oldest first.
func repository(t *testing.T, files map[string]string) (dir string, commits []string) {
	t.Helper()
	dir = t.TempDir()
	run(t, dir, "init", "--quiet", "--initial-branch=main")
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	write(t, filepath.Join(dir, "n"), "1")
	commits = append(commits, commit(t, dir))
	run(t, dir, "tag", "-a", "-m", "one", "v1")
	run(t, dir, "branch", "old/line")
	write(t, filepath.Join(dir, "n"), "2")
	return dir, append(commits, commit(t, dir))
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func commit(t *testing.T, dir string) string {
	t.Helper()
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "--quiet", "-m", "x")
	return run(t, dir, "rev-parse", "HEAD")
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s\nthis test needs git: apt-get install git", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestClone(t *testing.T) {
	t.Parallel()
	dir, commits := repository(t, nil)
	for name, tt := range map[string]struct{ ref, commit, n string }{
		"head":             {"", commits[1], "2"},
		"branch":           {"main", commits[1], "2"},
		"branch, slash":    {"old/line", commits[0], "1"},
		"tag":              {"v1", commits[0], "1"},
		"commit":           {commits[0], commits[0], "1"},
		"part of a commit": {commits[0][:10], commits[0], "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := filepath.Join(t.TempDir(), "clone")
			got, err := Clone(t.Context(), "file://"+dir, tt.ref, into)
			if err != nil || got != tt.commit {
				t.Fatalf("got %s, %v; want %s", got, err, tt.commit)
			}
			if n, err := os.ReadFile(filepath.Join(into, "n")); err != nil || string(n) != tt.n {
				t.Errorf("n is %q, %v; want %s", n, err, tt.n)
			}
		})
	}
}

func TestCloneRefuses(t *testing.T) {
	t.Parallel()
	dir, commits := repository(t, nil)
	for name, source := range map[string]Source{
		"no repository":    {URL: "file:///does/not/exist"},
		"no such branch":   {URL: "file://" + dir, Ref: "nobranch"},
		"no such commit":   {URL: "file://" + dir, Ref: strings.Repeat("0", 39) + "1"},
		"another protocol": {URL: "ext::sh", Ref: commits[0]},
		"an option":        {URL: "file://" + dir, Ref: "--upload-pack=id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := filepath.Join(t.TempDir(), "clone")
			if _, err := Clone(t.Context(), source.URL, source.Ref, into); fault.Of(err) != fault.Invalid {
				t.Errorf("got %v, want Invalid", err)
			}
			if _, err := os.Stat(into); !os.IsNotExist(err) {
				t.Errorf("something is left: %v", err)
			}
		})
	}
	into := t.TempDir()
	write(t, filepath.Join(into, "mine"), "x")
	if _, err := Clone(t.Context(), "file://"+dir, "", into); fault.Of(err) != fault.Conflict {
		t.Errorf("got %v, want Conflict", err)
	}
	if _, err := os.Stat(filepath.Join(into, "mine")); err != nil {
		t.Error(err)
	}
}

func TestCloneWithSubmodules(t *testing.T) {
	t.Parallel()
	inner, _ := repository(t, map[string]string{"manifests/init.pp": "class inner {}"})
	outer, _ := repository(t, nil)
	run(t, outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "file://"+inner, "modules/inner")
	commit(t, outer)
	into := filepath.Join(t.TempDir(), "clone")
	if _, err := Clone(t.Context(), "file://"+outer, "", into); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(into, "modules/inner/manifests/init.pp")); err != nil {
		t.Error(err)
	}
}

func TestCredentialsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	source := strings.Replace(server.URL, "://", "://someone:s3cret%21word@", 1) + "/control.git"
	into := filepath.Join(t.TempDir(), "clone")
	_, err := Clone(t.Context(), source, "main", into)
	if fault.Of(err) != fault.Invalid {
		t.Fatalf("got %v, want Invalid", err)
	}
	for _, secret := range []string{"s3cret", "someone"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q holds %q", err, secret)
		}
	}
}

// Git gets what the operator set for it, and none of the server's own variables, which may be secrets.
func TestGitsEnvironment(t *testing.T) {
	t.Parallel()
	env := git{url: "https://git.test/x"}.environment([]string{"HOME=/root", "TUTTI_CLUSTER_KEY=secret", "GIT_DIR=/elsewhere"})
	for name, want := range map[string]bool{"HOME=/root": true, "TUTTI_CLUSTER_KEY=secret": false, "GIT_DIR=/elsewhere": false} {
		if slices.Contains(env, name) != want {
			t.Errorf("%s: %t, want %t", name, !want, want)
		}
	}
}

func TestCloneEndsWithItsContext(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		<-asked
		cancel()
	}()
	if _, err := Clone(ctx, server.URL+"/x.git", "main", filepath.Join(t.TempDir(), "clone")); err == nil {
		t.Error("the clone succeeded")
	}
}

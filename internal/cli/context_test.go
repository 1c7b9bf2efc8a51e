package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

// shell is a user with a home, and what one command said.
type shell struct {
	home string
	env  []string
}

func newShell(t *testing.T, env ...string) shell {
	t.Helper()
	home := t.TempDir()
	return shell{home, append([]string{"HOME=" + home}, env...)}
}

func (s shell) run(t *testing.T, env []string, args ...string) (code int, out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), args, System{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Env: append(append([]string{}, s.env...), env...)})
	return code, stdout.String(), stderr.String()
}

func (s shell) must(t *testing.T, args ...string) (out, said string) {
	t.Helper()
	code, out, said := s.run(t, nil, args...)
	if code != exitDone {
		t.Fatalf("tutti %s: exit code %d: %s", strings.Join(args, " "), code, said)
	}
	return out, said
}

func (s shell) file() string { return filepath.Join(s.home, ".config", "tutti", "config.yaml") }

// Which server is asked: flags win over variables, these over the current context, that over the data directory.
func TestWhichServerIsAsked(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must(t, "context", "add", "prod", "--server", "prod.test", "--system-ca")
	s.must(t, "context", "add", "lab", "--server", "lab.test:9", "--system-ca")
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "address"), []byte("https://localhost:7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := newShell(t)
	for name, c := range map[string]struct {
		shell     shell
		env       []string
		access    accessFlags
		want, why string
	}{
		"current": {shell: s, want: "https://prod.test:8140", why: "current context prod"},
		"TUTTI_DATA over current": {
			shell: s, env: []string{"TUTTI_DATA=" + here}, want: "https://localhost:7", why: "data directory " + here + " (TUTTI_DATA)",
		},
		"TUTTI_CONTEXT over TUTTI_DATA": {
			shell: s, env: []string{"TUTTI_CONTEXT=lab", "TUTTI_DATA=" + here}, want: "https://lab.test:9", why: "context lab (TUTTI_CONTEXT)",
		},
		"TUTTI_SERVER over both": {
			shell: s, env: []string{"TUTTI_SERVER=https://x:1", "TUTTI_CONTEXT=lab", "TUTTI_DATA=" + here}, want: "https://x:1", why: "TUTTI_SERVER",
		},
		"--context over variables": {
			shell: s, env: []string{"TUTTI_SERVER=https://x:1", "TUTTI_CONTEXT=prod"}, access: accessFlags{context: "lab"}, want: "https://lab.test:9",
			why: "context lab (--context)",
		},
		"--data over variables": {
			shell: s, env: []string{"TUTTI_SERVER=https://x:1"}, access: accessFlags{data: here}, want: "https://localhost:7",
			why: "data directory " + here + " (--data)",
		},
		"--server over variables": {
			shell: s, env: []string{"TUTTI_SERVER=https://x:1"}, access: accessFlags{server: "https://y:2"}, want: "https://y:2", why: "--server",
		},
		"no context: data directory": {
			shell: none, env: []string{"TUTTI_DATA=" + here}, want: "https://localhost:7", why: "data directory " + here + " (TUTTI_DATA)",
		},
		"--server and --data: server": {shell: none, access: accessFlags{server: "https://y:2", data: here}, want: "https://y:2", why: "--server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &app{system: System{Env: append(append([]string{}, c.shell.env...), c.env...), Err: &bytes.Buffer{}}, access: c.access}
			got, err := a.target()
			if err != nil || got.server != c.want || got.why != c.why {
				t.Errorf("got %q, %q, %v; want %q, %q", got.server, got.why, err, c.want, c.why)
			}
		})
	}
	for name, access := range map[string]accessFlags{"server": {context: "lab", server: "https://y:2"}, "data": {context: "lab", data: here}} {
		if _, err := (&app{system: System{Env: s.env}, access: access}).target(); exitCode(err) != exitUsage {
			t.Errorf("--context and --%s: %v", name, err)
		}
	}
}

// A token is shown to the server that it is for: a context's own, whatever else there is, unless somebody says otherwise.
func TestWhoseTokenIsShown(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"admin.token": "of-data", "env.token": "of-env", "flag.token": "of-flag", "named.token": "of-named"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.must(t, "context", "add", "prod", "--server", "prod.test", "--system-ca")
	s.must(t, "context", "add", "same", "--server", "prod.test", "--system-ca")
	s.must(t, "context", "add", "file", "--server", "file.test", "--system-ca", "--token-file", filepath.Join(dir, "named.token"))
	keep := &app{system: System{Env: s.env}, access: accessFlags{context: "prod"}}
	chosen, err := keep.target()
	if err != nil {
		t.Fatal(err)
	}
	path, err := keep.saveLogin(chosen, "of-login")
	if err != nil || path != filepath.Join(s.home, ".config", "tutti", "tokens", "prod.test_8140@prod") {
		t.Fatalf("kept in %s: %v", path, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info.Mode(), err)
	}
	data := "TUTTI_DATA=" + dir
	for name, c := range map[string]struct {
		env    []string
		access accessFlags
		want   string
	}{
		"a login":                           {nil, accessFlags{context: "prod"}, "of-login"},
		"a login, of the current one":       {nil, accessFlags{}, "of-login"},
		"none: that of the data directory":  {[]string{data}, accessFlags{server: "https://prod.test:8140"}, "of-data"},
		"none: another context's is not":    {nil, accessFlags{context: "same"}, ""},
		"none: the data directory's is not": {[]string{data}, accessFlags{context: "same"}, ""},
		"a file of the context":             {nil, accessFlags{context: "file"}, "of-named"},
		"variables are for another server": {
			[]string{"TUTTI_TOKEN=of-variable", "TUTTI_TOKEN_FILE=" + filepath.Join(dir, "env.token")}, accessFlags{context: "prod"}, "of-login",
		},
		"and not for a context's file":          {[]string{"TUTTI_TOKEN=of-variable"}, accessFlags{context: "file"}, "of-named"},
		"variables win over the current one":    {[]string{"TUTTI_TOKEN=of-variable"}, accessFlags{}, "of-variable"},
		"a variable that names a file does":     {[]string{"TUTTI_TOKEN_FILE=" + filepath.Join(dir, "env.token")}, accessFlags{}, "of-env"},
		"a flag wins over the context":          {nil, accessFlags{context: "file", tokenFile: filepath.Join(dir, "flag.token")}, "of-flag"},
		"variables win over a variable's file":  {[]string{"TUTTI_CONTEXT=file", "TUTTI_TOKEN=of-variable"}, accessFlags{}, "of-variable"},
		"a context by variable has its own too": {[]string{"TUTTI_CONTEXT=file"}, accessFlags{}, "of-named"},
	} {
		a := &app{system: System{Env: append(append([]string{}, s.env...), c.env...)}, access: c.access}
		chosen, err := a.target()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := a.token(chosen); err != nil || string(bytes.TrimSpace(got)) != c.want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestContextsAreKept(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if _, said := s.must(t, "context", "list"); !strings.Contains(said, "There is no context") {
		t.Errorf("an empty list says %q", said)
	}
	s.must(t, "context", "add", "prod", "--server", "prod.test", "--system-ca", "--user", "ann")
	if info, err := os.Stat(s.file()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	s.must(t, "context", "add", "lab", "--server", "https://lab.test:9", "--system-ca")
	if out, said := s.must(t, "context", "list"); !strings.Contains(out, "prod  *        https://prod.test:8140  ann") ||
		!strings.Contains(said, "Commands ask https://prod.test:8140: current context prod") {
		t.Errorf("list: %s%s", out, said)
	}
	if code, _, said := s.run(t, []string{"TUTTI_SERVER=https://x:1"}, "context", "list"); code != 0 ||
		!strings.Contains(said, "Commands ask https://x:1: TUTTI_SERVER\nTUTTI_SERVER is set (https://x:1): it wins over the current context prod") {
		t.Errorf("with a variable: %s", said)
	}
	s.must(t, "context", "use", "lab")
	if out, _ := s.must(t, "context", "show", "-o", "name"); out != "lab\n" {
		t.Errorf("current is %q", out)
	}
	token := filepath.Join(s.home, ".config", "tutti", "tokens", "lab.test_9@lab")
	if err := writePrivate(token, []byte("t\n")); err != nil {
		t.Fatal(err)
	}
	s.must(t, "context", "rename", "lab", "test-1")
	if text, err := os.ReadFile(strings.Replace(token, "@lab", "@test-1", 1)); err != nil || string(text) != "t\n" {
		t.Errorf("the token of a renamed context: %q, %v", text, err)
	}
	if out, _ := s.must(t, "context", "show", "-o", "json"); !strings.Contains(out, `"logged_in": true`) || !strings.Contains(out, `"current": true`) {
		t.Errorf("show: %s", out)
	}
	s.must(t, "context", "remove", "test-1")
	if left, err := os.ReadDir(filepath.Dir(token)); err != nil || len(left) != 0 {
		t.Errorf("tokens that stay: %v, %v", left, err)
	}
	if out, said := s.must(t, "context", "list", "-o", "name"); out != "prod\n" || !strings.Contains(said, "No server is asked") {
		t.Errorf("nothing is current: %q, %q", out, said)
	}
}

func TestWrongContexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, want string // empty: two contexts, prod is current
		args       []string
		code       int
	}{
		"unknown key": {
			"current: a\ncontexts:\n  - name: a\n    serve: https://a\n", `line 4: there is no key "contexts[0].serve"; here are name, server`, nil, exitUsage,
		},
		"unknown top key": {"contexts: []\nfoo: 1\n", `line 2: there is no key "foo"; here are current, contexts`, nil, exitUsage},
		"no YAML":         {"current: [\n", "line 1: ", nil, exitUsage},
		"no text":         {"contexts:\n  - name: a\n    server: [a]\n", "line 3: contexts[0].server is a text", nil, exitUsage},
		"no list":         {"contexts: {a: b}\n", "line 1: contexts is a list", nil, exitUsage},
		"twice":           {"contexts:\n  - {name: a, server: a}\n  - {name: a, server: b}\n", "line 3: the name a is there twice", nil, exitUsage},
		"key twice":       {"contexts:\n  - name: a\n    server: a\n    name: b\n", "line 4: the key contexts[0].name is there twice", nil, exitUsage},
		"two CAs":         {"contexts:\n  - {name: a, server: a, ca: x, ca_file: y}\n", "line 2: contexts[0].ca: there is a ca_file, too", nil, exitUsage},
		"http":            {"contexts:\n  - name: a\n    server: http://a\n", "line 2: contexts[0].server: the server's address must look like", nil, exitUsage},
		"no such current": {"current: b\ncontexts:\n  - {name: a, server: a}\n", "current is b, and there is no such context", nil, exitUsage},
		"use nothing":     {"", `there is no context "nope"`, []string{"context", "use", "nope"}, exitUsage},
		"flag nothing":    {"", `there is no context "nope" in`, []string{"node", "list", "--context", "nope"}, exitUsage},
		"there already": {
			"", "there is a context prod, for https://prod.test:8140; give another name, or --replace",
			[]string{"context", "add", "prod", "--server", "x", "--system-ca"},
			exitRefused,
		},
		"no server":       {"", "which server is new? give --server", []string{"context", "add", "new"}, exitUsage},
		"no name":         {"", `"a b" is no name for a context`, []string{"context", "add", "a b", "--server", "x", "--system-ca"}, exitUsage},
		"bad fingerprint": {"", "is no SHA-256", []string{"context", "add", "new", "--server", "x", "--ca-fingerprint", "5A"}, exitUsage},
		"no CA file": {
			"", "cannot read the file: /nowhere.pem: no such file or directory; name a file that you may read with --ca-file",
			[]string{"context", "add", "new", "--server", "x", "--ca-file", "/nowhere.pem"},
			exitUsage,
		},
		"name is taken": {"", "there is a context prod", []string{"context", "rename", "lab", "prod"}, exitRefused},
		"nobody to log in": {
			"", "who logs in? usage: tutti login NAME", []string{"login", "--password-stdin"}, exitUsage,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			args := c.args
			if c.file != "" {
				args = []string{"node", "list"}
				if err := writePrivate(s.file(), []byte(c.file)); err != nil {
					t.Fatal(err)
				}
			} else {
				s.must(t, "context", "add", "prod", "--server", "prod.test", "--system-ca")
				s.must(t, "context", "add", "lab", "--server", "lab.test", "--system-ca")
			}
			before, err := os.ReadFile(s.file())
			if err != nil {
				t.Fatal(err)
			}
			code, _, said := s.run(t, nil, args...)
			if code != c.code || !strings.Contains(said, c.want) || c.file != "" && !strings.Contains(said, s.file()) {
				t.Errorf("exit code %d, said %q; want %d and %q", code, said, c.code, c.want)
			}
			if after, err := os.ReadFile(s.file()); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed: %s", after)
			}
		})
	}
}

// A name that no context has is answered with those that are near.
func TestContextsThatAreNear(t *testing.T) {
	t.Parallel()
	all := &contexts{Contexts: []serverContext{{Name: "production"}, {Name: "lab"}}}
	_, err := all.get("prodution")
	if fault.Hint(err) != "did you mean production?" || exitCode(err) != exitUsage {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
	if _, err = all.get("elsewhere"); fault.Hint(err) != "" || !strings.Contains(fault.Detail(err), "`tutti context add elsewhere") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}

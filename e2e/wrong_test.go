package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew")

// What people type wrong: the exit code and all that is said. Each message says what is wrong and what to do, once, in the
// words of the command line. `go test ./e2e -run TestWrongInput -args -update` writes the answers anew; they are reviewed as text.
func TestWrongInput(t *testing.T) {
	begin(t)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--reuse-check", "0")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "control/manifests/site.pp"), "notify { 'hello': }\n")
	write(t, filepath.Join(dir, "control/bad.yaml"), "groups: 5\n")
	s.tutti(t, "code", "deploy", "production", filepath.Join(dir, "control"))
	for _, name := range []string{"web-1.test", "web-2.test"} {
		if err := s.checkIn(name, map[string]any{"role": "web"}); err != nil {
			t.Fatal(err)
		}
	}
	s.tutti(t, "group", "create", "Web servers", "--rule", `facts.role = "web"`)
	s.tutti(t, "preview", "create", "production", "--ref", filepath.Join(dir, "control"), "-q")
	path := filepath.Join("testdata", "wrong.golden")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := s.masks(dir)
	var got strings.Builder
	commands := 0
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		if !ok {
			continue
		}
		commands++
		fmt.Fprintf(&got, "$ %s\n%s\n", command, s.wrong(t, dir, command, known))
	}
	if commands < 130 {
		t.Errorf("%d commands, 130 are wanted", commands)
	}
	if *update {
		write(t, path, got.String())
		return
	}
	if diff := cmp.Diff(string(text), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// wrong runs one wrong command, and returns what it says and its exit code.
func (s *server) wrong(t *testing.T, dir, command string, known *strings.Replacer) string {
	t.Helper()
	env := append(cleanEnv(), "TUTTI_DATA="+s.data, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	r := execute(t, env, agentTimeout, "sh", "-c", "cd "+dir+" && exec "+command)
	text := known.Replace(r.err)
	text = regexp.MustCompile(`request [a-zA-Z0-9_-]{8,}`).ReplaceAllString(text, "request ID")
	switch {
	case r.code == 0:
		t.Errorf("%s: nothing is wrong with it\n%s", command, r.text())
	case strings.Count("\n"+r.err, "\ntutti: ") != 1 && !strings.HasPrefix(r.err, `{"kind":"`):
		t.Errorf("%s: what is wrong is not said once\n%s", command, r.text())
	case regexp.MustCompile(`\bfield [a-z_]+:|%!|<nil>|\[flags\]`).MatchString(r.err):
		t.Errorf("%s: these are not the words of people\n%s", command, r.err)
	}
	return fmt.Sprintf("%s[%d]\n", text, r.code)
}

// masks puts names for what differs from run to run.
func (s *server) masks(dir string) *strings.Replacer {
	return strings.NewReplacer(s.data, "DATA", dir, "DIR", "localhost:"+s.port(), "SERVER", "127.0.0.1:"+s.port(), "SERVER")
}

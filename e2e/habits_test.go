package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/sim"
)

// Every row of the page about habits: its right side does what it says, on a server with a fleet.
func TestThePageAboutHabits(t *testing.T) {
	begin(t, 120)
	s := startServer(t, "--autosign", "list", "--autosign-list", "web-1,web-2,db-1,gone-1", "--compile-patience", "60s", "--max-load", "0", "--reuse-check", "0")
	dir := habitsWorld(t)
	s.tutti(t, "code", "deploy", "production", filepath.Join(dir, "control-repo"))
	enroller, err := newEnroller(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(enroller.Close)
	nodes, err := startNodes(s, enroller, sim.Config{Names: []string{"db-1", "web-1", "web-2"}, Catalogs: "https://localhost:" + s.port()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.close() })
	if err := s.checkIn("gone-1", map[string]any{"kernel": "Linux"}); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "group", "create", "Web servers", "--rule", `name ~ "^web"`)
	s.tutti(t, "user", "create", "ann", "--role", "administrator", "--no-password")
	sh := newShell(t, dir, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TUTTI_DATA="+s.data, "HOME="+t.TempDir(), "CI=yes")
	if out, code := sh.types("tutti user password ann --password-stdin < password"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	waiting(t, s, sh, "web-9")
	text, err := os.ReadFile(filepath.Join(docs, "habits.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 2 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| you type") {
			continue
		}
		rows++
		commands := regexp.MustCompile("`(tutti[^`]*)`").FindAllStringSubmatch(cells[1], -1)
		if len(commands) == 0 {
			t.Errorf("no command to run: %s", line)
		}
		for _, command := range commands {
			want := 0
			if code := regexp.MustCompile(`exit code (\d+)`).FindStringSubmatch(cells[1]); code != nil {
				_, _ = fmt.Sscan(code[1], &want)
			}
			out, code := sh.types(command[1])
			if code != want {
				problems, _ := os.ReadFile(sh.errors)
				t.Errorf("$ %s: exit code %d, want %d\n%s\n%s", command[1], code, want, out, tail(string(problems), 600))
			}
		}
	}
	s.typesAsClientTools(t, sh)
	if rows < 70 {
		t.Errorf("the page has %d rows: some are lost", rows)
	}
}

// typesAsClientTools types both sides of each row of the page for those who come from Puppet Enterprise: left under the names of its tools,
// to which the program is linked.
func (s *server) typesAsClientTools(t *testing.T, sh *shell) {
	t.Helper()
	names := t.TempDir()
	for _, tool := range []string{"job", "task", "access", "code", "app", "query"} {
		if err := os.Symlink(binary, filepath.Join(names, "puppet-"+tool)); err != nil {
			t.Fatal(err)
		}
	}
	rows, row := 0, regexp.MustCompile("^\\| `puppet ([^`]*)` \\| `(tutti [^`]*)` \\|\n$")
	for _, line := range linesOf(t, "from-puppet-enterprise.md") {
		sides := row.FindStringSubmatch(line)
		if sides == nil {
			continue
		}
		rows++
		for _, command := range []string{names + "/puppet-" + sides[1], sides[2]} {
			if out, code := sh.types(command); code != 0 {
				problems, _ := os.ReadFile(sh.errors)
				t.Errorf("$ %s: exit code %d\n%s\n%s", command, code, out, tail(string(problems), 600))
			}
		}
	}
	if rows < 15 {
		t.Errorf("the page has %d rows: some are lost", rows)
	}
}

// linesOf are the lines of a page.
func linesOf(t *testing.T, page string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		lines = append(lines, line)
	}
	return lines
}

// habitsWorld is the files that the page's commands name.
func habitsWorld(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, repo := range []string{"control-repo", "changed-repo", "broken-repo"} {
		for name, text := range map[string]string{
			"environment.conf":              "modulepath = modules\n",
			"hiera.yaml":                    "version: 5\nhierarchy:\n  - name: all\n    path: all.yaml\n",
			"data/all.yaml":                 "greeting: hello\n",
			"manifests/site.pp":             "file { '/etc/motd': content => \"${trusted['certname']} " + repo + "\\n\" }\ninclude role::web\n",
			"modules/role/manifests/web.pp": map[bool]string{false: "class role::web {}\n", true: "class role::web {\n"}[repo == "broken-repo"],
			"modules/web/tasks/restart.sh":  "#!/bin/sh\n",
			"modules/web/tasks/restart.json": `{"input_method": "stdin", "description": "Restart the web server",
  "parameters": {"action": {"type": "Enum[restart, reload]"}, "wait": {"type": "Integer[0]", "default": 0}}}`,
		} {
			write(t, filepath.Join(dir, repo, name), text)
		}
	}
	for name, text := range map[string]string{
		"nodes.txt": "web-1\nweb-2\n", "params.json": `{"action": "reload", "wait": 1}`,
		"motd": "Welcome\n", "mend.sh": "#!/bin/sh\n", "password": "correct horse battery\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// waiting has a node's request wait.
func waiting(t *testing.T, s *server, sh *shell, name string) {
	t.Helper()
	join := "tutti agent join https://localhost:" + s.port() + " --certname " + name + ` --ca-file "$TUTTI_DATA/ca/ca_crt.pem" --dir ` + name + " --wait 0"
	out, code := sh.types("(" + join + " > joined 2>&1); tutti ca list --state requested -o name")
	if code != 0 || out != name {
		t.Fatalf("exit code %d\n%s", code, out)
	}
}

package e2e_test

import (
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
)

var update = flag.Bool("update", false, "write golden files anew")

// What people type, wrong and right, and all that is said: the exit code and every line. A wrong one is answered once, with what is
// wrong and what to do, in the words of the command line. A right one fits a terminal of 80 columns, but for fingerprints.
// `go test ./e2e -run TestWhatIsSaid -args -update` writes the answers anew; they are reviewed as text.
func TestWhatIsSaid(t *testing.T) {
	begin(t)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--reuse-check", "0", "--verify-share", "off", "--verify-after-deploy", "0")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "control/manifests/site.pp"), "notify { 'hello': }\n")
	write(t, filepath.Join(dir, "control/bad.yaml"), "groups: 5\n")
	s.tutti(t, "code", "deploy", "production", filepath.Join(dir, "control"))
	for _, name := range []string{"web-1.test", "web-2.test", "a-name-that-is-as-long-as-some-are.of-a-host.in-a-data-centre.example.test"} {
		if err := s.checkIn(name, map[string]any{"role": "web", "story_noop": name == "web-1.test"}); err != nil {
			t.Fatal(err)
		}
	}
	s.tutti(t, "group", "create", "Web servers", "--rule", `facts.role = "web"`)
	s.tutti(t, "preview", "create", "production", "-q")
	env := append(cleanEnv(), "TUTTI_DATA="+s.data, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	t.Run("wrong", func(t *testing.T) { // all that it prints is on standard error
		compareAnswers(t, "wrong.golden", 130, func(command string) result {
			r := execute(t, env, agentTimeout, "sh", "-c", "cd "+dir+" && exec "+command)
			judgeWrong(t, command, r)
			return result{code: r.code, out: s.masked(dir, r.err)}
		})
	})
	t.Run("right", func(t *testing.T) {
		env := append(env, "TERM=xterm", "NO_COLOR=1", "CI=", "SHELL=/bin/sh")
		compareAnswers(t, "right.golden", 40, func(command string) result {
			r := execute(t, env, agentTimeout, "script", "--quiet", "--return", "--command", "stty cols 80 && cd "+dir+" && "+command, "/dev/null")
			text := strings.ReplaceAll(r.out, "\r\n", "\n")
			judgeRight(t, command, r.code, text)
			return result{code: r.code, out: s.masked(dir, text)}
		})
	})
	t.Run("programs", func(t *testing.T) { s.sameForPrograms(t) })
	t.Run("page", func(t *testing.T) {
		if err := s.checkIn("old-1.example.test", nil); err != nil {
			t.Fatal(err)
		}
		commands := commandsOf(t, "output.md")
		for _, command := range commands {
			if r := execute(t, env, agentTimeout, "sh", "-c", command); r.code != 0 {
				t.Errorf("docs/output.md: %s: exit code %d\n%s", command, r.code, r.text())
			}
		}
		if len(commands) < 8 {
			t.Errorf("docs/output.md has %d commands", len(commands))
		}
	})
}

// sameForPrograms holds what CSV says of nodes against what the API says of them.
func (s *server) sameForPrograms(t *testing.T) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(s.tutti(t, "node", "list", "-o", "csv", "--columns", "node,environment,last_report,facts,catalog"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"node", "environment", "last_report", "facts", "catalog"}}
	for _, n := range decode[api.List[api.Node]](t, s, "node", "list").Items {
		report, facts := "", ""
		if n.ReportAt != nil {
			report = n.ReportAt.UTC().Truncate(time.Second).Format(time.RFC3339)
		}
		if n.FactsAt != nil {
			facts = n.FactsAt.UTC().Truncate(time.Second).Format(time.RFC3339)
		}
		want = append(want, []string{n.Name, n.Environment, report, facts, n.CatalogDigest})
	}
	if diff := cmp.Diff(want, rows); diff != "" || len(want) < 4 {
		t.Errorf("CSV (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(rows, func(row []string) bool { return len(row[4]) == 64 && row[2] != "" }) {
		t.Errorf("no node has a report and a whole digest: %q", rows)
	}
}

// commandsOf are the lines of a page's blocks that are commands of tutti.
func commandsOf(t *testing.T, page string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "```") {
		for line := range strings.Lines(block) {
			if i%2 == 1 && strings.HasPrefix(line, "tutti ") {
				commands = append(commands, strings.TrimSpace(line))
			}
		}
	}
	return commands
}

// compareAnswers compares what commands print with a file that has each of them after "$ ", or writes the file anew.
func compareAnswers(t *testing.T, file string, least int, ask func(command string) result) {
	t.Helper()
	path := filepath.Join("testdata", file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	commands := 0
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ "); ok {
			commands++
			r := ask(command)
			fmt.Fprintf(&got, "$ %s\n%s[%d]\n\n", command, r.out, r.code)
		}
	}
	if commands < least {
		t.Errorf("%s has %d commands, %d are wanted", file, commands, least)
	}
	if *update {
		write(t, path, got.String())
		return
	}
	if diff := cmp.Diff(string(text), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// judgeWrong holds what is true of every answer to a wrong command.
func judgeWrong(t *testing.T, command string, r result) {
	t.Helper()
	switch {
	case r.code == 0 || r.out != "":
		t.Errorf("%s: nothing is wrong with it\n%s", command, r.text())
	case strings.Count("\n"+r.err, "\ntutti: ") != 1 && !strings.HasPrefix(r.err, `{"kind":"`):
		t.Errorf("%s: what is wrong is not said once\n%s", command, r.text())
	case regexp.MustCompile(`\bfield [a-z_]+:|%!|<nil>|\[flags\]`).MatchString(r.err):
		t.Errorf("%s: these are not the words of people\n%s", command, r.err)
	}
}

// judgeRight holds what is true of every answer to a right one. Examples in help are commands: they are not broken.
func judgeRight(t *testing.T, command string, code int, text string) {
	t.Helper()
	if code != 0 {
		t.Errorf("%s: exit code %d\n%s", command, code, text)
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 && !strings.HasPrefix(line, "  tutti ") && longest(words) < 60 {
			t.Errorf("%s: a line has %d characters: %s", command, utf8.RuneCountInString(line), line)
		}
	}
}

// longest is how long the longest word is: one that is longer than a line stands alone.
func longest(words []string) (most int) {
	for _, word := range words {
		most = max(most, utf8.RuneCountInString(word))
	}
	return most
}

// changing is what differs from run to run; each is shown as a word of the same width, so that columns stay.
var changing = []struct {
	pattern *regexp.Regexp
	letter  string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d+)?( ?[A-Z]+)?)?`), "t"},
	{regexp.MustCompile(`\b[0-9A-F]{30,}\b`), "n"},
	{regexp.MustCompile(`\b([0-9A-F]{2}:){2,}[0-9A-F]{0,2}…?`), "F"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "u"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]*[0-9][0-9a-f]*…|\b[0-9a-f]{12}\b`), "d"},
}

var (
	ago  = regexp.MustCompile(`\b\d+[smh] ago`)
	took = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b`)
	many = regexp.MustCompile(`  +`)
	// waits is what a terminal is shown while a command waits.
	waits = regexp.MustCompile(`(\r\x1b\[2KWaiting for the answer of SERVER, Ns)+\r\x1b\[2K`)
	// ofDirectory is the row of a token of a data directory that one of several servers has.
	ofDirectory = regexp.MustCompile(`(?m)^(.*  data-directory)@\S+(.*\n)`)
)

// masked is a text without what differs from run to run.
func (s *server) masked(dir, text string) string {
	text = strings.NewReplacer(s.data, "DATA", dir, "DIR", "localhost:"+s.port(), "SERVER", "127.0.0.1:"+s.port(), "SERVER").Replace(text)
	for _, c := range changing {
		text = c.pattern.ReplaceAllStringFunc(text, func(found string) string { return strings.Repeat(c.letter, utf8.RuneCountInString(found)) })
	}
	text = took.ReplaceAllString(ago.ReplaceAllString(text, "Ns ago"), "Ns")
	text = many.ReplaceAllString(text, "  ") // columns are as wide as what changes
	if s.three == nil {
		return text
	}
	text = waits.ReplaceAllString(text, "") // for one that has compiled nothing yet: its Ruby has to start
	each := ofDirectory.FindString(text)    // each server has a token of its own in its data directory
	return strings.Replace(text, strings.Repeat(each, len(s.three.servers)), ofDirectory.ReplaceAllString(each, "$1$2"), 1)
}

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The exit code says what kind of trouble it is.
func TestExitCodes(t *testing.T) {
	begin(t)
	s := theHouse(t)
	wrong := filepath.Join(t.TempDir(), "wrong.token")
	if err := os.WriteFile(wrong, []byte("tutti_"+strings.Repeat("0", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"node", "list"}},
		{1, []string{"node", "show", "nobody.test"}},
		{2, []string{"nod", "list"}},
		{2, []string{"node", "lst"}},
		{2, []string{"node", "show"}},
		{2, []string{"node", "list", "--no-such-flag"}},
		{2, []string{"node", "list", "-o", "xml"}},
		{2, []string{"server", "--compile-timeout", "soon"}},
		{7, []string{"node", "list", "--token-file", wrong}},
		{8, []string{"node", "list", "--server", "https://localhost:1"}},
	} {
		r := s.try(t, c.args...)
		if r.code != c.code {
			t.Errorf("tutti %s: exit code %d, want %d\n%s", strings.Join(c.args, " "), r.code, c.code, r.text())
		}
		if c.code != 0 && (r.out != "" || !strings.HasPrefix(r.err, "tutti: ") || strings.Count(r.err, "tutti: ") != 1) {
			t.Errorf("tutti %s: the error is not said once, on stderr: out %q, err %q", strings.Join(c.args, " "), r.out, r.err)
		}
	}
	r := tuttiWith(t, append(cleanEnv(), "TUTTI_DATA="+t.TempDir()), "node", "list")
	if r.code != 8 {
		t.Errorf("no server runs on the data directory: exit code %d, want 8\n%s", r.code, r.text())
	}
}

// Every command's help shows an example.
func TestEveryHelpHasAnExample(t *testing.T) {
	begin(t, 20)
	var walk func(path []string)
	walk = func(path []string) {
		r := tuttiWith(t, cleanEnv(), append(path, "--help")...)
		verbs := subcommands(r.out)
		if r.code != 0 || len(verbs) == 0 && !strings.Contains(r.out, "Examples:\n") {
			t.Errorf("tutti %s --help: exit code %d, and no example:\n%s", strings.Join(path, " "), r.code, r.out)
		}
		for _, verb := range verbs {
			walk(append(slices.Clip(path), verb))
		}
	}
	walk(nil)
}

// subcommands reads them from a help text.
func subcommands(help string) []string {
	_, list, found := strings.Cut(help, "Available Commands:\n")
	if !found {
		return nil
	}
	list, _, _ = strings.Cut(list, "\n\n")
	var verbs []string
	for _, line := range regexp.MustCompile(`(?m)^  (\S+)`).FindAllStringSubmatch(list, -1) {
		if line[1] != "help" && line[1] != "completion" {
			verbs = append(verbs, line[1])
		}
	}
	return verbs
}

// What is printed for programs is JSON, even when there is nothing.
func TestListsAsJSON(t *testing.T) {
	begin(t)
	empty := startServer(t)
	full := theHouse(t)
	enrol(t, full, "listed.test")
	for _, args := range [][]string{
		{"node", "list"},
		{"report", "list"},
		{"report", "list", "--status", "failed"},
		{"ca", "list"},
		{"ca", "list", "--state", "requested"},
		{"code", "list"},
	} {
		for _, s := range []*server{empty, full} {
			eventually(t, patience, "tutti "+strings.Join(args, " ")+" has as many names as items", func() bool { // the full one changes meanwhile
				text := s.tutti(t, append(args, "-o", "json")...)
				var list struct{ Items *[]map[string]any }
				if err := json.Unmarshal([]byte(text), &list); err != nil || list.Items == nil {
					t.Fatalf("tutti %s -o json: %v\n%s", strings.Join(args, " "), err, text)
				}
				return len(strings.Fields(s.tutti(t, append(args, "-o", "name")...))) == len(*list.Items)
			})
			for line := range strings.Lines(s.tutti(t, append(args, "-o", "jsonl")...)) {
				if !json.Valid([]byte(line)) {
					t.Errorf("tutti %s -o jsonl: %s", strings.Join(args, " "), line)
				}
			}
		}
	}
}

// A purged node is forgotten, and comes back with its next run.
func TestPurge(t *testing.T) {
	begin(t, 40)
	s := theHouse(t)
	a := newAgent(t, s, "purged.test", "story=basic")
	a.run(t, 2)
	s.tutti(t, "node", "purge", a.name)
	for _, args := range [][]string{{"node", "show", a.name}, {"node", "facts", a.name}, {"catalog", "show", a.name}} {
		if r := s.try(t, args...); r.code != 1 {
			t.Errorf("tutti %s after the purge: exit code %d\n%s", strings.Join(args, " "), r.code, r.text())
		}
	}
	if len(a.reports(t)) != 0 {
		t.Error("a purged node has reports")
	}
	a.run(t, 0) // its certificate stayed
	if len(a.reports(t)) != 1 {
		t.Error("the node did not come back")
	}
	// A deactivated node is left out of queries until it gives a sign of life.
	question := `nodes[certname]{certname = "purged.test"}`
	s.tutti(t, "node", "deactivate", a.name)
	if out := s.tutti(t, "query", "-o", "json", question); strings.Contains(out, a.name) {
		t.Errorf("a deactivated node is found: %s", out)
	}
	contains(t, s.tutti(t, "node", "show", a.name), "deactivated")
	a.run(t, 0)
	contains(t, s.tutti(t, "query", "-o", "json", question), a.name)
}

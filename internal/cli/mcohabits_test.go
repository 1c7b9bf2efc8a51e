package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent/builtin"
)

// habitServer has three nodes with the agent's own modules, as these describe themselves; each answers ok, and each run succeeds.
func habitServer(t *testing.T) *jobServer {
	t.Helper()
	s := newJobServer(t)
	s.modules = map[string]api.ActionModule{}
	for name, file := range map[string]string{"rpcutil": "self/*.json", "service": "service/*.json", "package": "packages/*.json", "puppet": "puppet/*.json", "filemgr": "filemgr/*.json"} {
		files, err := filepath.Glob("../agent/builtin/" + file)
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", file, files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		described, err := builtin.Module{Name: name, Metadata: text}.Describe()
		if err != nil {
			t.Fatal(err)
		}
		m := api.ActionModule{Module: name}
		for _, a := range described.Actions {
			m.Actions = append(m.Actions, api.Action{
				Name: a.Name, ReadOnly: a.ReadOnly, Display: string(a.Shown()), Input: json.RawMessage(a.Input), Results: json.RawMessage(a.Results),
			})
		}
		s.modules[name] = m
	}
	s.lamp.Actions = []api.Action{{}, {Name: "any", Display: "always", ReadOnly: true, Input: json.RawMessage(`{}`), Results: json.RawMessage(`{}`)}}
	now, fast := time.Now(), 1.5
	for _, node := range []string{"db-1", "web-1", "web-2"} {
		s.pongs = append(s.pongs, api.Pong{Node: node, Connected: &api.Connected{Since: now}, Milliseconds: &fast})
		s.answers = append(s.answers, api.ActionAnswer{Node: node, State: "ok", Data: json.RawMessage(`{}`)})
		s.runs = append(s.runs, run(node, "succeeded", "", ""))
	}
	return s
}

// Every row of the page for users of MCollective: the command in its second column ends with 0, or with the exit code that the row names,
// and says on standard error the command in its third one, which is a command line that can be read.
func TestEveryHabitOfMCollective(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/from-mcollective.md")
	if err != nil {
		t.Fatal(err)
	}
	s := habitServer(t)
	code := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 2 || !strings.Contains(cells[0], "`mco ") {
			continue
		}
		rows++
		typed, own := code.FindAllStringSubmatch(cells[0], -1), code.FindStringSubmatch(cells[1])
		for _, one := range typed {
			got := s.tutti(t.Context(), "", nil, shellWords(one[1])...)
			if want := "In tutti: " + own[1] + "\n"; got.code != exitDone || !strings.Contains(got.err, want) {
				t.Errorf("%s: exit code %d, want %q\n%s", one[1], got.code, want, got.err)
			}
		}
		if got := s.tutti(t.Context(), "", nil, append(shellWords(strings.TrimPrefix(own[1], "tutti ")), "--help")...); got.code != exitDone {
			t.Errorf("%s: %s", own[1], got.err)
		}
	}
	if rows < 60 {
		t.Errorf("the page has %d rows: some are lost", rows)
	}
}

// shellWords are the words of a line with single quotes.
func shellWords(line string) (words []string) {
	for _, word := range regexp.MustCompile(`(?:[^\s']|'[^']*')+`).FindAllString(line, -1) {
		words = append(words, strings.ReplaceAll(word, "'", ""))
	}
	return words
}

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent/builtin"
	limiting "github.com/tutti-project/tutti/internal/target"
)

// habitServer has three nodes with the agent's own modules, as these describe themselves; each answers ok, and each run succeeds.
func habitServer(t *testing.T) *jobServer {
	t.Helper()
	s := newJobServer(t)
	s.modules = map[string]api.ActionModule{}
	for name, file := range map[string]string{
		"rpcutil": "self/*.json", "service": "service/*.json", "package": "packages/*.json", "puppet": "puppet/*.json", "filemgr": "filemgr/*.json",
	} {
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
// and says on standard error the command in its third one, which asks the server for the same.
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
		inTutti := s.asks(t, strings.TrimPrefix(own[1], "tutti "))
		for _, one := range typed {
			asked := s.asks(t, one[1])
			if want := "In tutti: " + own[1] + "\n"; !strings.Contains(asked.said, want) {
				t.Errorf("%s: want %q\n%s", one[1], want, asked.said)
			}
			asked.said, inTutti.said = "", ""
			if diff := cmp.Diff(inTutti, asked, cmp.AllowUnexported(request{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s asks for something else than %s (-tutti +mco):\n%s", one[1], own[1], diff)
			}
		}
	}
	if rows < 60 {
		t.Errorf("the page has %d rows: some are lost", rows)
	}
}

// request is what a command asks of a server, however it says so.
type request struct {
	module, action string // of a ping: none
	texts          map[string]string
	filter         api.NodeFilter
	nodes          []string // that are left of three by the limit
	milliseconds   int64    // to answer; of a job: how long it may take
	atOnce         int
	sleep          int64
	said           string // on standard error
}

// asks runs a command that ends well.
func (s *jobServer) asks(t *testing.T, line string) (r request) {
	t.Helper()
	s.ordered = map[string]json.RawMessage{}
	words := shellWords(line)
	if words[0] != "mco" && words[0] != "ping" {
		words = append(words, "--yes")
	}
	got := s.tutti(t.Context(), "", nil, words...)
	if got.code != exitDone {
		t.Errorf("%s: exit code %d\n%s", line, got.code, got.err)
		return r
	}
	r.said = got.err
	var targets api.JobTargets
	discovered := false // by a ping, whose answers are named then
	if s.ordered["ping"] != nil {
		ping := sentOrder[api.NodePingRequest](t, s, "ping")
		targets, r.milliseconds = ping.Targets, ping.Timeout
	}
	of := func(t api.JobTargets) {
		if discovered = len(t.Nodes) > 0; !discovered {
			targets = t
		} else {
			r.nodes = t.Nodes
		}
	}
	switch {
	case s.ordered["ask"] != nil:
		path := strings.Split(s.path, "/")
		r.module, r.action = path[len(path)-3], path[len(path)-2]
		ask := sentOrder[api.ActionAskRequest](t, s, "ask")
		r.texts, r.milliseconds, r.atOnce, r.sleep = ask.Texts, ask.Timeout, ask.Batch, ask.BatchSleep
		if r.atOnce == 0 {
			r.sleep = 0 // there is one batch
		}
		of(ask.Targets)
	case s.ordered["action"] != nil:
		order := sentOrder[api.JobActionRequest](t, s, "action")
		r.module, r.action, r.texts, r.milliseconds, r.atOnce = order.Module, order.Action, order.Texts, 1000*order.Timeout, order.Concurrency
		of(order.Targets)
	}
	if targets.Filter != nil {
		r.filter = *targets.Filter
	}
	if discovered { // of those that have the module, as mco does it
		r.filter.Modules = r.filter.Modules[:len(r.filter.Modules)-1]
		return r
	}
	nodes, err := limiting.Limit([]string{"db-1", "web-1", "web-2"}, targets.Limit, targets.Seed)
	if err != nil {
		t.Fatal(err)
	}
	r.nodes = nodes
	if strings.HasPrefix(line, "mco find") {
		r.nodes = strings.Fields(got.out)
	}
	if strings.HasPrefix(line, "mco find") || strings.HasPrefix(line, "ping -o name") {
		r.milliseconds = 0 // mco's discovery has its own time
	}
	return r
}

// shellWords are the words of a line with single quotes.
func shellWords(line string) (words []string) {
	for _, word := range regexp.MustCompile(`(?:[^\s']|'[^']*')+`).FindAllString(line, -1) {
		words = append(words, strings.ReplaceAll(word, "'", ""))
	}
	return words
}

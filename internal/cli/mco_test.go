package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
)

// The layouts of mco are what scripts read: each is pinned as it is.
func TestLayoutsOfMCollective(t *testing.T) {
	t.Parallel()
	results, err := action.Compile([]byte(`{"type": "object", "properties": {"percent": {"type": "integer", "title": "Used %", "x-order": 1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	used := func() *mcoAnswers {
		return &mcoAnswers{
			module: "disk", results: results, took: 412080 * time.Microsecond, found: discovery{nodes: []string{"web1", "web2", "web3"}},
			action: action.Action{
				Name: "usage", Display: action.Always, Aggregates: []action.Aggregate{{Function: action.Average, Field: "percent", Format: "mean %.1f"}},
			},
			all: []action.Answer{
				{Node: "web1", Data: []byte(`{"percent": 71}`)},
				{Node: "web2", Code: action.Aborted, Message: "no such mount"},
				{Node: "web3", Code: action.Silent},
			},
		}
	}
	failuresOnly := used()
	failuresOnly.action.Display = action.Failed
	puppet := []action.Answer{
		{Node: "a", Data: []byte(`{"enabled": true, "applying": false, "daemon_present": true, "idling": true, "status": "idling", "message": "Currently idling"}`)},
		{Node: "b", Data: []byte(`{"enabled": false, "applying": false, "daemon_present": false, "idling": false, "status": "stopped"}`)},
		{Node: "c", Code: action.Silent},
		{Node: "d", Code: action.Aborted},
	}
	services := used()
	services.all = []action.Answer{
		{Node: "web1", Data: []byte(`{"status": "running"}`)},
		{Node: "web10", Data: []byte(`{"status": "stopped"}`)},
		{Node: "web2", Code: action.Aborted, Message: "no such service"},
		{Node: "web3", Code: action.Silent},
	}
	services.action.Name = "restart"
	for name, c := range map[string]struct{ got, want string }{
		"rpc": {used().text(), `
web1                                    ` + " " + `
   Used %: 71

web2                                     Request Aborted
   no such mount


Summary of Used %:

   mean 71.0


Finished processing 2 / 3 hosts in 412.08 ms


No response from:

` + inFields([]string{"web3"}) + "\n"},
		"rpc that shows failures": {failuresOnly.text(), `
web2                                     Request Aborted
   no such mount


Summary of Used %:

   mean 71.0


Finished processing 2 / 3 hosts in 412.08 ms


No response from:

` + inFields([]string{"web3"}) + "\n"},
		"ping": {
			mcoPings([]api.Pong{{Node: "web2", Milliseconds: new(30.0)}, {Node: "away"}, {Node: "web1", Milliseconds: new(20.0)}}),
			"web1                                     time=20.00 ms\nweb2                                     time=30.00 ms\n\n\n---- ping statistics ----\n2 replies max: 30.00 min: 20.00 avg: 25.00\n",
		},
		"ping of nobody": {mcoPings(nil), "\n\n---- ping statistics ----\nNo responses received\n"},
		"facts": {factCounts("os.family", []action.Answer{
			{Node: "a", Data: []byte(`{"value": "RedHat"}`)}, {Node: "b", Data: []byte(`{"value": "Debian"}`)}, {Node: "c", Data: []byte(`{"value": "Debian"}`)},
		}, false), "Report for fact: os.family\n\n        Debian                                   found 2 times\n        RedHat                                   found 1 times\n"},
		"facts with nodes": {
			factCounts("x", []action.Answer{{Node: "a", Data: []byte(`{"value": 1}`)}}, true),
			"Report for fact: x\n\n        1                                        found 1 times\n\n            a\n\n",
		},
		"count": {puppetCounts(puppet), `Total Puppet nodes: 2

          Nodes currently enabled: 1
         Nodes currently disabled: 1

Nodes currently doing puppet runs: 0
          Nodes currently stopped: 2

       Nodes with daemons started: 1
    Nodes without daemons started: 1
       Daemons started but idling: 1

Failed to retrieve status of 1 node
`},
		"service": {linesText(services, serviceLine), "\n   web10: stopped\n    web2: no such service\n\n"},
		"inventory": {
			inventoryText(action.Answer{
				Node: "a",
				Data: []byte(`{"version": "1.2", "agents": ["b", "a"], "classes": [], "data_plugins": ["fact"], "facts": {"os": {"family": "Debian"}, "k": "v"}}`),
			}),
			"Inventory for a:\n\n   Server Statistics:\n                     Version: 1.2\n\n   Agents:\n      a                              b\n\n   Data Plugins:\n      fact\n\n" +
				"   Configuration Management Classes:\n      none\n\n   Facts:\n      k => v\n      os => {\"family\":\"Debian\"}\n",
		},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if text := puppetSummary([]action.Answer{
		{Node: "a", Data: []byte(`{"lastrun": 5, "total_resources": 10}`)}, {Node: "b", Data: []byte(`{"lastrun": 5, "total_resources": 20}`)},
	}); !strings.HasPrefix(text,
		"Summary statistics for 2 nodes:\n\n                  Total resources: ▇▁") ||
		!strings.Contains(text, "  min: 10.0   avg: 15.0   max: 20.0  \n            Out Of Sync resources: \n") ||
		!strings.HasSuffix(text, "    Time since last run (seconds): \n\n") {
		t.Errorf("%s", text)
	}
	verbose := used()
	verbose.verbosely = true
	if text := verbose.text(); !strings.Contains(text, "---- disk#usage call stats ----\n           Nodes: 3 / 2\n     Pass / Fail: 1 / 1\n") {
		t.Errorf("%s", text)
	}
}

// A sum is written as the module has it, also of an action that changes something.
func TestSumsAreWrittenAsTheModuleSays(t *testing.T) {
	t.Parallel()
	a := actionOf(api.Action{Aggregates: []api.ActionSum{
		{Function: "sum", Field: "size", Format: "%.0f bytes in all"},
		{Function: "boolean_summary", Field: "on", Labels: map[string]string{"true": "lit", "false": "dark"}},
	}})
	answers := []action.Answer{{Data: []byte(`{"size":3,"on":true}`)}, {Data: []byte(`{"size":4,"on":true}`)}}
	for i, want := range []string{"7 bytes in all", "lit = 2"} {
		if got := a.Aggregates[i].Over(answers, "x").Lines(); !cmp.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestExitCodesOfMCollective(t *testing.T) {
	t.Parallel()
	ok, failed, silent, denied := action.Answer{}, action.Answer{Code: action.Aborted}, action.Answer{Code: action.Silent}, action.Answer{Code: action.Denied}
	for _, c := range []struct {
		answers []action.Answer
		want    int
	}{
		{[]action.Answer{ok, ok}, 0},
		{[]action.Answer{ok, silent}, 0},
		{[]action.Answer{ok, failed, silent}, 2},
		{[]action.Answer{ok, denied}, 2},
		{[]action.Answer{silent, silent}, 3},
		{nil, 3},
	} {
		if got := (&mcoAnswers{all: c.answers}).code(); got != c.want {
			t.Errorf("%v: %d, want %d", c.answers, got, c.want)
		}
		if err := (&call{}).ends(c.want); exitCode(err) != c.want || err != nil && !errors.Is(err, errSaid) {
			t.Errorf("exit code %d of %v, want %d", exitCode(err), err, c.want)
		}
	}
}

// What is said of Tutti's own command has the same nodes; long and short forms of a flag are one.
func TestFlagsOfMCollective(t *testing.T) {
	t.Parallel()
	var m mcoFlags
	cmd := verb[mcoFlags]{use: "x", prints: silent, flags: func(f flagSet, in *mcoFlags) { addMcoFlags(f, in) }, run: nil}.command(&app{})
	if err := cmd.ParseFlags([]string{"--wf", "a=1", "-F", "b=2", "--with-fact", "c=3", "--no-progress", "-t", "2", "--batch-sleep", "1m"}); err != nil {
		t.Fatal(err)
	}
	if got, err := cmd.Flags().GetStringArray("with-fact"); err != nil || strings.Join(got, " ") != "a=1 b=2 c=3" {
		t.Errorf("%s, %v", got, err)
	}
	if got := cmd.Flag("timeout").Value.String() + cmd.Flag("batch-sleep").Value.String(); got != "2s1m" && got != "2s1m0s" {
		t.Errorf("%s", got)
	}
	m = mcoFlags{compound: "a=1 and not b", batch: 5, sleep: batchSleep, timeout: 2 * time.Second}
	m.filter, m.one = api.NodeFilter{Facts: []string{"os.family=Debian"}, Names: []string{"/^web/"}}, true
	conditions, err := m.conditions(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := commandLine(append(m.nodeWords(conditions), m.paceWords(mcoQuestion{}, true)...))
	want := `--fact os.family=Debian --name '/^web/' --select ` + quoted(conditions.Select) + ` --limit 1 --batch 5 --timeout 2s`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := (&mcoFlags{compound: "a="}).conditions(nil); exitCode(err) != exitUsage {
		t.Errorf("%v", err)
	}
	if got := (&mcoFlags{}).nodeWords(api.NodeFilter{}); !cmp.Equal(got, []string{"--all"}) {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		m          mcoFlags
		typed, own string
	}{
		{mcoFlags{method: "stdin"}, "web-1\n# others\ndb-1\n", "--targets -"},
		{mcoFlags{method: "stdin"}, `{"statuscode":0,"sender":"web-1","data":{}}` + "\n" +
			`[{"statuscode":0,"sender":"db-1"},{"statuscode":1,"sender":"db-2"}]`, "--targets -"},
		{mcoFlags{file: "testdata/mconodes"}, "", "--targets @testdata/mconodes"},
		{mcoFlags{method: "flatfile", options: []string{"a=b", "file=testdata/mconodes"}}, "", "--targets @testdata/mconodes"},
	} {
		conditions, err := c.m.conditions(&app{system: System{In: strings.NewReader(c.typed)}})
		var to api.JobTargets
		c.m.among(&to)
		slices.Sort(to.Nodes)
		own := commandLine(c.m.nodeWords(conditions))
		named := !to.All && cmp.Equal(to.Nodes, []string{"db-1", "web-1"})
		if err != nil || !named || own != c.own || !c.m.changesNodes() {
			t.Errorf("%+v: %v, %v, %s, want %s", c.m, to, err, own, c.own)
		}
	}
	if _, err := (&mcoFlags{file: "testdata/none"}).conditions(nil); exitCode(err) != exitUsage {
		t.Errorf("a file that is not there: %v", err)
	}
	for _, words := range [][]string{{"ssh", "status"}, {"status", "ssh"}} {
		if name, does, err := eitherOrder(words, serviceActions); name != "ssh" || does != "status" || err != nil {
			t.Errorf("%v: %s %s %v", words, name, does, err)
		}
	}
	if _, _, err := eitherOrder([]string{"a", "b"}, serviceActions); exitCode(err) != exitUsage {
		t.Errorf("%v", err)
	}
}

// No answer of a node ends the command.
func TestASpreadOfNumbersThatAreTooFarApart(t *testing.T) {
	t.Parallel()
	if got := spread([]float64{-1.7e308, 0, 1.7e308}); !strings.Contains(got, "min: -1") {
		t.Error(got)
	}
}

// The lines are those that the application puppet of MCollective's puppet plugin prints of the same numbers.
func TestSpreadsAreTheOriginals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		numbers []float64
		want    string
	}{
		{[]float64{7, 7, 7}, "▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  min: 7.0    avg: 7.0    max: 7.0   "},
		{[]float64{1, 2, 3, 100}, "▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▃▁▁▁  min: 1.0    avg: 26.5   max: 100.0 "},
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}, "▇▁▁▁▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  min: 0.0    avg: 0.4    max: 5.0   "},
		{[]float64{12.5, 1500, 2500000, 1400}, "▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▃  min: 12.5   avg: 625.7k max: 2.5m  "},
		{nil, ""},
		{[]float64{0.25, 0.5, 3.75}, "▇▁▄▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  min: 0.2    avg: 1.5    max: 3.8   "},
		{[]float64{900, 1800, 1800, 3600, 86400, 950, 960}, "▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▂  min: 900.0  avg: 13.8k  max: 86.4k "},
	} {
		if got := spread(c.numbers); got != c.want {
			t.Errorf("%v:\n%q, want\n%q", c.numbers, got, c.want)
		}
	}
}

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/api"
)

// realCode writes a file on each node. It cannot on one of them, and what needs the file is skipped there.
const realCode = `node 'good.real.test' {
  file { "${facts['scratch']}/app.conf":
    content => "workers = 4\n",
  }
}
node 'bad.real.test' {
  file { '/nonexistent/app/app.conf':
    content => "workers = 4\n",
  }
  notify { 'the app is configured':
    require => File['/nonexistent/app/app.conf'],
  }
  notify { 'the app is announced':
    require => Notify['the app is configured'],
  }
}
`

// shownOfRed is what the page of a red node shows.
type shownOfRed struct {
	Message string   `json:"message"`
	Place   string   `json:"place"` // file and line
	Code    string   `json:"code"`  // the line that is marked, with its number
	Skipped []string `json:"skipped"`
}

// Real agents run real Puppet because somebody orders it in a browser, first to be shown what would change. One node fails, and its page says
// why. The script is console/e2e/real.mjs: what its pages show is in the files of the nodes and in Puppet's own reports, or did not happen.
func TestConsoleWithRealNodes(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--console-listen", "127.0.0.1:0", "--console-plain")
	control := t.TempDir()
	write(t, filepath.Join(control, "manifests", "site.pp"), realCode)
	s.tutti(t, "code", "deploy", "production", control)
	good, bad := newAgent(t, s, "good.real.test"), newAgent(t, s, "bad.real.test")
	for _, a := range []*agent{good, bad} {
		a.withDaemon(t, s, "--facts-interval", "30m")
	}
	eventually(t, patience, "both nodes are known by their facts", func() bool {
		return s.tutti(t, "node", "list", "--where", `certname ~ "real.test$"`, "-o", "name") == bad.name+"\n"+good.name+"\n"
	})

	w := &consoleWorld{server: s, red: bad.name, nodes: 2}
	said := w.browse(t, "real.mjs", "TUTTI_GOOD="+good.name, "TUTTI_FILE="+filepath.Join(good.scratch, "app.conf"))
	w.runs(t, said, 4)

	same(t, "the file of the good node", "workers = 4\n", good.read(t, "app.conf"))
	if _, err := os.Stat("/nonexistent"); err == nil {
		t.Error("the bad node could write its file")
	}
	for _, a := range []*agent{good, bad} {
		a.ranTwice(t)
	}
	for _, a := range []struct {
		*agent
		status string
	}{{good, "changed"}, {bad, "failed"}} {
		node := decode[api.Node](t, s, "node", "show", a.name)
		own := a.ownReport(t)
		if node.Status != a.status || node.State != a.status || node.Noop || own.Status != a.status {
			t.Errorf("the server has %s as %s, its Puppet reported %s: want %s", a.name, node.State, own.Status, a.status)
		}
		same(t, "the last run of "+a.name, own.Transaction, a.lastReport(t).TransactionUUID)
	}
	same(t, "what the page of the red node shows", bad.ownReport(t).red(t), shownIn(t, said))
}

// ranTwice holds that the node's Puppet ran as the two jobs said, the first time to show what would change.
func (a *agent) ranTwice(t *testing.T) {
	t.Helper()
	var runs []string
	for _, r := range a.reports(t) {
		runs = append(runs, fmt.Sprintf("job %s, noop %t", r.JobID, r.Noop))
	}
	same(t, "runs of "+a.name+", newest first", []string{"job 2, noop false", "job 1, noop true"}, runs)
}

// shownIn reads what the script saw on the page.
func shownIn(t *testing.T, said string) (shown shownOfRed) {
	t.Helper()
	for line := range strings.Lines(said) {
		if text, is := strings.CutPrefix(line, "shown: "); is {
			if err := json.Unmarshal([]byte(text), &shown); err != nil {
				t.Fatal(err)
			}
		}
	}
	return shown
}

// ownReport is the report of its last run that a node's Puppet keeps itself.
type ownReport struct {
	Status      string
	Transaction string `yaml:"transaction_uuid"`
	Resources   map[string]struct {
		File            string
		Line            int
		Failed, Skipped bool
		Events          []struct{ Message string }
	} `yaml:"resource_statuses"`
}

func (a *agent) ownReport(t *testing.T) (r ownReport) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(a.home, "*", "state", "last_run_report.yaml"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("reports of %s: %q, %v", a.name, paths, err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// red is what a page shows of a run in which one resource of realCode failed.
func (r ownReport) red(t *testing.T) (want shownOfRed) {
	t.Helper()
	failed := ""
	for name, resource := range r.Resources {
		if !resource.Failed {
			continue
		}
		if failed != "" || len(resource.Events) == 0 {
			t.Fatalf("%s failed after %q, with %d events", name, failed, len(resource.Events))
		}
		failed = name
		want.Message = resource.Events[0].Message
		want.Place = fmt.Sprintf("%s:%d", resource.File, resource.Line)
		want.Code = fmt.Sprintf("%d%s", resource.Line, strings.Split(realCode, "\n")[resource.Line-1]) // the file that was deployed
	}
	for _, name := range []string{"Notify[the app is configured]", "Notify[the app is announced]"} { // in the order in which they wait
		if r.Resources[name].Skipped {
			want.Skipped = append(want.Skipped, name)
		}
	}
	return want
}

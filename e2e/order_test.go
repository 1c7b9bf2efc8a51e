package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// tiersCode is an application of three tiers. Its web tier fails where the file "ok" is missing.
const tiersCode = `
$instance = $facts['story']
case $facts['tier'] {
  'db': {
    tutti::component { "Shop::Db[${instance}]": application => "Shop[${instance}]", produces => "Sql[${instance}]" }
    tutti::application { "Shop[${instance}]": description => 'sells', parameters => { 'db_user' => 'shop' } }
  }
  'web': {
    exec { "/usr/bin/test -e ${facts['scratch']}/ok": }
    tutti::component { "Shop::Web[${instance}]": application => "Shop[${instance}]", consumes => ["Sql[${instance}]"], produces => ["Http[${instance}]"] }
  }
  default: {
    tutti::component { "Shop::Lb[${instance}]": application => "Shop[${instance}]", consumes => "Http[${instance}]" }
  }
}
`

// joinTier makes a node of the application whose agent runs Puppet when it is told to. Its first run tells what it declares.
func joinTier(t *testing.T, s *server, tier string) *agent {
	t.Helper()
	a := newAgent(t, s, tier+".order.test", "story=eu", "tier="+tier)
	write(t, filepath.Join(a.scratch, "ok"), "")
	changes := map[string]int{"web": 2}[tier]
	a.run(t, changes)
	dir := t.TempDir()
	s.tutti(t, "agent", "join", s.url, "--dir", dir, "--use-puppet-certificates", "--puppet-ssldir", filepath.Join(a.home, "ssldir"), "--certname", a.name)
	d := newDaemon(t, a.name, dir, "--puppet", programtest.Write(t, filepath.Join(dir, "puppet"), a.script()))
	d.start(t)
	d.connectedTo(t, strings.TrimPrefix(s.url, "https://"))
	return a
}

// An application of three tiers runs in order on real agents; when the middle tier fails, only what depends on it is
// skipped, and the graph can be seen as text and as JSON.
func TestAnApplicationRunsInOrder(t *testing.T) {
	begin(t, 90)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), tiersCode)
	if err := os.MkdirAll(filepath.Join(dir, "modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "app", "module", filepath.Join(dir, "modules"))
	s.tutti(t, "code", "deploy", "production", dir)
	db, web, lb := joinTier(t, s, "db"), joinTier(t, s, "web"), joinTier(t, s, "lb")
	nodes := []string{db.name, web.name, lb.name}

	drawn := "Level 0\n  " + db.name + "\nLevel 1\n  " + web.name + "\n    └─ waits for " + db.name + ": Shop::Web[eu] consumes Sql[eu]\n" +
		"Level 2\n  " + lb.name + "\n    └─ waits for " + web.name + ": Shop::Lb[eu] consumes Http[eu]\n"
	if got := s.tutti(t, "app", "graph", "Shop[eu]"); got != drawn {
		t.Errorf("the graph is drawn as\n%s\nwant\n%s", got, drawn)
	}
	graph := decode[api.NodeGraph](t, s, "app", "graph", "-o", "json")
	same(t, "layers", [][]string{{db.name}, {web.name}, {lb.name}}, graph.Layers)
	apps := decode[[]api.App](t, s, "app", "show", "Shop", "-o", "json")
	var components []string
	for _, c := range apps[0].Components {
		components = append(components, c.Name+" "+c.Node)
	}
	same(t, "components in order", []string{"Shop::Db[eu] " + db.name, "Shop::Web[eu] " + web.name, "Shop::Lb[eu] " + lb.name}, components)
	contains(t, s.tutti(t, "job", "plan", "--app", "Shop[eu]"), "Level 2\n  "+lb.name, "Shop[eu] - Shop::Web[eu]", "waits for "+db.name)

	runs := tierRuns(t, s, nodes, 0)
	for i := 1; i < len(runs); i++ {
		if runs[i].SentAt.Before(*runs[i-1].FinishedAt) {
			t.Errorf("%s was sent at %s, %s ended at %s", runs[i].Node, runs[i].SentAt, runs[i-1].Node, runs[i-1].FinishedAt)
		}
	}
	write(t, filepath.Join(dir, "manifests/site.pp"), tiersCode+"notify { 'more': }\n")
	s.tutti(t, "code", "deploy", "production", dir)
	eventually(t, patience, "the catalogs are of the new code", func() bool {
		return strings.Contains(s.tutti(t, "code", "status"), "3 nodes, 3 current")
	})
	contains(t, s.tutti(t, "job", "plan", "--app", "Shop[eu]"), "  "+db.name+"  (new catalog)\n", "\nChanges since what nodes applied last\n",
		"  + Notify[more]    3 nodes\n")

	if err := os.Remove(filepath.Join(web.scratch, "ok")); err != nil {
		t.Fatal(err)
	}
	runs = tierRuns(t, s, nodes, 4)
	same(t, "states", []string{"succeeded", "failed", "skipped"}, []string{runs[0].State, runs[1].State, runs[2].State})
	if want := "because of " + web.name; !strings.HasPrefix(runs[2].Reason, want) {
		t.Errorf("the top was skipped with the reason %q, want %q", runs[2].Reason, want)
	}
}

// tierRuns runs the application in order, and returns the runs of nodes.
func tierRuns(t *testing.T, s *server, nodes []string, code int) []api.JobRun {
	t.Helper()
	r := s.try(t, "run", "--app", "Shop[eu]", "--ordered")
	if r.code != code {
		t.Fatalf("tutti run: exit code %d, want %d\n%s", r.code, code, r.text())
	}
	jobs := decode[api.List[api.Job]](t, s, "job", "list", "-o", "json", "--limit", "1").Items
	found := decode[api.List[api.JobRun]](t, s, "job", "show", jobs[0].ID, "--runs", "all", "-o", "json").Items
	sorted := make([]api.JobRun, len(nodes))
	for i, node := range nodes {
		at := slices.IndexFunc(found, func(r api.JobRun) bool { return r.Node == node })
		if at < 0 {
			t.Fatalf("no run on %s in %+v", node, found)
		}
		sorted[i] = found[at]
	}
	return sorted
}

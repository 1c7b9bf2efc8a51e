package e2e_test

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
)

// rankCode is a catalog that reads one custom fact.
const rankCode = `notify { "this is ${facts['rank']}": }
`

// customFact is a fact whose value is in a file.
func customFact(t *testing.T, a *agent, name, value string) (change func(value string)) {
	t.Helper()
	file, dir := filepath.Join(a.home, name), filepath.Join(a.home, "vardir", "facts")
	change = func(value string) { write(t, file, value) }
	change(value)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, name+".rb"), `Facter.add(:`+name+`) { setcode { File.read("`+file+`").strip } }`+"\n")
	return change
}

// volatile facts differ each time somebody looks.
var volatile = []string{
	"load_averages", "memory", "memoryfree", "memoryfree_mb", "swapfree", "swapfree_mb", "system_uptime", "uptime", "uptime_seconds",
	"uptime_hours", "uptime_days", "mountpoints", "filesystems", "path", "trusted", "processors", "disks",
}

// steady are a node's stored facts without those.
func steady(t *testing.T, s *server, name string) map[string]any {
	t.Helper()
	rows := decode[[]struct{ Facts map[string]any }](t, s, "query", `inventory[facts] { certname = "`+name+`" }`)
	if len(rows) != 1 {
		t.Fatalf("the inventory has %d rows of %s", len(rows), name)
	}
	maps.DeleteFunc(rows[0].Facts, func(fact string, _ any) bool { return slices.Contains(volatile, fact) })
	return rows[0].Facts
}

// A node joins and is known at once, by the facts that a Puppet run would submit. A fact changes that its catalog
// read: the catalog is compiled anew though nobody asks for it. Another one changes: it is only stored.
func TestFactsApartFromRuns(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--max-load", "0")
	control := t.TempDir()
	if err := os.Mkdir(filepath.Join(control, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(control, "manifests", "site.pp"), rankCode)
	s.tutti(t, "code", "deploy", "production", control)
	a := newAgent(t, s, "facts-1")
	rank, mood := customFact(t, a, "rank", "first"), customFact(t, a, "mood", "good")
	d := a.withDaemon(t, s, "--facts-interval", "30m", "--facts-watch-interval", "2s")
	accepted := func() bool { status, ok := d.status(t); return ok && status.Facts.Accepted != nil }
	eventually(t, patience, "the facts are accepted", accepted)
	contains(t, s.tutti(t, "node", "list"), a.name)
	submitted := steady(t, s, a.name)

	contains(t, a.run(t, 2), "this is first")
	if diff := cmp.Diff(steady(t, s, a.name), submitted); diff != "" {
		t.Errorf("facts of a run and of the agent differ (-run +agent):\n%s", diff)
	}

	titles := func() string {
		return s.tutti(t, "query", "-o", "json", `resources[title] { certname = "`+a.name+`" and type = "Notify" }`)
	}
	rank("second")
	eventually(t, 2*patience, "the catalog follows the fact", func() bool { return strings.Contains(titles(), "this is second") })

	wanted := s.metric(t, "tutti_ahead_facts_total")
	mood("bad")
	contains(t, tuttiWith(t, cleanEnv(), "agent", "facts", "--now", "--dir", d.dir).text(), "submitted")
	contains(t, s.tutti(t, "query", "-o", "json", `facts[value] { certname = "`+a.name+`" and name = "mood" }`), "bad")
	rank("third") // what came before is considered before it
	eventually(t, 2*patience, "the catalog follows the fact", func() bool { return strings.Contains(titles(), "this is third") })
	if now := s.metric(t, "tutti_ahead_facts_total"); now != wanted+1 {
		t.Errorf("%g catalogs were wanted because of facts, then %g: one fact changed that was read", wanted, now)
	}
	status, ok := d.status(t)
	if !ok || status.Facts.Watched == 0 || status.Facts.Problem != "" {
		t.Errorf("status: %+v", status.Facts)
	}
}

// metrics are the figures that the server tells.
func (s *server) metrics(t *testing.T) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(s.data, api.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := anonymous(t, s).client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// metric is the value of one of the server's; with three servers each counts what it did itself, and this is the sum.
func (s *server) metric(t *testing.T, name string) float64 {
	t.Helper()
	if s.three != nil {
		sum := 0.0
		for _, member := range s.three.servers {
			sum += member.metric(t, name)
		}
		return sum
	}
	text := s.metrics(t)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("there is no metric %s in:\n%s", name, text)
	return 0
}

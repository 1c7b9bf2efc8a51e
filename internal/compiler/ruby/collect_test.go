package ruby

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pql"
)

// collectNodes are compiled by us and by the stock compiler with the real PuppetDB
// terminus. What each collects stands in testdata/exported/manifests/site.pp.
var collectNodes = []string{
	"plain", "filters", "own", "overrides", "relations", "nested", "tags", "concat", "empty", "twice", "defaults", "queries",
	"conflict", "two-exporters", "unknown-type", "wrong-parameter",
}

func TestCollectedCatalogsEqualTheStockCompilers(t *testing.T) {
	t.Parallel()
	needTerminus(t)
	known := exportedFleet(t)
	pool := runningWith(t, Config{Workers: 1}, directories{version("exported"): copyTree(t, "testdata/exported")}, known)
	orders := make([]compile.Order, len(collectNodes))
	for i, node := range collectNodes {
		orders[i] = order(t, "production", "exported", node+".example.org")
	}
	want := stockCatalogs(t, "exported", orders, "PUPPETDB_URL="+standIn(t, known))
	for i, o := range orders {
		outcome, err := pool.Compile(t.Context(), o)
		if refused := stockError(t, want[i]); refused != "" {
			if err == nil || !sameRefusal(refused, err) {
				t.Errorf("%s: got error %v, stock has %q", o.Node, err, refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", o.Node, err)
			continue
		}
		if compareCatalogs(t, collectNodes[i], want[i], outcome.Catalog) {
			t.Logf("equal: %-10s %d resources, %d collected", collectNodes[i], len(parse(t, outcome.Catalog).Resources), len(outcome.Collected))
		}
	}
}

// needTerminus fails with the command that installs the stock terminus.
func needTerminus(t *testing.T) {
	t.Helper()
	needPuppet(t)
	if _, err := os.Stat("/usr/lib/ruby/vendor_ruby/puppet/indirector/resource/puppetdb.rb"); err != nil {
		t.Fatal("no PuppetDB terminus here: apt-get install puppet-terminus-puppetdb")
	}
}

// sameRefusal compares messages without what Puppet adds for a node.
func sameRefusal(stock string, ours error) bool {
	failure, ok := errors.AsType[*compile.Error](ours)
	plain := func(text string) string {
		text, _, _ = strings.Cut(text, " on node ")
		return text
	}
	return ok && plain(failure.Message) == plain(stock)
}

// stockError is why the stock compiler gave no catalog; empty: it did.
func stockError(t *testing.T, document json.RawMessage) string {
	t.Helper()
	var refused struct{ Error string }
	if err := json.Unmarshal(document, &refused); err != nil {
		t.Fatal(err)
	}
	return refused.Error
}

// exportedFleet is an inventory of two nodes that export.
func exportedFleet(t *testing.T) *compiletest.Inventory {
	t.Helper()
	text, err := os.ReadFile("testdata/exported/resources.json")
	if err != nil {
		t.Fatal(err)
	}
	var nodes map[fleet.Certname][]compiletest.Resource
	if err := json.Unmarshal(text, &nodes); err != nil {
		t.Fatal(err)
	}
	known := compiletest.NewInventory()
	for node, resources := range nodes {
		known.Replace(node, resources...)
	}
	return known
}

// standIn answers the terminus as PuppetDB would, from the same rows.
func standIn(t *testing.T, known *compiletest.Inventory) string {
	t.Helper()
	answer := func(r *http.Request) (json.RawMessage, error) {
		if r.Method == http.MethodGet {
			return known.Query(r.Context(), compile.Query{Text: `["from","resources",` + r.URL.Query().Get("query") + `]`, MaxBytes: 1 << 20})
		}
		var body struct{ Query json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
		text := string(body.Query)
		if json.Unmarshal(body.Query, &text) != nil {
			text = string(body.Query)
		}
		return known.Query(r.Context(), compile.Query{Text: text, MaxBytes: 1 << 20})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rows, err := answer(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(rows)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A compile says what it collected from whom, and what it asked.
func TestOutcomeSaysWhatWasCollectedAndAsked(t *testing.T) {
	t.Parallel()
	known := exportedFleet(t)
	pool := runningWith(t, Config{Workers: 1}, directories{version("exported"): copyTree(t, "testdata/exported")}, known)
	// A zygote that learned from samples does not learn from these orders, which would ask the same again.
	if err := pool.Warm(t.Context(), "production", version("exported"), []compile.Order{order(t, "production", "exported", "plain.example.org")}); err != nil {
		t.Fatal(err)
	}
	asked := known.Questions()
	outcome, err := pool.Compile(t.Context(), order(t, "production", "exported", "twice.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	want := []compile.Collected{
		{Type: "Notify", Title: "a says hello", Exporter: "a.example.org"},
		{Type: "Notify", Title: "b says hello", Exporter: "b.example.org"},
		{Type: "Notify", Title: "a says no", Exporter: "a.example.org"},
	}
	if diff := cmp.Diff(want, outcome.Collected); diff != "" {
		t.Errorf("collected (-want +got):\n%s", diff)
	}
	if len(outcome.Asked) != 2 || outcome.Asked[0].Text != `{"type":"Notify","filter":["=","tag","web"]}` || outcome.Asked[0].Rows != 2 ||
		outcome.Asked[1].Rows != 3 {
		t.Errorf("asked: %+v", outcome.Asked)
	}
	if asked = known.Questions() - asked; asked != 2 {
		t.Errorf("%d questions reached the inventory, want each once", asked)
	}

	outcome, err = pool.Compile(t.Context(), order(t, "production", "exported", "queries.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	texts, rows := []string{}, []int{}
	for _, q := range outcome.Asked {
		if _, err := pql.Read(q.Text); err != nil || q.Kind != compile.AskedQuery || q.Answer == "" {
			t.Errorf("asked: %+v, %v", q, err)
		}
		texts, rows = append(texts, q.Text), append(rows, q.Rows)
	}
	if len(texts) != 4 || !slices.Equal(rows, []int{3, 3, 0, 3}) || outcome.Collected != nil {
		t.Errorf("asked %v with %v rows, collected %v", texts, rows, outcome.Collected)
	}
	// Other rows are another answer, the same rows the same.
	before := outcome.Asked[0].Answer
	known.Deactivate("b.example.org")
	outcome, err = pool.Compile(t.Context(), order(t, "production", "exported", "queries.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Asked[0].Answer == before || outcome.Asked[2].Answer != fleet.DigestOf([]byte("[]")) {
		t.Errorf("after a node was deactivated: %+v", outcome.Asked)
	}
}

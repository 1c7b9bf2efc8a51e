package inventorytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// RunStore checks a store. open returns an empty one for each case; it cleans up
// through t.
func RunStore(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	cases := map[string]func(t *testing.T, s Store){
		"facts are read as saved":               factsRoundTrip,
		"facts grow by differences":             factsDifferences,
		"facts that are broken change nothing":  factsInvalid,
		"facts of one node saved at once":       factsConcurrent,
		"facts that change type and shape":      factsShapes,
		"facts are read leaf by leaf":           factLeaves,
		"catalogs are read as saved":            catalogRoundTrip,
		"catalogs replace each other":           catalogReplace,
		"what is collected follows the catalog": catalogCollected,
		"an older catalog replaces no newer":    catalogLate,
		"a catalog's digests are listed":        catalogDigests,
		"nodes sum up what is known":            nodeSummary,
		"nodes are paged by name":               nodePages,
		"nodes are read by name":                nodesNamed,
		"purging forgets everything":            purge,
		"reports are read as saved":             reportRoundTrip,
		"reports are stored once":               reportTwice,
		"reports are listed newest first":       reportPages,
		"reports are found by a prefix":         reportPrefix,
		"pruning keeps each node's newest":      prune,
		"many writers at once":                  manyWriters,
		"what is not there is NotFound":         notFound,
		"an older report is not the latest one": reportLate,
	}
	maps.Copy(cases, originCases())
	for name, check := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isKind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("%s: got error %v, want one of kind %s", what, err, want)
	}
}

func factSet(node fleet.Certname, values string, at time.Time) inventory.FactSet {
	return inventory.FactSet{
		Certname: node, Environment: "production", Values: json.RawMessage(values),
		Timestamp: at.Add(-time.Second), ReceivedAt: at,
	}
}

func factsRoundTrip(t *testing.T, s Store) {
	ctx := t.Context()
	stored, changed, err := s.SaveFacts(ctx, factSet("a.example", `{"os":{"name":"Debian","n":12345678901234567890.5},"b":[1,{"c":null}],"e":"ä\u0001"}`, start))
	ok(t, err)
	same(t, "changed", []string{"b[0]", "b[1].c", "e", "os.n", "os.name"}, changed)
	values := `{"b":[1,{"c":null}],"e":"ä\u0001","os":{"n":12345678901234567890.5,"name":"Debian"}}`
	want := factSet("a.example", values, start)
	want.Seq, want.Digest, want.ProducedAt = 1, fleet.DigestOf([]byte(values)), start
	same(t, "stored", want, stored)
	got, err := s.Facts(ctx, "a.example")
	ok(t, err)
	same(t, "read", want, got)
}

func factsDifferences(t *testing.T, s Store) {
	ctx := t.Context()
	steps := []struct {
		values  string
		seq     int64
		changed []string
	}{
		{`{"a":1,"b":{"x":"1","y":[1,2]}}`, 1, []string{"a", "b.x", "b.y[0]", "b.y[1]"}},
		{` {"b":{"y":[1,2],"x":"1"},"a":1} `, 1, nil},
		{`{"a":2,"b":{"x":"1","y":[1,2]}}`, 2, []string{"a"}},
		{`{"a":2,"b":{"y":[1]},"c":true}`, 3, []string{"b.x", "b.y[1]", "c"}},
		{`{}`, 4, []string{"a", "b.y[0]", "c"}},
		{`{"a":2}`, 5, []string{"a"}},
	}
	for i, step := range steps {
		f := factSet("a.example", step.values, start.Add(time.Duration(i)*time.Minute))
		f.Environment = fleet.Environment(fmt.Sprintf("env%d", i))
		stored, changed, err := s.SaveFacts(ctx, f)
		ok(t, err)
		same(t, step.values+": changed", step.changed, changed)
		same(t, step.values+": seq", step.seq, stored.Seq)
		got, err := s.Facts(ctx, "a.example")
		ok(t, err)
		same(t, step.values+": read", stored, got)
	}
}

func factsShapes(t *testing.T, s Store) {
	ctx := t.Context()
	steps := []struct {
		values  string
		changed []string
	}{
		{`{"a":"1"}`, []string{"a"}},
		{`{"a":1}`, []string{"a"}},
		{`{"a":1.0}`, []string{"a"}},
		{`{"a":null}`, []string{"a"}},
		{`{"a":{}}`, []string{"a"}},
		{`{"a":[]}`, []string{"a"}},
		{`{"a":{"a.b":"x","a":{"b":"y"}}}`, []string{"a", `a."a.b"`, "a.a.b"}},
		{`{"a":["x"]}`, []string{`a."a.b"`, "a.a.b", "a[0]"}},
		{`{"a":false,"":"empty key"}`, []string{`""`, "a", "a[0]"}},
	}
	for _, step := range steps {
		_, changed, err := s.SaveFacts(ctx, factSet("a.example", step.values, start))
		ok(t, err)
		same(t, step.values+": changed", step.changed, changed)
	}
}

func factsInvalid(t *testing.T, s Store) {
	ctx := t.Context()
	for _, values := range []string{``, `[]`, `{"a":`, `{"a":NaN}`, `"x"`, `{"a":1}x`} {
		_, _, err := s.SaveFacts(ctx, factSet("a.example", values, start))
		isKind(t, "facts "+values, err, fault.Invalid)
	}
	_, err := s.Node(ctx, "a.example")
	isKind(t, "node", err, fault.NotFound)
}

func factsConcurrent(t *testing.T, s Store) {
	const writers, rounds = 8, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				if _, _, err := s.SaveFacts(t.Context(), factSet("a.example", fmt.Sprintf(`{"w":%d,"r":{"%d":%d}}`, w, r, w), start)); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	before, err := s.Facts(t.Context(), "a.example")
	ok(t, err)
	if before.Seq < 2 || before.Seq > writers*rounds {
		t.Errorf("seq is %d after %d saves", before.Seq, writers*rounds)
	}
	// What is stored must still be whole: a difference from it is exact.
	_, changed, err := s.SaveFacts(t.Context(), factSet("a.example", `{}`, start))
	ok(t, err)
	if len(changed) != 2 || changed[1] != "w" {
		t.Errorf("taking all away changed %q, want two paths", changed)
	}
}

func catalog(node fleet.Certname, digest string) inventory.Catalog {
	return inventory.Catalog{
		Certname: node, Environment: "production", Digest: fleet.DigestOf([]byte(digest)), Version: fleet.DigestOf([]byte("v")),
		Origin: inventory.Origin{Producer: "tutti.example"}, ConfigVersion: "v", CodeID: "code", JobID: "9",
		UUID: "uuid-" + digest, Transaction: "tx", CompiledAt: start,
		Resources: []inventory.Resource{
			{Type: "Stage", Title: "main"},
			{Type: "File", Title: "/z", Tags: []string{"file", "node"}, File: "site.pp", Line: 3, Parameters: json.RawMessage(`{"ensure":"file","mode":"0644"}`)},
			{Type: "File", Title: "/a", Exported: true, Parameters: json.RawMessage(`{"ensure":"file","mode":"0644"}`)},
			{Type: "Apache::Vhost", Title: "ü [x]", Parameters: json.RawMessage(`{"port":80}`)},
		},
		Edges: []inventory.Edge{
			{Source: "File[/z]", Target: "Apache::Vhost[ü [x]]", Relationship: "before"},
			{Source: "Stage[main]", Target: "File[/z]", Relationship: "contains"},
		},
	}
}

func readCatalog(t *testing.T, s Store, want inventory.Catalog) {
	t.Helper()
	got, err := s.Catalog(t.Context(), want.Certname)
	ok(t, err)
	if want.ProducedAt.IsZero() {
		want.ProducedAt = want.CompiledAt
	}
	same(t, "catalog", want, got)
}

func catalogRoundTrip(t *testing.T, s Store) {
	c := catalog("a.example", "1")
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	twice := c
	twice.Certname = "b.example"
	twice.Resources = append(append([]inventory.Resource{}, c.Resources...), c.Resources[1])
	twice.Edges = append(append([]inventory.Edge{}, c.Edges...), c.Edges[0])
	ok(t, s.SaveCatalog(t.Context(), twice))
	twice.Resources, twice.Edges = c.Resources, c.Edges
	readCatalog(t, s, twice)
	empty := inventory.Catalog{Certname: "c.example", Environment: "production", Digest: fleet.DigestOf(nil), CompiledAt: start}
	ok(t, s.SaveCatalog(t.Context(), empty))
	readCatalog(t, s, empty)
}

func catalogReplace(t *testing.T, s Store) {
	c := catalog("a.example", "1")
	ok(t, s.SaveCatalog(t.Context(), c))
	c.UUID, c.CompiledAt = "again", start.Add(time.Hour) // the same digest
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	c.Digest = fleet.DigestOf([]byte("2"))
	c.Resources = []inventory.Resource{
		{Type: "User", Title: "new"},
		c.Resources[3],
		c.Resources[1],
	}
	c.Resources[2].Parameters = json.RawMessage(`{"ensure":"absent"}`)
	c.Edges = []inventory.Edge{{Source: "Stage[main]", Target: "File[/z]", Relationship: "contains"}, {Source: "User[new]", Target: "File[/z]", Relationship: "notifies"}}
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	c = catalog("a.example", "1")
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
}

func catalogCollected(t *testing.T, s Store) {
	c := catalog("a.example", "1")
	c.Collected = []inventory.Collected{
		{Type: "File", Title: "/z", Exporter: "x.example"},
		{Type: "User", Title: "u", Exporter: "y.example"},
		{Type: "File", Title: "/a", Exporter: "x.example"},
		{Type: "File", Title: "/a", Exporter: "second.example"},
	}
	ok(t, s.SaveCatalog(t.Context(), c))
	c.Collected = []inventory.Collected{c.Collected[2], c.Collected[0], c.Collected[1]} // sorted, each once
	readCatalog(t, s, c)
	// The same catalog, from other exporters.
	c.Collected = []inventory.Collected{{Type: "File", Title: "/a", Exporter: "x.example"}, {Type: "File", Title: "/z", Exporter: "z.example"}}
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	other := catalog("b.example", "1")
	other.Collected = c.Collected
	ok(t, s.SaveCatalog(t.Context(), other))
	c.Collected, c.Digest = nil, fleet.DigestOf([]byte("2"))
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	readCatalog(t, s, other)
	// A node that comes back after it was purged has collected nothing.
	ok(t, s.PurgeNode(t.Context(), "b.example"))
	other.Collected = nil
	ok(t, s.SaveCatalog(t.Context(), other))
	readCatalog(t, s, other)
}

func catalogLate(t *testing.T, s Store) {
	first, second := catalog("a.example", "1"), catalog("a.example", "2")
	first.Compilation, second.Compilation = 7, 8
	first.CompiledAt = start.Add(time.Hour) // it was asked for earlier and took longer, or the clock was set back
	first.Environment = "dev"
	ok(t, s.SaveCatalog(t.Context(), second))
	ok(t, s.SaveCatalog(t.Context(), first))
	readCatalog(t, s, second)
	node, err := s.Node(t.Context(), "a.example")
	ok(t, err)
	same(t, "node's catalog", second.Digest, node.CatalogDigest)
	same(t, "node's environment", second.Environment, node.Environment)
	again := second // a compilation whose row was not finished is repeated
	again.UUID, again.Digest = "again", fleet.DigestOf([]byte("3"))
	ok(t, s.SaveCatalog(t.Context(), again))
	readCatalog(t, s, again)
}

func catalogDigests(t *testing.T, s Store) {
	a, b, c := catalog("a.example", "1"), catalog("b.example", "1"), catalog("c.example", "2")
	for _, each := range []inventory.Catalog{a, b, c} {
		ok(t, s.SaveCatalog(t.Context(), each))
	}
	got, err := s.CatalogDigests(t.Context())
	ok(t, err)
	want := []fleet.Digest{a.Digest, c.Digest}
	slices.Sort(want)
	slices.Sort(got)
	same(t, "digests", want, got)
}

func nodeSummary(t *testing.T, s Store) {
	ctx := t.Context()
	_, _, err := s.SaveFacts(ctx, factSet("a.example", `{"a":1}`, start))
	ok(t, err)
	want := inventory.Node{Certname: "a.example", Environment: "production", FactsAt: start, CreatedAt: start}
	readNode(t, s, want)
	c := catalog("a.example", "1")
	c.Environment, c.CompiledAt = "dev", start.Add(time.Second)
	ok(t, s.SaveCatalog(ctx, c))
	want.Environment, want.CatalogAt, want.CatalogDigest = "dev", c.CompiledAt, c.Digest
	readNode(t, s, want)
	r := report("a.example", 1)
	ok(t, s.SaveReport(ctx, r))
	want.Environment, want.ReportAt, want.LatestReport, want.LatestStatus = "production", r.ReceivedAt, r.ID, r.Status
	want.LatestNoop, want.LatestCorrective = r.Noop, r.CorrectiveChange
	readNode(t, s, want)
}

func readNode(t *testing.T, s Store, want inventory.Node) {
	t.Helper()
	got, err := s.Node(t.Context(), want.Certname)
	ok(t, err)
	same(t, "node", want, got)
}

func nodePages(t *testing.T, s Store) {
	ctx := t.Context()
	for _, name := range []fleet.Certname{"c-1.example", "a.example", "c.example", "b_2.example", "c0.example"} {
		_, _, err := s.SaveFacts(ctx, factSet(name, `{"a":1}`, start))
		ok(t, err)
	}
	var got []fleet.Certname
	page := inventory.Page{Limit: 2}
	for {
		nodes, err := s.Nodes(ctx, page)
		ok(t, err)
		if len(nodes) == 0 {
			break
		}
		for _, n := range nodes {
			got = append(got, n.Certname)
		}
		page.After = string(nodes[len(nodes)-1].Certname)
	}
	same(t, "names", []fleet.Certname{"a.example", "b_2.example", "c-1.example", "c.example", "c0.example"}, got)
	for _, limit := range []int{0, -1, 1001} {
		_, err := s.Nodes(ctx, inventory.Page{Limit: limit})
		isKind(t, fmt.Sprint("limit ", limit), err, fault.Invalid)
		_, err = s.Reports(ctx, inventory.ReportFilter{Page: inventory.Page{Limit: limit}})
		isKind(t, fmt.Sprint("limit ", limit), err, fault.Invalid)
	}
}

func nodesNamed(t *testing.T, s Store) {
	ctx := t.Context()
	for _, name := range []fleet.Certname{"b.example", "a.example", "c.example"} {
		_, _, err := s.SaveFacts(ctx, factSet(name, `{"a":1}`, start))
		ok(t, err)
	}
	nodes, err := s.NodesNamed(ctx, []fleet.Certname{"c.example", "x.example", "a.example", "c.example"})
	ok(t, err)
	want, err := s.Node(ctx, "a.example")
	ok(t, err)
	if len(nodes) != 2 || nodes[1].Certname != "c.example" {
		t.Fatalf("got %v", nodes)
	}
	same(t, "the first", want, nodes[0])
	none, err := s.NodesNamed(ctx, nil)
	ok(t, err)
	same(t, "none", 0, len(none))
	_, err = s.NodesNamed(ctx, make([]fleet.Certname, inventory.MaxNamed+1))
	isKind(t, "too many", err, fault.Invalid)
}

func factLeaves(t *testing.T, s Store) {
	ctx := t.Context()
	for name, values := range map[fleet.Certname]string{
		"a.example": `{"os":{"family":"Debian"},"n":[1,2.50,true,null,{},[]],"we.ird":{"0":"k"}}`,
		"b.example": `{"os":{"family":"RedHat"},"n":"x"}`,
		"c.example": `{"os":"none"}`,
	} {
		_, _, err := s.SaveFacts(ctx, factSet(name, values, start))
		ok(t, err)
	}
	paths := []string{
		inventory.PathText("os", "family"), inventory.PathText("n"), inventory.PathText("we.ird", "0"),
		inventory.PathText("none"), inventory.PathText("os"),
	}
	for i := range 6 {
		paths = append(paths, inventory.PathText("n", int64(i)))
	}
	got, err := s.FactLeaves(ctx, []fleet.Certname{"c.example", "a.example", "b.example", "x.example"}, paths)
	ok(t, err)
	for _, leaves := range got {
		slices.SortFunc(leaves, func(a, b inventory.Leaf) int { return strings.Compare(a.Path, b.Path) })
	}
	facts, err := s.Facts(ctx, "a.example")
	ok(t, err)
	all, err := inventory.Flatten(facts.Values)
	ok(t, err)
	slices.SortFunc(all, func(a, b inventory.Leaf) int { return strings.Compare(a.Path, b.Path) })
	same(t, "leaves", map[fleet.Certname][]inventory.Leaf{
		"a.example": all,
		"b.example": {{Path: "n", Kind: inventory.String, Text: "x"}, {Path: "os.family", Kind: inventory.String, Text: "RedHat"}},
		"c.example": {{Path: "os", Kind: inventory.String, Text: "none"}},
	}, got)
	for _, c := range [][2]any{{[]fleet.Certname{}, paths}, {[]fleet.Certname{"a.example"}, []string(nil)}, {[]fleet.Certname{"a.example"}, []string{"none"}}} {
		names, _ := c[0].([]fleet.Certname)
		paths, _ := c[1].([]string)
		none, err := s.FactLeaves(ctx, names, paths)
		ok(t, err)
		same(t, "none", 0, len(none))
	}
	_, err = s.FactLeaves(ctx, make([]fleet.Certname, inventory.MaxNamed+1), paths)
	isKind(t, "too many", err, fault.Invalid)
}

func purge(t *testing.T, s Store) {
	ctx := t.Context()
	for _, name := range []fleet.Certname{"a.example", "b.example"} {
		_, _, err := s.SaveFacts(ctx, factSet(name, `{"a":1}`, start))
		ok(t, err)
		ok(t, s.SaveCatalog(ctx, catalog(name, string(name))))
		ok(t, s.SaveReport(ctx, report(name, 1)))
	}
	ok(t, s.PurgeNode(ctx, "a.example"))
	isKind(t, "purge again", s.PurgeNode(ctx, "a.example"), fault.NotFound)
	_, err := s.Node(ctx, "a.example")
	isKind(t, "node", err, fault.NotFound)
	_, err = s.Facts(ctx, "a.example")
	isKind(t, "facts", err, fault.NotFound)
	_, err = s.Catalog(ctx, "a.example")
	isKind(t, "catalog", err, fault.NotFound)
	_, err = s.Report(ctx, string(report("a.example", 1).ID))
	isKind(t, "report", err, fault.NotFound)
	readCatalog(t, s, catalog("b.example", "b.example"))
	// It may come back, and starts afresh.
	stored, changed, err := s.SaveFacts(ctx, factSet("a.example", `{"a":1}`, start))
	ok(t, err)
	same(t, "changed", []string{"a"}, changed)
	same(t, "seq", int64(1), stored.Seq)
}

// report makes the n-th report of a node.
func report(node fleet.Certname, n int) inventory.Report {
	at := start.Add(time.Duration(n) * time.Minute)
	return inventory.Report{
		ID: fleet.DigestOf(fmt.Appendf(nil, "%s %d", node, n)), Certname: node, Environment: "production",
		Origin: inventory.Origin{Producer: "tutti.example", ProducedAt: at.Add(-time.Millisecond)}, Type: "agent",
		Status: "changed", Noop: true, NoopPending: true, CorrectiveChange: true, Completed: true,
		PuppetVersion: "7.23.0", ReportFormat: 12, ConfigVersion: "v1", TransactionUUID: "tx", CatalogUUID: "cat",
		CodeID: "code", JobID: "7", CachedCatalog: "not_used", Server: "puppet.example:8140",
		StartedAt: at.Add(-time.Minute), EndedAt: at.Add(-time.Second), ReceivedAt: at,
		Metrics: json.RawMessage(`{"changes":{"name":"changes","label":"Changes","values":[["total","Total",1]]}}`),
		Logs: []inventory.RunLog{{
			Level: "notice", Message: "Applied", Source: "Puppet", Tags: []string{"notice"},
			Time: at.Add(-2 * time.Second), File: "site.pp", Line: 4,
		}},
		Resources: []inventory.ResourceStatus{
			{Type: "File", Title: "/same", Time: at, ContainmentPath: []string{"Stage[main]", "File[/same]"}, EvaluationTime: 0.25},
			{
				Type: "File", Title: "/motd", File: "site.pp", Line: 2, ContainmentPath: []string{"Stage[main]"},
				Changed: true, OutOfSync: true, CorrectiveChange: true, Time: at,
				Events: []inventory.Event{{
					Property: "content", Previous: json.RawMessage(`"{md5}1"`), Desired: json.RawMessage(`["x",1]`),
					Message: "changed", Name: "content_changed", Status: "success", Time: at, CorrectiveChange: true,
				}, {
					Property: "owner", Message: "hidden", Name: "owner_changed", Status: "noop", Time: at, Redacted: true,
				}},
			},
			{Type: "Exec", Title: "no", Time: at, Skipped: true, Failed: true, FailedToRestart: true},
		},
		Counts: inventory.Counts{Resources: 3, Changed: 1, Failed: 1, Skipped: 1, Unchanged: 1, Noop: 1, Corrective: 1},
	}
}

func reportRoundTrip(t *testing.T, s Store) {
	want := report("a.example", 1)
	ok(t, s.SaveReport(t.Context(), want))
	got, err := s.Report(t.Context(), string(want.ID))
	ok(t, err)
	same(t, "report", want, got)
	bare := inventory.Report{ID: fleet.DigestOf([]byte("bare")), Certname: "b.example", Status: "failed", ReceivedAt: start}
	ok(t, s.SaveReport(t.Context(), bare))
	got, err = s.Report(t.Context(), string(bare.ID))
	ok(t, err)
	bare.Type, bare.ProducedAt = "agent", start
	same(t, "bare report", bare, got)
}

func reportTwice(t *testing.T, s Store) {
	r := report("a.example", 1)
	ok(t, s.SaveReport(t.Context(), r))
	again := r
	again.ReceivedAt = r.ReceivedAt.Add(time.Hour)
	ok(t, s.SaveReport(t.Context(), again))
	list, err := s.Reports(t.Context(), inventory.ReportFilter{Page: inventory.Page{Limit: 10}})
	ok(t, err)
	r.Logs, r.Metrics, r.Resources = nil, nil, nil
	same(t, "reports", []inventory.Report{r}, list)
}

func reportPages(t *testing.T, s Store) {
	ctx := t.Context()
	want := map[string][]fleet.Digest{}
	for n := 6; n >= 0; n-- {
		node := fleet.Certname(fmt.Sprintf("n%d.example", n%2))
		r := report(node, n)
		if n%3 == 0 {
			r.Status = "failed"
			want["failed"] = append(want["failed"], r.ID)
		}
		if n%2 == 0 {
			want["n0"] = append(want["n0"], r.ID)
		}
		want["all"] = append(want["all"], r.ID)
		ok(t, s.SaveReport(ctx, r))
	}
	filters := map[string]inventory.ReportFilter{"all": {}, "failed": {Status: "failed"}, "n0": {Certname: "n0.example"}, "none": {Certname: "x", Status: "failed"}}
	for name, filter := range filters {
		var got []fleet.Digest
		filter.Page.Limit = 2
		for {
			list, err := s.Reports(ctx, filter)
			ok(t, err)
			if len(list) == 0 {
				break
			}
			for _, r := range list {
				got = append(got, r.ID)
			}
			filter.Page.After = string(got[len(got)-1])
		}
		same(t, name, want[name], got)
	}
	_, err := s.Reports(ctx, inventory.ReportFilter{Page: inventory.Page{Limit: 1, After: "nonsense"}})
	isKind(t, "after nonsense", err, fault.Invalid)
}

func reportPrefix(t *testing.T, s Store) {
	ctx := t.Context()
	a, b := report("a.example", 1), report("a.example", 2)
	b.ID = a.ID[:10] + fleet.DigestOf([]byte("tail"))[:54]
	ok(t, s.SaveReport(ctx, a))
	ok(t, s.SaveReport(ctx, b))
	got, err := s.Report(ctx, string(b.ID[:20]))
	ok(t, err)
	same(t, "by prefix", b, got)
	_, err = s.Report(ctx, string(a.ID[:6]))
	isKind(t, "ambiguous", err, fault.Conflict)
	for _, id := range []string{"", "abcde", "%%%%%%", "g00000", string(a.ID) + "0"} {
		_, err = s.Report(ctx, id)
		isKind(t, "id "+id, err, fault.Invalid)
	}
}

func reportLate(t *testing.T, s Store) {
	ok(t, s.SaveReport(t.Context(), report("a.example", 5)))
	late := report("a.example", 1)
	late.Status = "failed"
	ok(t, s.SaveReport(t.Context(), late))
	node, err := s.Node(t.Context(), "a.example")
	ok(t, err)
	same(t, "latest", report("a.example", 5).ID, node.LatestReport)
	same(t, "status", "changed", node.LatestStatus)
}

func prune(t *testing.T, s Store) {
	ctx := t.Context()
	for n := range 5 {
		ok(t, s.SaveReport(ctx, report("a.example", n)))
	}
	ok(t, s.SaveReport(ctx, report("old.example", 0)))
	count, err := s.PruneReports(ctx, start.Add(3*time.Minute))
	ok(t, err)
	same(t, "count", 3, count)
	list, err := s.Reports(ctx, inventory.ReportFilter{Page: inventory.Page{Limit: 10}})
	ok(t, err)
	var got []fleet.Digest
	for _, r := range list {
		got = append(got, r.ID)
	}
	same(t, "left", []fleet.Digest{report("a.example", 4).ID, report("a.example", 3).ID, report("old.example", 0).ID}, got)
	count, err = s.PruneReports(ctx, start.Add(time.Hour))
	ok(t, err)
	same(t, "count", 1, count)
}

func manyWriters(t *testing.T, s Store) {
	const writers, each = 12, 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			node := fleet.Certname(fmt.Sprintf("n%02d.example", w))
			for n := range each {
				_, _, err := s.SaveFacts(t.Context(), factSet(node, fmt.Sprintf(`{"n":%d,"shared":{"p%d":1}}`, n, n), start))
				if err == nil {
					err = s.SaveReport(t.Context(), report(node, n))
				}
				if err == nil {
					err = s.SaveCatalog(t.Context(), catalog(node, fmt.Sprint(n)))
				}
				if err != nil {
					t.Errorf("%s: %v", node, err)
				}
			}
		})
	}
	wg.Wait()
	nodes, err := s.Nodes(t.Context(), inventory.Page{Limit: 1000})
	ok(t, err)
	same(t, "nodes", writers, len(nodes))
	for _, n := range nodes {
		f, err := s.Facts(t.Context(), n.Certname)
		ok(t, err)
		same(t, "seq", int64(each), f.Seq)
		same(t, "latest", report(n.Certname, each-1).ID, n.LatestReport)
	}
}

func notFound(t *testing.T, s Store) {
	ctx := t.Context()
	_, err := s.Facts(ctx, "a.example")
	isKind(t, "facts", err, fault.NotFound)
	_, err = s.Catalog(ctx, "a.example")
	isKind(t, "catalog", err, fault.NotFound)
	_, err = s.Node(ctx, "a.example")
	isKind(t, "node", err, fault.NotFound)
	_, err = s.Report(ctx, "abcdef")
	isKind(t, "report", err, fault.NotFound)
	isKind(t, "purge", s.PurgeNode(ctx, "a.example"), fault.NotFound)
	ok(t, s.SaveReport(ctx, report("a.example", 1)))
	_, err = s.Facts(ctx, "a.example")
	isKind(t, "facts of a known node", err, fault.NotFound)
	_, err = s.Catalog(ctx, "a.example")
	isKind(t, "catalog of a known node", err, fault.NotFound)
}

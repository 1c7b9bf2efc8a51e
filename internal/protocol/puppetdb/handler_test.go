package puppetdb_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/protocol/puppetdb"
	"github.com/tutti-project/tutti/internal/store/sql"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// serve is a handler over a real store that knows two nodes.
func serve(t *testing.T) *puppetdb.Handler {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := sql.Open(t.Context(), sql.Config{Path: filepath.Join(t.TempDir(), "tutti.db")}, log)
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	for _, name := range []fleet.Certname{"db-1", "web-1"} {
		_, _, err := store.Facts.SaveFacts(t.Context(), inventory.FactSet{
			Certname: name, Environment: "production", Timestamp: noon, ReceivedAt: noon,
			Values: json.RawMessage(`{"kernel":"Linux","os":{"family":"Debian"},"uptime":5}`),
		})
		check(t, err)
	}
	check(t, store.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
		Certname: "web-1", Environment: "production", Digest: fleet.DigestOf([]byte("c")), CompiledAt: noon,
		Resources: []inventory.Resource{{Type: "File", Title: "/etc/motd", Parameters: json.RawMessage(`{"ensure":"present"}`)}},
		Edges:     []inventory.Edge{{Source: "Class[Main]", Target: "File[/etc/motd]", Relationship: "contains"}},
	}))
	check(t, store.Reports.SaveReport(t.Context(), inventory.Report{
		ID: fleet.Digest(reportHash), Certname: "web-1", Environment: "production", Status: "changed", ReceivedAt: noon, Origin: inventory.Origin{Producer: "puppet"},
		Metrics: json.RawMessage(`{"time":{"values":[["total","Total",1.5]]}}`),
		Logs:    []inventory.RunLog{{Level: "notice", Message: "hello", Time: noon}},
		Resources: []inventory.ResourceStatus{{
			Type: "File", Title: "/etc/motd", Time: noon, ContainmentPath: []string{"Main"},
			Events: []inventory.Event{{Property: "ensure", Status: "success", Desired: json.RawMessage(`"present"`), Time: noon}},
		}},
	}))
	return puppetdb.New(puppetdb.Config{
		Asker: store.Queries, Store: commands{store.Facts, store.Catalogs, store.Nodes, store.Reports}, Now: func() time.Time { return noon }, Log: log,
		MaxFactsBytes: 2 << 20, MaxCatalogBytes: 2 << 20, MaxReportBytes: 2 << 20,
	})
}

// commands is puppetdb.Store.
type commands struct {
	*sql.Facts
	*sql.Catalogs
	*sql.Nodes
	*sql.Reports
}

var reportHash = strings.Repeat("ab", 32)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, h http.Handler, path string, params ...string) *httptest.ResponseRecorder {
	t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		values.Set(params[i], params[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path+"?"+values.Encode(), nil))
	return w
}

// same compares JSON texts, or says that a text begins like the other.
func same(got, want string) bool {
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return got == want
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	h := serve(t)
	kernel := `{"certname":"web-1","environment":"production","name":"kernel","value":"Linux"}`
	for _, c := range []struct {
		path   string
		params []string
		status int
		want   string
	}{
		{"", []string{"query", `nodes[certname]{order by certname}`}, 200, `[{"certname":"db-1"},{"certname":"web-1"}]`},
		{"", []string{"query", `["from","nodes",["extract","certname",["=","certname","web-1"]]]`}, 200, `[{"certname":"web-1"}]`},
		{
			"",
			[]string{"query", `nodes[certname]{certname != "a"}`, "ast_only", "true"},
			200,
			`["from","nodes",["extract",["certname"],["not",["=","certname","a"]]]]`,
		},
		{"/nodes", []string{"query", `["extract","certname"]`, "order_by", `[{"field":"certname","order":"desc"}]`, "limit", "1"}, 200, `[{"certname":"web-1"}]`},
		{"/nodes/nope", nil, 404, `{"error":"No information is known about node nope"}`},
		{"/nodes/nope/facts", nil, 404, `{"error":"No information is known about node nope"}`},
		{"/nodes/web-1/facts/kernel", nil, 200, "[" + kernel + "]"},
		{"/facts/kernel/Linux", []string{"query", `["=","certname","web-1"]`}, 200, "[" + kernel + "]"},
		{"/facts/kernel/BSD", nil, 200, `[]`},
		{"/environments/production/facts", []string{"query", `["and",["=","name","kernel"],["=","certname","web-1"]]`}, 200, "[" + kernel + "]"},
		{"/environments/production", nil, 200, `{"name":"production"}`},
		{"/environments/nope", nil, 404, `{"error":"No information is known about environment nope"}`},
		{"/producers", nil, 200, `[{"name":"puppet"}]`},
		{"/producers/puppet/reports", []string{"query", `["extract","certname"]`}, 200, `[{"certname":"web-1"}]`},
		{"/fact-names", nil, 200, `["kernel","os","uptime"]`},
		{"/fact-names", []string{"query", `["~","name","^k"]`}, 200, `["kernel"]`},
		{"/fact-paths", []string{"query", `["~>","path",["o.*","fam"]]`}, 200, `[{"path":["os","family"],"type":"string","name":"os"}]`},
		{"/resources/File//etc/motd", []string{"query", `["extract","certname"]`}, 200, `[{"certname":"web-1"}]`},
		{"/nodes/web-1/resources/File", []string{"query", `["extract",["title","parameters"]]`}, 200, `[{"title":"/etc/motd","parameters":{"ensure":"present"}}]`},
		{
			"/catalogs/web-1/edges", nil, 200,
			`[{"certname":"web-1","relationship":"contains","source_type":"Class","source_title":"Main","target_type":"File","target_title":"/etc/motd"}]`,
		},
		{"/catalogs/nope", nil, 404, `{"error":"No information is known about catalog nope"}`},
		{"/factsets/web-1/facts", []string{"query", `["=","name","uptime"]`}, 200, `[{"certname":"web-1","environment":"production","name":"uptime","value":5}]`},
		{"/reports/" + reportHash + "/metrics", nil, 200, `[{"category":"time","name":"total","value":1.5}]`},
		{
			"/reports/" + reportHash + "/logs", nil, 200,
			`[{"file":null,"line":null,"level":"notice","message":"hello","source":"","tags":[],"time":"2026-03-01T12:00:00.000Z"}]`,
		},
		{"/reports/" + reportHash + "/events", []string{"query", `["extract","new_value"]`}, 200, `[{"new_value":"present"}]`},
		{"/reports/abc/events", nil, 404, `{"error":"No information is known about report abc"}`},
		{
			"/event-counts",
			[]string{"summarize_by", "resource", "counts_filter", `[">","successes",0]`},
			200,
			`[{"subject_type":"resource","subject":{"type":"File","title":"/etc/motd"},"failures":0,"successes":1,"noops":0,"skips":0}]`,
		},
		{
			"/aggregate-event-counts",
			[]string{"summarize_by", "certname", "query", `["=","status","failure"]`},
			200,
			`[{"summarize_by":"certname","failures":0,"successes":0,"noops":0,"skips":0,"total":0}]`,
		},
		{"/packages", nil, 200, `[]`},
		{"/package-inventory/web-1", nil, 200, `[]`},
		{"/nope", nil, 404, `{"error":"No information is known about path /pdb/query/v4/nope"}`},

		{"", nil, 400, "Missing required query parameter 'query'"},
		{"", []string{"query", "nodes"}, 400, "PQL parse error at line 1, column 6:\n\nnodes\n     ^\n\nExpected one of:\n\n[\n{\n"},
		{"/nodes", []string{"query", "nodes{}"}, 400, "Json parse error at line 1, column 1:\n\nnodes{}\n^\n\nExpected one of:\n\na number\na string\nan array\n\nHere a query is a JSON array; PQL is answered at /pdb/query/v4\n"},
		{"/nodes", []string{"query", `["="`}, 400, "Json parse error at line 1, column 5:\n\n[\"=\"\n    ^\n\nExpected one of:\n\n,\n]\n"},
		{"/nodes", []string{"foo", "1"}, 400, "Unsupported query parameter 'foo'"},
		{"/nodes", []string{"limit", "a"}, 400, "Illegal value 'a' for :limit; expected a positive non-zero integer."},
		{"/nodes", []string{"limit", "0"}, 400, "Illegal value '0' for :limit; expected a positive non-zero integer."},
		{"/nodes", []string{"offset", "-1"}, 400, "Illegal value '-1' for :offset; expected a non-negative integer."},
		{"/nodes", []string{"order_by", "foo"}, 400, "Illegal value 'foo' for :order_by; expected a JSON array of maps."},
		{
			"/nodes",
			[]string{"order_by", `[{"field":"certname","order":"up"}]`},
			400,
			"Illegal value '{:field \"certname\", :order \"up\"}' in :order_by; 'order' must be either 'asc' or 'desc'",
		},
		{
			"/edges",
			[]string{"query", `["extract","x"]`},
			400,
			"Can't extract unknown 'edges' field 'x'. Acceptable fields are 'certname', 'relationship', 'source_type', 'source_title', 'target_type', and 'target_title'",
		},
		{"/event-counts", nil, 400, "Missing required query parameter 'summarize_by'"},
		{"/event-counts", []string{"summarize_by", "foo"}, 400, "Unsupported value for 'summarize_by': 'foo'"},
	} {
		w := get(t, h, "/pdb/query/v4"+c.path, c.params...)
		if w.Code != c.status || !same(w.Body.String(), c.want) {
			t.Errorf("%s %q: %d\n got %s\nwant %s", c.path, c.params, w.Code, w.Body, c.want)
		}
	}
}

func TestTotals(t *testing.T) {
	t.Parallel()
	h := serve(t)
	w := get(t, h, "/pdb/query/v4/nodes", "limit", "1", "include_total", "true")
	if got := w.Header().Get("X-Records"); w.Code != 200 || got != "2" {
		t.Errorf("nodes: %d, %q", w.Code, got)
	}
	w = get(t, h, "/pdb/query/v4/event-counts", "summarize_by", "certname", "include_total", "true")
	if got := w.Header().Get("X-Records"); w.Code != 200 || got != "1" {
		t.Errorf("event counts: %d, %q", w.Code, got)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json;charset=utf-8" {
		t.Errorf("type %q", got)
	}
}

func TestPosts(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for body, want := range map[string]string{
		`{"query":"nodes[certname]{certname ~ \"^w\"}"}`:                                                           `[{"certname":"web-1"}]`,
		`{"query":["from","nodes",["extract","certname"]],"limit":1,"offset":1,"order_by":[{"field":"certname"}]}`: `[{"certname":"web-1"}]`,
		`{"query":"[\"from\",\"nodes\",[\"extract\",\"certname\",[\"=\",\"certname\",\"db-1\"]]]"}`:                `[{"certname":"db-1"}]`,
		`{"limit":1}`:                 "Missing required query parameter 'query'",
		`{"query":"nodes{}","foo":1}`: "Unsupported query parameter 'foo'",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pdb/query/v4", strings.NewReader(body)))
		if !same(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", body, w.Code, w.Body, want)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pdb/query/v4", strings.NewReader(strings.Repeat(" ", 3<<20))))
	if w.Code != 400 {
		t.Errorf("a large body: %d", w.Code)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for path, want := range map[string]string{
		"version":     `{"version":"7.12.1"}`,
		"server-time": `{"server_time":"2026-03-01T12:00:00.000Z"}`,
		"nope":        `{"error":"No information is known about path /pdb/meta/v1/nope"}`,
	} {
		if w := get(t, h, "/pdb/meta/v1/"+path); !same(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

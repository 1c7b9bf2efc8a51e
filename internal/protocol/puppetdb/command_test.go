package puppetdb_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/protocol/puppetdb"
)

const (
	factsCommand   = `{"certname":"new-1","environment":"testing","producer":"ps","producer_timestamp":"2026-03-01T11:00:00Z","values":{"kernel":"Linux"},"package_inventory":[["vim","9","apt"]]}`
	catalogCommand = `{"certname":"web-1","version":"v7","environment":"testing","transaction_uuid":null,"catalog_uuid":"c7","code_id":null,"job_id":"7","producer_timestamp":"2026-03-01T12:30:00Z","producer":"ps",
		"edges":[{"source":{"type":"Class","title":"Main"},"target":{"type":"Service","title":"s"},"relationship":"contains"}],
		"resources":[{"type":"Class","title":"Main","exported":false,"tags":[],"parameters":{}},{"type":"Service","title":"s","exported":true,"tags":["x"],"parameters":{"ensure":"running"}}]}`
	reportCommand = `{"certname":"web-1","environment":"testing","puppet_version":"8","report_format":12,"configuration_version":"v7","start_time":"2026-03-01T12:40:00Z","end_time":"2026-03-01T12:41:00Z",
		"producer_timestamp":"2026-03-01T12:42:00Z","producer":"ps","status":"unchanged","noop":false,"noop_pending":false,"metrics":[{"category":"time","name":"total","value":2}],"logs":[],
		"resources":[{"skipped":true,"timestamp":"2026-03-01T12:40:30Z","resource_type":"Exec","resource_title":"x","file":null,"line":null,"containment_path":[],"events":[]}]}`
)

func post(t *testing.T, h http.Handler, address, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write([]byte(text))
	check(t, err)
	check(t, z.Close())
	return out.String()
}

// accepted sends a command and expects that it is stored.
func accepted(t *testing.T, h http.Handler, address, body string, headers ...string) {
	t.Helper()
	w := post(t, h, address, body, headers...)
	var answer struct{ UUID string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK || len(answer.UUID) != 36 {
		t.Fatalf("%s: %d %s", address, w.Code, w.Body)
	}
}

// rows asks a query and compares its answer.
func rows(t *testing.T, h *puppetdb.Handler, query, want string) {
	t.Helper()
	if w := get(t, h, "/pdb/query/v4", "query", query); w.Code != http.StatusOK || !same(w.Body.String(), want) {
		t.Errorf("%s: %d\n got %s\nwant %s", query, w.Code, w.Body, want)
	}
}

const cmd = "/pdb/cmd/v1?command="

func TestCommandsAreStoredWhenAnswered(t *testing.T) {
	t.Parallel()
	h := serve(t)
	accepted(t, h, cmd+"replace_facts&version=5&certname=new-1&producer-timestamp=1&checksum=wrong", zipped(t, factsCommand), "Content-Encoding", "gzip",
		"Content-Type", "application/json; charset=utf-8")
	rows(t, h, `factsets[certname,environment,producer,producer_timestamp]{certname="new-1"}`,
		`[{"certname":"new-1","environment":"testing","producer":"ps","producer_timestamp":"2026-03-01T11:00:00.000Z"}]`)
	rows(t, h, `facts[name,value]{certname="new-1"}`, `[{"name":"kernel","value":"Linux"}]`)
	rows(t, h, `package_inventory[certname,package_name,version,provider]{}`, `[{"certname":"new-1","package_name":"vim","version":"9","provider":"apt"}]`)

	accepted(t, h, cmd+"replace_catalog&version=9&certname=web-1", catalogCommand)
	rows(t, h, `catalogs[version,environment,catalog_uuid,code_id,job_id,producer,producer_timestamp]{certname="web-1"}`,
		`[{"version":"v7","environment":"testing","catalog_uuid":"c7","code_id":null,"job_id":"7","producer":"ps","producer_timestamp":"2026-03-01T12:30:00.000Z"}]`)
	rows(t, h, `resources[type,title,exported,tags,parameters]{certname="web-1" and type="Service"}`,
		`[{"type":"Service","title":"s","exported":true,"tags":["x"],"parameters":{"ensure":"running"}}]`)
	rows(t, h, `edges[source_type,target_title,relationship]{certname="web-1"}`, `[{"source_type":"Class","target_title":"s","relationship":"contains"}]`)

	accepted(t, h, cmd+"replace_catalog_inputs&version=1&certname=web-1",
		`{"certname":"web-1","catalog_uuid":"c7","producer_timestamp":"2026-03-01T12:30:00Z","inputs":[["hiera","a::b"]]}`)

	accepted(t, h, "/pdb/cmd/v1", `{"command":"store report","version":8,"payload":`+reportCommand+`}`)
	rows(t, h, `reports[certname,type,producer,producer_timestamp,receive_time]{latest_report?=true}`,
		`[{"certname":"web-1","type":"agent","producer":"ps","producer_timestamp":"2026-03-01T12:42:00.000Z","receive_time":"2026-03-01T12:00:00.000Z"}]`)
	rows(t, h, `events[resource_title,status,timestamp]{latest_report?=true}`,
		`[{"resource_title":"x","status":"skipped","timestamp":"2026-03-01T12:40:30.000Z"}]`)
	rows(t, h, `["from","producers",["order_by",["name"]]]`, `[{"name":"ps"},{"name":"puppet"}]`)
}

func TestCatalogInputs(t *testing.T) {
	t.Parallel()
	h := serve(t)
	accepted(t, h, cmd+"replace_catalog_inputs&version=1&certname=web-1",
		`{"certname":"web-1","producer_timestamp":"2026-03-01T12:00:00.000Z","catalog_uuid":"c7","inputs":[["hiera","a"],["hiera","b"],["lookup","x"]]}`)
	const head = `{"certname":"web-1","producer_timestamp":"2026-03-01T12:00:00.000Z","catalog_uuid":"c7",`
	for path, want := range map[string]string{
		"/catalog-inputs":         `[` + head + `"inputs":[["hiera","a"],["hiera","b"],["lookup","x"]]}]`,
		"/catalog-input-contents": `[` + head + `"type":"hiera","name":"a"},` + head + `"type":"hiera","name":"b"},` + head + `"type":"lookup","name":"x"}]`,
	} {
		if w := get(t, h, "/pdb/query/v4"+path); w.Code != 200 || !same(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	rows(t, h, `["from","nodes",["extract","certname",["subquery","catalog_input_contents",["=","name","x"]]]]`, `[{"certname":"web-1"}]`)
	rows(t, h, `["from","catalog_input_contents",["extract",["type",["function","count"]],["group_by","type"]],["order_by",["type"]]]`,
		`[{"type":"hiera","count":2},{"type":"lookup","count":1}]`)
}

func TestCommandsThatComeLateChangeNothing(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for _, stamp := range []string{"12:00:00", "11:00:00"} {
		facts := strings.NewReplacer("11:00:00", stamp, "Linux", "at "+stamp).Replace(factsCommand)
		accepted(t, h, cmd+"replace_facts&version=5&certname=new-1", facts)
		catalog := strings.NewReplacer("12:30:00", stamp, "v7", "at "+stamp).Replace(catalogCommand)
		accepted(t, h, cmd+"replace_catalog&version=9&certname=web-1", catalog)
	}
	rows(t, h, `facts[value]{certname="new-1"}`, `[{"value":"at 12:00:00"}]`)
	rows(t, h, `catalogs[version]{certname="web-1"}`, `[{"version":"at 12:00:00"}]`)
	future := strings.NewReplacer("11:00:00", "23:00:00", "Linux", "ahead").Replace(factsCommand)
	accepted(t, h, cmd+"replace_facts&version=5&certname=new-1", future)
	rows(t, h, `factsets[producer_timestamp]{certname="new-1"}`, `[{"producer_timestamp":"2026-03-01T12:00:00.000Z"}]`) // it is noon
}

func TestCommandsAboutNodes(t *testing.T) {
	t.Parallel()
	h := serve(t)
	accepted(t, h, cmd+"deactivate_node&version=3&certname=web-1", `{"certname":"web-1","producer_timestamp":"2026-03-01T12:10:00Z"}`)
	accepted(t, h, cmd+"deactivate_node&version=2&certname=db-1", `"db-1"`)
	rows(t, h, `nodes[certname]{}`, `[]`)
	rows(t, h, `nodes[certname,deactivated]{node_state="inactive" order by certname}`,
		`[{"certname":"db-1","deactivated":"2026-03-01T12:00:00.000Z"},{"certname":"web-1","deactivated":"2026-03-01T12:10:00.000Z"}]`)
	accepted(t, h, cmd+"replace_catalog&version=9&certname=web-1", catalogCommand)
	rows(t, h, `nodes[certname]{}`, `[{"certname":"web-1"}]`)
	accepted(t, h, cmd+"configure_expiration&version=1&certname=web-1", `{"certname":"web-1","expire":{"facts":false}}`)
}

func TestCommandsThatAreWaitedFor(t *testing.T) {
	t.Parallel()
	h := serve(t)
	w := post(t, h, cmd+"replace_facts&version=5&certname=new-1&secondsToWaitForCompletion=2.5", factsCommand)
	var answer map[string]any
	check(t, json.Unmarshal(w.Body.Bytes(), &answer))
	delete(answer, "uuid")
	if text, _ := json.Marshal(answer); w.Code != 200 || string(text) != `{"processed":true,"timed_out":false}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestCommandsAreRefused(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for _, c := range []struct {
		address, body string
		headers       []string
		status        int
		says          string
	}{
		{cmd + "replace_facts&version=5&certname=new-1", `{"certname":"new-1"}`, nil, 400, `no \"values\" object`},
		{cmd + "replace_catalog_inputs&version=1&certname=web-1", `{"certname":"web-1"}`, nil, 400, `no \"inputs\"`},
		{cmd + "replace_facts&version=5&certname=old-1", factsCommand, nil, 400, `for certname \"old-1\", but its payload is of \"new-1\"`},
		{cmd + "replace_facts&version=3&certname=new-1", factsCommand, nil, 400, "The minimum supported version is 4."},
		{cmd + "replace_facts&version=6&certname=new-1", factsCommand, nil, 400, "The newest is 5."},
		{cmd + "replace_facts&version=x&certname=new-1", factsCommand, nil, 400, "Version must be a valid integer."},
		{cmd + "replace_facts&version=5", factsCommand, nil, 400, "missing required parameters: certname"},
		{cmd + "replace_facts&version=5&certname=", factsCommand, nil, 400, "Certname must be a non-empty string."},
		{cmd + "replace_facts&version=5&certname=new-1&foo=1", factsCommand, nil, 400, "invalid parameters: foo"},
		{cmd + "replace_facts&version=5&certname=new-1&secondsToWaitForCompletion=soon", factsCommand, nil, 400, "number of seconds"},
		{cmd + "drop_tables&version=5&certname=new-1", factsCommand, nil, 400, "Command must be one of: configure expiration, "},
		{cmd + "replace_facts&version=5&certname=new-1", factsCommand, []string{"Content-Encoding", "gzip"}, 400, "well-formed gzip"},
		{cmd + "replace_facts&version=5&certname=new-1", zipped(t, factsCommand)[:60], []string{"Content-Encoding", "gzip"}, 400, "cut off"},
		{cmd + "replace_facts&version=5&certname=new-1", factsCommand, []string{"Content-Encoding", "br"}, 415, "br not supported"},
		{cmd + "replace_facts&version=5&certname=new-1", factsCommand, []string{"Content-Type", "text/plain"}, 415, "content type text/plain not supported"},
		{cmd + "replace_facts&version=5&certname=new-1", zipped(t, factsCommand+strings.Repeat(" ", 3<<20)), []string{"Content-Encoding", "gzip"}, 413, "exceeds"},
		{cmd + "configure_expiration&version=1&certname=web-1", strings.Repeat(" ", 70_000), nil, 413, "exceeds"},
		{"/pdb/cmd/v1", `{"command":"replace facts","version":5}`, nil, 400, "required keys: command, version, payload"},
		{"/pdb/cmd/v1", `nonsense`, nil, 400, "required keys"},
		{"/pdb/cmd/v1", `{"command":"configure expiration","version":1,"payload":"` + strings.Repeat("x", 70_000) + `"}`, nil, 413, "exceeds"},
	} {
		w := post(t, h, c.address, c.body, c.headers...)
		var answer struct{ Error string }
		err := json.Unmarshal(w.Body.Bytes(), &answer)
		if (err == nil) == (c.status == http.StatusUnsupportedMediaType) || w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %q: %d %s, want %d and %q", c.address, c.headers, w.Code, w.Body, c.status, c.says)
		}
	}
	if w := get(t, h, "/pdb/cmd/v1"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("GET: %d %s", w.Code, w.Body)
	}
	rows(t, h, `nodes[certname]{node_state="any" order by certname}`, `[{"certname":"db-1"},{"certname":"web-1"}]`)
}

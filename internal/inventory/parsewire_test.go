package inventory

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const wireFacts = `{"certname":"a.example","environment":"production","producer":"ps.example","producer_timestamp":"2026-03-01T12:00:00.123Z",
"values":{"os":{"family":"Debian"},"kernel":"Linux"},"package_inventory":[["vim","2:9","apt"],["bash","5","apt"]]}`

const wireCatalogBody = `{"certname":"a.example","version":"1700000000","environment":"production","transaction_uuid":"tx","catalog_uuid":"cat","code_id":null,"job_id":"7",
"producer_timestamp":"2026-03-01T12:00:00.123Z","producer":"ps.example","edges":[
{"source":{"type":"Class","title":"Main"},"target":{"type":"File","title":"/a"},"relationship":"contains"},
{"source":{"type":"File","title":"/a"},"target":{"type":"Service","title":"s"},"relationship":"notifies"}],
"resources":[{"type":"Class","title":"Main","aliases":[],"exported":false,"tags":["class"],"parameters":{}},
{"type":"File","title":"/a","aliases":["x"],"exported":false,"file":"/x.pp","line":2,"tags":["file"],"parameters":{"notify":"Service[s]","mode":"0644"}},
{"type":"Service","title":"s","exported":true,"tags":[],"parameters":{"ensure":"running"}}]}`

const wireReportBody = `{"certname":"a.example","environment":"production","puppet_version":"7.23.0","report_format":12,"configuration_version":"1700000000",
"start_time":"2026-03-01T12:00:00Z","end_time":"2026-03-01T12:01:00Z","producer_timestamp":"2026-03-01T12:01:01.5Z","producer":"ps.example",
"transaction_uuid":"tx","catalog_uuid":"cat","code_id":null,"job_id":null,"cached_catalog_status":"not_used","status":"changed","noop":false,"noop_pending":true,
"corrective_change":true,"metrics":[{"category":"time","name":"config_retrieval","value":0.5},{"category":"changes","name":"total","value":3},{"category":"time","name":"total","value":2}],
"logs":[{"file":null,"line":null,"level":"notice","message":"hi","source":"Puppet","tags":["notice"],"time":"2026-03-01T12:00:09Z"}],
"resources":[
{"skipped":false,"timestamp":"2026-03-01T12:00:05Z","resource_type":"File","resource_title":"/a","file":"/x.pp","line":3,"containment_path":["Stage[main]","File[/a]"],"corrective_change":true,
 "events":[{"status":"success","timestamp":"2026-03-01T12:00:05Z","property":"mode","name":"mode_changed","new_value":"0644","old_value":["0600"],"message":"mode changed","corrective_change":true},
 {"status":"noop","timestamp":"2026-03-01T12:00:05Z","property":"owner","new_value":null,"old_value":null,"message":null,"corrective_change":false}]},
{"skipped":true,"timestamp":"2026-03-01T12:00:05Z","resource_type":"Exec","resource_title":"x","file":null,"line":null,"containment_path":[],"corrective_change":null,"events":[]},
{"skipped":false,"timestamp":"2026-03-01T12:00:05Z","resource_type":"Service","resource_title":"s","file":null,"line":null,"containment_path":[],"corrective_change":null,
 "events":[{"status":"failure","timestamp":"2026-03-01T12:00:05Z","property":"ensure","new_value":"running","old_value":"stopped","message":"no","corrective_change":null}]}]}`

var wireOrigin = Origin{Producer: "ps.example", ProducedAt: time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC)}

func TestParseWireFacts(t *testing.T) {
	t.Parallel()
	got, err := ParseWireFacts(wireFacts)
	if err != nil {
		t.Fatal(err)
	}
	want := FactSet{
		Origin: wireOrigin, Certname: "a.example", Environment: "production", Values: json.RawMessage(`{"kernel":"Linux","os":{"family":"Debian"}}`),
		Packages: []Package{{"vim", "2:9", "apt"}, {"bash", "5", "apt"}}, Arrangement: "1,0", Timestamp: wireOrigin.ProducedAt, Digest: got.Digest,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Digest == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseWireCatalog(t *testing.T) {
	t.Parallel()
	got, err := ParseWireCatalog(wireCatalogBody)
	if err != nil {
		t.Fatal(err)
	}
	want := Catalog{
		Origin: wireOrigin, Certname: "a.example", Environment: "production", Digest: got.Digest, ConfigVersion: "1700000000",
		UUID: "cat", Transaction: "tx", JobID: "7", Received: true,
		Resources: []Resource{
			{Type: "Class", Title: "Main", Tags: []string{"class"}, Parameters: json.RawMessage(`{}`)},
			{Type: "File", Title: "/a", File: "/x.pp", Line: 2, Tags: []string{"file"}, Parameters: json.RawMessage(`{"notify":"Service[s]","mode":"0644"}`)},
			{Type: "Service", Title: "s", Exported: true, Parameters: json.RawMessage(`{"ensure":"running"}`)},
		},
		Edges: []Edge{{"Class[Main]", "File[/a]", "contains"}, {"File[/a]", "Service[s]", "notifies"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || got.Digest == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := ParseWireCatalog(strings.NewReplacer(`"cat"`, `"dog"`, "1700000000", "1700000001").Replace(wireCatalogBody))
	if err != nil || again.Digest != got.Digest {
		t.Errorf("equal content has digest %s, not %s: %v", again.Digest, got.Digest, err)
	}
	other, err := ParseWireCatalog(strings.Replace(wireCatalogBody, "0644", "0600", 1))
	if err != nil || other.Digest == got.Digest {
		t.Errorf("other content has the same digest: %v", err)
	}
}

func TestParseWireReport(t *testing.T) {
	t.Parallel()
	got, err := ParseWireReport(wireReportBody)
	if err != nil {
		t.Fatal(err)
	}
	five := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)
	want := Report{
		Origin: Origin{"ps.example", five.Add(56500 * time.Millisecond)}, ID: got.ID, Certname: "a.example", Environment: "production",
		Type: "agent", Status: "changed",
		NoopPending: true, CorrectiveChange: true, Completed: true, PuppetVersion: "7.23.0", ReportFormat: 12, ConfigVersion: "1700000000", TransactionUUID: "tx",
		CatalogUUID: "cat", CachedCatalog: "not_used", StartedAt: five.Add(-5 * time.Second), EndedAt: five.Add(55 * time.Second),
		Metrics: json.RawMessage(`{"changes":{"label":"Changes","name":"changes","values":[["total","Total",3]]},` +
			`"time":{"label":"Time","name":"time","values":[["config_retrieval","Config retrieval",0.5],["total","Total",2]]}}`),
		Logs: []RunLog{{Level: "notice", Message: "hi", Source: "Puppet", Tags: []string{"notice"}, Time: five.Add(4 * time.Second)}},
		Resources: []ResourceStatus{
			{
				Type: "File", Title: "/a", File: "/x.pp", Line: 3, ContainmentPath: []string{"Stage[main]", "File[/a]"}, Time: five,
				Changed: true, OutOfSync: true, CorrectiveChange: true,
				Events: []Event{
					{Property: "mode", Name: "mode_changed", Previous: json.RawMessage(`["0600"]`), Desired: json.RawMessage(`"0644"`), Message: "mode changed", Status: "success", Time: five, CorrectiveChange: true},
					{Property: "owner", Previous: json.RawMessage("null"), Desired: json.RawMessage("null"), Status: "noop", Time: five},
				},
			},
			{Type: "Exec", Title: "x", Time: five, Skipped: true},
			{
				Type: "Service", Title: "s", Time: five, Failed: true, OutOfSync: true,
				Events: []Event{
					{Property: "ensure", Previous: json.RawMessage(`"stopped"`), Desired: json.RawMessage(`"running"`), Message: "no", Status: "failure", Time: five},
				},
			},
		},
		Counts: Counts{Resources: 3, Failed: 1, Skipped: 1, Noop: 1, Corrective: 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || got.ID == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := ParseWireReport(strings.Replace(wireReportBody, "12:01:01.5Z", "12:09:01.5Z", 1))
	if err != nil || again.ID != got.ID {
		t.Errorf("the same report, sent later, has the ID %s, not %s: %v", again.ID, got.ID, err)
	}
}

// Puppet Servers send only the resources that something happened to; a metric counts all.
func TestParseWireReportCountsAllResources(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]Counts{
		"50":    {Resources: 50, Unchanged: 47, Failed: 1, Skipped: 1, Noop: 1, Corrective: 1},
		"2":     {Resources: 3, Failed: 1, Skipped: 1, Noop: 1, Corrective: 1},
		"-4e99": {Resources: 3, Failed: 1, Skipped: 1, Noop: 1, Corrective: 1},
	} {
		metric := `"metrics":[{"category":"resources","name":"total","value":` + value + `},`
		got, err := ParseWireReport(strings.Replace(wireReportBody, `"metrics":[`, metric, 1))
		if err != nil || got.Counts != want || !strings.Contains(string(got.Metrics), value) {
			t.Errorf("%s: %+v, want %+v: %v\n%s", value, got.Counts, want, err, got.Metrics)
		}
	}
}

// TestParseWireReport5 has the flat events of the oldest version.
func TestParseWireReport5(t *testing.T) {
	t.Parallel()
	got, err := ParseWireReport(`{"certname":"a","environment":"production","puppet_version":"4","report_format":5,"configuration_version":"1","transaction_uuid":"tx",
	"start_time":"2026-03-01T12:00:00Z","end_time":"2026-03-01T12:01:00Z","producer_timestamp":"2026-03-01T12:01:01Z","status":null,"noop":null,"metrics":null,"logs":null,
	"resource_events":[
	{"resource_type":"File","resource_title":"/a","file":"/x","line":1,"containment_path":["Main"],"status":"success","property":"mode","timestamp":"2026-03-01T12:00:05Z","new_value":1,"old_value":2,"message":"m"},
	{"resource_type":"Exec","resource_title":"e","file":null,"line":null,"containment_path":null,"status":"skipped","property":null,"timestamp":"2026-03-01T12:00:06Z","new_value":null,"old_value":null,"message":null},
	{"resource_type":"File","resource_title":"/a","file":"/x","line":1,"containment_path":["Main"],"status":"failure","property":"owner","timestamp":"2026-03-01T12:00:07Z","new_value":1,"old_value":2,"message":"n"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	five := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)
	want := []ResourceStatus{
		{
			Type: "File", Title: "/a", File: "/x", Line: 1, ContainmentPath: []string{"Main"}, Time: five, Changed: true, Failed: true, OutOfSync: true,
			Events: []Event{
				{Property: "mode", Previous: json.RawMessage("2"), Desired: json.RawMessage("1"), Message: "m", Status: "success", Time: five},
				{Property: "owner", Previous: json.RawMessage("2"), Desired: json.RawMessage("1"), Message: "n", Status: "failure", Time: five.Add(2 * time.Second)},
			},
		},
		{Type: "Exec", Title: "e", Time: five.Add(time.Second), Skipped: true},
	}
	if diff := cmp.Diff(want, got.Resources, cmpopts.EquateEmpty()); diff != "" || got.CatalogUUID != "tx" {
		t.Errorf("catalog_uuid %q, resources (-want +got):\n%s", got.CatalogUUID, diff)
	}
}

func TestParseWireNodes(t *testing.T) {
	t.Parallel()
	at := wireOrigin.ProducedAt
	for _, c := range []struct {
		body    string
		version int
		want    NodeWord
	}{
		{`{"certname":"a.example","producer_timestamp":"2026-03-01T12:00:00.123Z"}`, 3, NodeWord{Certname: "a.example", At: at}},
		{`{"certname":"a.example"}`, 3, NodeWord{Certname: "a.example"}},
		{`"a.example"`, 2, NodeWord{Certname: "a.example"}},
		{`"\"a.example\""`, 1, NodeWord{Certname: "a.example"}},
	} {
		got, err := ParseWireDeactivate(c.body, c.version)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.body, err, diff)
		}
	}
	got, err := ParseWireExpiration(`{"certname":"a.example","expire":{"facts":false},"producer_timestamp":"2026-03-01T12:00:00.123Z"}`)
	if diff := cmp.Diff(NodeWord{Certname: "a.example", At: at}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = ParseWireExpiration(`{"certname":"a.example","expire":{"facts":true}}`)
	if err != nil || !got.Expire {
		t.Errorf("%+v, %v", got, err)
	}
}

// wireParsers read each command's payload.
func wireParsers() map[string]func(body string) error {
	return map[string]func(body string) error{
		"facts":      func(body string) error { _, err := ParseWireFacts(body); return err },
		"catalog":    func(body string) error { _, err := ParseWireCatalog(body); return err },
		"report":     func(body string) error { _, err := ParseWireReport(body); return err },
		"deactivate": func(body string) error { _, err := ParseWireDeactivate(body, 3); return err },
		"named":      func(body string) error { _, err := ParseWireDeactivate(body, 1); return err },
		"expiration": func(body string) error { _, err := ParseWireExpiration(body); return err },
	}
}

func TestParseWireRefuses(t *testing.T) {
	t.Parallel()
	parse := wireParsers()
	whole := map[string]string{"facts": wireFacts, "catalog": wireCatalogBody, "report": wireReportBody}
	for name, body := range whole {
		for cut := range len(body) {
			if err := parse[name](body[:cut]); err == nil {
				t.Fatalf("%s cut off at %d were accepted", name, cut)
			}
		}
	}
	for _, c := range []struct{ what, old, new, says string }{
		{"facts", `"certname":"a.example",`, "", `"certname"`},
		{"facts", `"a.example"`, `"A B"`, `"certname"`},
		{"facts", `"2026-03-01T12:00:00.123Z"`, `"noon"`, `"producer_timestamp"`},
		{"facts", `"producer_timestamp":"2026-03-01T12:00:00.123Z",`, "", `"producer_timestamp"`},
		{"facts", `"values":{`, `"values":[],"x":{`, "object"},
		{"facts", `"values":{`, `"x":{`, `"values"`},
		{"facts", `["bash","5","apt"]`, `["bash","5"]`, "package"},
		{"facts", `["bash","5","apt"]`, `"bash"`, "package"},
		{"facts", `"bash"`, `"` + strings.Repeat("x", 700) + `"`, "more than"},
		{"facts", `"production"`, `"../x"`, `"environment"`},
		{"catalog", `"relationship":"notifies"`, `"relationship":"likes"`, `"relationship"`},
		{"catalog", `"title":"s"},"relationship"`, `"title":"t"},"relationship"`, "Service[t]"},
		{"catalog", `"resources":[`, `"resources":null,"x":[`, `"resources"`},
		{"catalog", `"type":"Service","title":"s","exported"`, `"title":"s","exported"`, "type"},
		{"catalog", `"version":"1700000000"`, `"version":17`, `"version"`},
		{"catalog", `"producer_timestamp":"2026-03-01T12:00:00.123Z",`, "", `"producer_timestamp"`},
		{"report", `"status":"changed"`, `"status":"fine"`, `"status"`},
		{"report", `"status":"changed"`, `"status":"changed","type":"agents"`, `"type"`},
		{"report", `"end_time":"2026-03-01T12:01:00Z",`, "", `"end_time"`},
		{"report", `"value":3`, `"value":"3"`, "a value"},
		{"report", `"value":3`, `"value":null`, `"value"`},
		{"report", `"resource_type":"Exec",`, "", "resource_type"},
		{"report", `"resources":[`, `"resources":{},"x":[`, `"resources"`},
	} {
		body := strings.Replace(whole[c.what], c.old, c.new, 1)
		if body == whole[c.what] {
			t.Errorf("%s: %s is not there", c.what, c.old)
		}
		invalid(t, c.what+" "+c.new, parse[c.what](body), c.says)
	}
	for what, bodies := range map[string][]string{
		"deactivate": {`{}`, `"a"`, `{"certname":1}`, `{"certname":"a"}x`, `[]`, ``, `{"certname":"` + strings.Repeat("a", 70_000) + `"}`},
		"named":      {`"a"`, `"\"a\" "b`, `{}`, `"\"a\"\"b\""`},
		"expiration": {
			`{"certname":"a"}`, `{"certname":"a","expire":{}}`, `{"certname":"a","expire":{"facts":1}}`, `{"certname":"a","expire":{"x":true}}`,
			`{"expire":{"facts":true}}`,
		},
	} {
		for _, body := range bodies {
			invalid(t, what+" "+body[:min(len(body), 40)], parse[what](body), "")
		}
	}
}

// FuzzWire: no payload makes a parser panic, and what is accepted can be stored and
// read again.
func FuzzWire(f *testing.F) {
	for _, seed := range []string{wireFacts, wireCatalogBody, wireReportBody, `"\"a\""`, `{"certname":"a","expire":{"facts":true}}`} {
		f.Add(seed)
	}
	parse := wireParsers()
	f.Fuzz(func(t *testing.T, body string) {
		for _, name := range []string{"deactivate", "named", "expiration"} {
			_ = parse[name](body) // it must only not panic
		}
		if set, err := ParseWireFacts(body); err == nil && !json.Valid(set.Values) {
			t.Fatalf("facts are %q", set.Values)
		}
		if c, err := ParseWireCatalog(body); err == nil {
			for _, r := range c.Resources {
				if r.Parameters != nil && !json.Valid(r.Parameters) {
					t.Fatalf("parameters of %s are %q", r.Type, r.Parameters)
				}
			}
		}
		if r, err := ParseWireReport(body); err == nil {
			var back Report
			if err := ParseDocument(AppendDocument(nil, &r), &back); err != nil {
				t.Fatal(err)
			}
			if len(back.Resources) != len(r.Resources) || len(back.Logs) != len(r.Logs) || (back.Metrics == nil) != (r.Metrics == nil) {
				t.Fatalf("%+v became %+v", r, back)
			}
		}
	})
}

package inventory

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
)

func invalid(t *testing.T, what string, err error, says string) {
	t.Helper()
	if err == nil || fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), says) {
		t.Errorf("%s: error %v, want an Invalid one that says %q", what, err, says)
	}
}

const reportBody = `{"host":"a.example","time":"2026-03-01T12:00:00.123456789+00:00","configuration_version":1700000000,"transaction_uuid":"tx",
"report_format":12,"puppet_version":"8.11.0","status":"changed","transaction_completed":true,"noop":false,"noop_pending":false,"environment":"production",
"corrective_change":true,"server_used":"p:8140","catalog_uuid":"cat","code_id":null,"job_id":null,"cached_catalog_status":"not_used","new_key":{"x":[1]},
"logs":[{"level":"notice","message":"hi","source":"Puppet","tags":["notice"],"time":"2026-03-01T12:00:09+00:00","file":null,"line":null}],
"metrics":{"changes":{"name":"changes","label":"Changes","values":[["total","Total",1]]}},
"resource_statuses":{
"File[/a]":{"title":"/a","file":"/x.pp","line":3,"resource":"File[/a]","resource_type":"File","provider_used":"posix","containment_path":["Stage[main]","File[/a]"],
 "evaluation_time":0.25,"tags":["file"],"time":"2026-03-01T12:00:05+00:00","failed":false,"failed_to_restart":false,"changed":true,"out_of_sync":true,"skipped":false,
 "change_count":1,"out_of_sync_count":1,"corrective_change":true,"events":[{"audited":false,"property":"mode","previous_value":"0600","desired_value":["0644",1],
 "historical_value":null,"message":"mode changed","name":"mode_changed","status":"success","time":"2026-03-01T12:00:05+00:00","redacted":null,"corrective_change":true}]},
"Notify[n]":{"title":"n","resource_type":"Notify","changed":false,"skipped":true,"time":"2026-03-01T12:00:05+00:00","events":[]},
"Exec[x]":{"title":"x","resource_type":"Exec","failed":true,"time":"2026-03-01T12:00:05+00:00","events":[{"status":"noop","property":"returns","time":"2026-03-01T12:00:05+00:00"}]},
"User[u]":{"title":"u","resource_type":"User","time":"2026-03-01T12:00:05+00:00"}}}`

func TestParseReport(t *testing.T) {
	t.Parallel()
	r, err := ParseReport([]byte(reportBody))
	if err != nil {
		t.Fatal(err)
	}
	five := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)
	want := Report{
		ID: r.ID, Certname: "a.example", Environment: "production", Status: "changed", CorrectiveChange: true, Completed: true,
		PuppetVersion: "8.11.0", ReportFormat: 12, ConfigVersion: "1700000000", TransactionUUID: "tx", CatalogUUID: "cat",
		CachedCatalog: "not_used", Server: "p:8140",
		StartedAt: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), EndedAt: five.Add(4 * time.Second),
		Metrics: json.RawMessage(`{"changes":{"label":"Changes","name":"changes","values":[["total","Total",1]]}}`),
		Logs:    []RunLog{{Level: "notice", Message: "hi", Source: "Puppet", Tags: []string{"notice"}, Time: five.Add(4 * time.Second)}},
		Resources: []ResourceStatus{
			{
				Type: "File", Title: "/a", File: "/x.pp", Line: 3, ContainmentPath: []string{"Stage[main]", "File[/a]"}, EvaluationTime: 0.25,
				Changed: true, OutOfSync: true, CorrectiveChange: true, Time: five,
				Events: []Event{{
					Property: "mode", Previous: json.RawMessage(`"0600"`), Desired: json.RawMessage(`["0644",1]`),
					Message: "mode changed", Name: "mode_changed", Status: "success", Time: five, CorrectiveChange: true,
				}},
			},
			{Type: "Notify", Title: "n", Skipped: true, Time: five},
			{Type: "Exec", Title: "x", Failed: true, Time: five, Events: []Event{{Property: "returns", Status: "noop", Time: five}}},
			{Type: "User", Title: "u", Time: five},
		},
		Counts: Counts{Resources: 4, Changed: 1, Failed: 1, Skipped: 1, Unchanged: 1, Noop: 1, Corrective: 1},
	}
	if diff := cmp.Diff(want, r, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	spaced, err := ParseReport([]byte(strings.ReplaceAll(strings.Replace(reportBody, `"host":"a.example",`, "", 1), "\n",
		"  ")[:len(strings.ReplaceAll(strings.Replace(reportBody, `"host":"a.example",`, "", 1), "\n", "  "))-1] + `,"host":"a.example"}`))
	if err != nil || spaced.ID != r.ID || r.ID == "" {
		t.Errorf("the same report in another form has ID %s (%v), want %s", spaced.ID, err, r.ID)
	}
	other, err := ParseReport([]byte(strings.Replace(reportBody, "mode changed", "mode became", 1)))
	if err != nil || other.ID == r.ID {
		t.Errorf("another report has the same ID, %v", err)
	}
}

func TestReportDocumentRoundTrip(t *testing.T) {
	t.Parallel()
	r, err := ParseReport([]byte(strings.Replace(reportBody, "mode changed", `\u0007\t\"<>\u2028ä`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := ParseDocument(AppendDocument(nil, &r), &got); err != nil {
		t.Fatal(err)
	}
	want := Report{Metrics: r.Metrics, Logs: r.Logs, Resources: r.Resources}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseReportRefuses(t *testing.T) {
	t.Parallel()
	for cut := range len(reportBody) {
		if _, err := ParseReport([]byte(reportBody[:cut])); fault.Of(err) != fault.Invalid || err == nil {
			t.Fatalf("a report cut off at %d: %v", cut, err)
		}
	}
	for name, c := range map[string]struct{ old, new, says string }{
		"no host":      {`"host":"a.example",`, "", `"host"`},
		"odd status":   {`"status":"changed"`, `"status":"fine"`, `"status"`},
		"no time":      {`"time":"2026-03-01T12:00:00.123456789+00:00",`, "", `"time"`},
		"odd flag":     {`"noop":false`, `"noop":"no"`, `"noop"`},
		"odd line":     {`"line":3`, `"line":3.5`, `"line"`},
		"odd log time": {`"time":"2026-03-01T12:00:09+00:00"`, `"time":"noon"`, `"time"`},
		"logs missing": {`"logs":[`, `"logs":7,"x":[`, `"logs"`},
		"environment":  {`"production"`, `"../etc"`, `"environment"`},
		"no type":      {`"resource_type":"User",`, "", ""},
	} {
		body := strings.Replace(reportBody, c.old, c.new, 1)
		_, err := ParseReport([]byte(body))
		if name == "no type" { // then the reference says it
			if err != nil {
				t.Error(err)
			}
			continue
		}
		invalid(t, name, err, c.says)
	}
}

func TestParseCatalog(t *testing.T) {
	t.Parallel()
	resources, edges, err := ParseCatalog([]byte(`{"name":"a","edges":[{"source":"Stage[main]","target":"Class[Main]"},{"source":{"type":"Class","title":"Main"},"target":{"type":"File","title":"/a"}}],
	"resources":[{"type":"Stage","title":"main"},{"type":"Class","title":"Main","tags":["class"]},
	{"type":"File","title":"/a","file":"/x.pp","line":2,"exported":false,"parameters":{"content":"secret","mode":"0644","before":"Exec[run it]","notify":["Service[s]",["Class[main]"]]},"sensitive_parameters":["content"]},
	{"type":"Exec","title":"run it","parameters":{"environment":{"__ptype" : "Sensitive","__pvalue":"x"},"list":[{"__ptype":"Sensitive","__pvalue":"y"}],"require":"File[/a/]","subscribe":"Service[web]"}},
	{"type":"Service","title":"s","exported":true,"parameters":{"name":"web","require":"Nothing[here]"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	wantResources := []Resource{
		{Type: "Stage", Title: "main"},
		{Type: "Class", Title: "Main", Tags: []string{"class"}},
		{Type: "File", Title: "/a", File: "/x.pp", Line: 2, Parameters: json.RawMessage(`{"mode":"0644","before":"Exec[run it]","notify":["Service[s]",["Class[main]"]]}`)},
		{Type: "Exec", Title: "run it", Parameters: json.RawMessage(`{"require":"File[/a/]","subscribe":"Service[web]"}`)},
		{Type: "Service", Title: "s", Exported: true, Parameters: json.RawMessage(`{"name":"web","require":"Nothing[here]"}`)},
	}
	if diff := cmp.Diff(wantResources, resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	wantEdges := []Edge{
		{"Stage[main]", "Class[Main]", "contains"},
		{"Class[Main]", "File[/a]", "contains"},
		{"File[/a]", "Exec[run it]", "before"},
		{"File[/a]", "Service[s]", "notifies"},
		{"File[/a]", "Class[Main]", "notifies"},
		{"File[/a]", "Exec[run it]", "required-by"},
		{"Service[s]", "Exec[run it]", "subscription-of"},
	}
	if diff := cmp.Diff(wantEdges, edges); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	for name, doc := range map[string]string{
		"cut off": `{"resources":[{"type":"A"`, "no type": `{"resources":[{"title":"x"}]}`, "half an edge": `{"edges":[{"source":"A[b]"}]}`, "a list": `[]`,
	} {
		_, _, err := ParseCatalog([]byte(doc))
		invalid(t, name, err, "")
	}
}

// FuzzReport: no report makes the parser panic, and what it accepts can be stored
// and read again.
func FuzzReport(f *testing.F) {
	f.Add([]byte(reportBody))
	f.Add([]byte(`{"host":"a","time":"2026-03-01T12:00:00Z","status":"failed","resource_statuses":[{"resource_type":"A","title":"b"}],"metrics":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseReport(body)
		if err != nil {
			return
		}
		var back Report
		if err := ParseDocument(AppendDocument(nil, &r), &back); err != nil {
			t.Fatal(err)
		}
		if len(back.Resources) != len(r.Resources) || len(back.Logs) != len(r.Logs) {
			t.Fatalf("%d resources and %d logs became %d and %d", len(r.Resources), len(r.Logs), len(back.Resources), len(back.Logs))
		}
	})
}

// FuzzCatalog: no catalog makes the parser panic; parameters stay JSON.
func FuzzCatalog(f *testing.F) {
	f.Add([]byte(`{"resources":[{"type":"File","title":"/a","parameters":{"mode":"0644","require":["A[b]"]},"sensitive_parameters":["x"]}],"edges":[{"source":"A[b]","target":"C[d]"}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		resources, _, err := ParseCatalog(doc)
		if err != nil {
			return
		}
		for _, r := range resources {
			if r.Parameters != nil && !json.Valid(r.Parameters) {
				t.Fatalf("parameters of %s are %q", r.Type, r.Parameters)
			}
		}
	})
}

// Who collects a resource sees the order of the names within its values, whatever characters are in them.
func TestParameterValuesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"z":1,"a":{"y":2,"b":3}}`:                   `{"z":1,"a":{"y":2,"b":3}}`,
		`{ "z" : "two words", "a" : {"y":"\u00e9"} }`: `{"z":"two words","a":{"y":"é"}}`,
		`[{"z":"a b","a":1}, true]`:                   `[{"z":"a b","a":1},true]`,
		`{"z":"a b","a":1,"z":2}`:                     `{"a":1,"z":2}`,
	} {
		resources, _, err := ParseCatalog([]byte(`{"resources":[{"type":"Notify","title":"n","exported":true,"parameters":{"message":` + given + `}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(resources[0].Parameters); got != `{"message":`+want+`}` {
			t.Errorf("%s is kept as %s", given, got)
		}
	}
}

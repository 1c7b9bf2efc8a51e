package inventory

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func invalid(t *testing.T, what string, err error, says string) {
	t.Helper()
	if err == nil || fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), says) {
		t.Errorf("%s: error %v, want an Invalid one that says %q", what, err, says)
	}
}

func TestParseFacts(t *testing.T) {
	t.Parallel()
	f, err := ParseFacts([]byte(`{"name":"a.example","timestamp":"2026-03-01T13:00:00.5+01:00","expiration":"x",
		"values":{"b":{"z":1.50,"a":9007199254740993},"a":"\u00e4\/","b":{"z":[ ],"a":9007199254740993}},"more":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := FactSet{
		Certname: "a.example", Timestamp: time.Date(2026, 3, 1, 12, 0, 0, 5e8, time.UTC),
		Values: json.RawMessage(`{"a":"ä/","b":{"a":9007199254740993,"z":[]}}`),
	}
	want.Digest = fleet.DigestOf(want.Values)
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseFactsLatin1(t *testing.T) {
	t.Parallel()
	f, err := ParseFacts([]byte("{\"name\":\"a\",\"values\":{\"utf8\":\"\xc3\xa4\",\"raw\":\"\xe4\xff\"}}"))
	if err != nil || string(f.Values) != `{"raw":"äÿ","utf8":"ä"}` {
		t.Errorf("got %s, %v", f.Values, err)
	}
}

func TestParseFactsRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, says string }{
		"nothing":         {"", "was it cut off"},
		"cut off":         {`{"name":"a","values":{"x":[1,`, "was it cut off"},
		"no values":       {`{"name":"a"}`, `"values"`},
		"values of list":  {`{"name":"a","values":[]}`, "object of facts"},
		"no name":         {`{"values":{}}`, `"name"`},
		"a path as name":  {`{"name":"../a","values":{}}`, `"name"`},
		"number as name":  {`{"name":7,"values":{}}`, `"name"`},
		"bad time":        {`{"name":"a","values":{},"timestamp":"yesterday"}`, "ISO 8601"},
		"trailing":        {`{"name":"a","values":{}}{}`, "after its end"},
		"NaN":             {`{"name":"a","values":{"x":NaN}}`, "a value should be"},
		"leading zero":    {`{"name":"a","values":{"x":01}}`, "comma"},
		"control":         {"{\"name\":\"a\",\"values\":{\"x\":\"\n\"}}", "control character"},
		"bad escape":      {`{"name":"a","values":{"x":"\q"}}`, "escape"},
		"trailing comma":  {`{"name":"a","values":{"x":1,}}`, "another value"},
		"deep":            {`{"name":"a","values":{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`, "deeper"},
		"long key":        {`{"name":"a","values":{"` + strings.Repeat("k", 3000) + `":1}}`, "path"},
		"too many values": {`{"name":"a","values":{"x":[` + strings.Repeat("1,", MaxFactLeaves) + `1]}}`, "more than"},
		"too large":       {`{"name":"a","values":{"x":"` + strings.Repeat("x", MaxFactBytes) + `"}}`, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseFacts([]byte(c.body))
			invalid(t, name, err, c.says)
		})
	}
}

func TestFlatten(t *testing.T) {
	t.Parallel()
	got, err := Flatten([]byte(`{"os":{"name":"Debian","a.b":{"":true}},"list":[1,[2.0,null],{},[]],"ssh::key":"ä\"","x y":-1e3}`))
	want := []Leaf{
		{"os.name", String, "Debian"},
		{`os."a.b".""`, Boolean, "true"},
		{"list[0]", Integer, "1"},
		{"list[1][0]", Float, "2.0"},
		{"list[1][1]", Null, "null"},
		{"list[2]", EmptyObject, "{}"},
		{"list[3]", EmptyArray, "[]"},
		{"ssh::key", String, `ä"`},
		{`"x y"`, Float, "-1e3"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for path, name := range map[string]string{"os.name": "os", "list[1][0]": "list", `"x y"`: "x y", `"a\"b".c`: `a"b`, "kernel": "kernel"} {
		if got := (Leaf{Path: path}).Name(); got != name {
			t.Errorf("name of %s is %q, want %q", path, got, name)
		}
	}
}

// TestDiffIsExact applies a difference to the old leaves and must get the new.
func TestDiffIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawFacts(t, "before"), drawFacts(t, "after")
		changes, err := Diff(before, after)
		if err != nil {
			t.Fatal(err)
		}
		got := leafMap(t, before)
		for _, c := range changes {
			if old, ok := got[c.Path]; c.Removed && old != c.Leaf || !c.Removed && ok && old == c.Leaf {
				t.Errorf("%+v does not differ from %+v", c, old)
			}
			if delete(got, c.Path); !c.Removed {
				got[c.Path] = c.Leaf
			}
		}
		if diff := cmp.Diff(leafMap(t, after), got); diff != "" {
			t.Errorf("from %s to %s: %+v\n%s", before, after, changes, diff)
		}
	})
}

func leafMap(t *rapid.T, values json.RawMessage) map[string]Leaf {
	leaves, err := Flatten(values)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]Leaf{}
	for _, l := range leaves {
		m[l.Path] = l
	}
	return m
}

func drawFacts(t *rapid.T, label string) json.RawMessage {
	text, err := json.Marshal(drawMap(t, label, 3))
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := CanonicalFacts(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func drawMap(t *rapid.T, label string, depth int) map[string]any {
	m := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, label) {
		m[rapid.SampledFrom([]string{"a", "b", "a.b", "", "[0]"}).Draw(t, label)] = drawAny(t, label, depth-1)
	}
	return m
}

func drawAny(t *rapid.T, label string, depth int) any {
	switch n := rapid.IntRange(0, 6).Draw(t, label); {
	case n == 0 && depth > 0:
		return drawMap(t, label, depth)
	case n == 1 && depth > 0:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, label) {
			list = append(list, drawAny(t, label, depth-1))
		}
		return list
	default:
		return rapid.SampledFrom([]any{1, 2, 1.5, "1", "x", true, nil}).Draw(t, label)
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
	spaced, err := ParseReport([]byte(strings.ReplaceAll(strings.Replace(reportBody, `"host":"a.example",`, "", 1), "\n", "  ")[:len(strings.ReplaceAll(strings.Replace(reportBody, `"host":"a.example",`, "", 1), "\n", "  "))-1] + `,"host":"a.example"}`))
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
	for name, doc := range map[string]string{"cut off": `{"resources":[{"type":"A"`, "no type": `{"resources":[{"title":"x"}]}`, "half an edge": `{"edges":[{"source":"A[b]"}]}`, "a list": `[]`} {
		_, _, err := ParseCatalog([]byte(doc))
		invalid(t, name, err, "")
	}
}

// FuzzCanonical: what the scanner accepts is JSON, means the same as before, and
// its canonical form is a fixed point.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,-0.5e+3,null,true,"\ud83d\ude00\u0000"],"b":{"c":{}}}`, `{"a":1,"a":2}`, "{\"\xe4\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, _, err := CanonicalFacts(body)
		if err != nil {
			return
		}
		if !json.Valid([]byte(validText(string(body)))) || !json.Valid(out) {
			t.Fatalf("accepted %q as %q", body, out)
		}
		again, _, err := CanonicalFacts(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q became %q, %v", out, again, err)
		}
		if !bytes.ContainsAny(body, `\`) && !reflect.DeepEqual(decode(t, []byte(validText(string(body)))), decode(t, out)) {
			t.Fatalf("%q changed its meaning: %q", body, out)
		}
		leaves, err := Flatten(out)
		if err != nil {
			t.Fatal(err)
		}
		changes, err := Diff(nil, out)
		if err != nil || len(changes) != len(leaves) {
			t.Fatalf("%d leaves, %d changes from nothing, %v", len(leaves), len(changes), err)
		}
	})
}

func decode(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
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

func TestPlainBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\x1f \"!#\\[]\x7f\x80\xa2\xdc\xff"))), 0, 40).Draw(t, "text"))
		for _, high := range []uint64{0, topBits} {
			want := 0
			for want < len(text) && text[want] >= ' ' && text[want] != '"' && text[want] != '\\' && (high == 0 || text[want] < 0x80) {
				want++
			}
			if got := plainBytes(text, high); got != want {
				t.Errorf("%q, %x: %d, want %d", text, high, got, want)
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

package pxp_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// parser is a parser of parameters, or of a message's data.
type parser func(jsontext.Value) (any, error)

func as[P any](parse func(jsontext.Value) (P, error)) parser {
	return func(text jsontext.Value) (any, error) { return parse(text) }
}

func parsers() map[string]parser {
	return map[string]parser{
		"request": as(pxp.ParseRequest), "non-blocking request": as(pxp.ParseNonBlockingRequest), "provisional": as(pxp.ParseProvisional),
		"response": as(pxp.ParseResponse), "failure": as(pxp.ParseFailure),
		"command": as(pxp.ParseCommand), "task": as(pxp.ParseTask), "script": as(pxp.ParseScript), "files": as(pxp.ParseFiles), "puppet": as(pxp.ParsePuppet),
		"pointer": as(pxp.ParseCatalogPointer), "changed": as(pxp.ParseCatalogChange),
		"echo": as(pxp.ParseEcho), "ping": as(pxp.ParsePing), "status": as(pxp.ParseStatus), "cancel": as(pxp.ParseCancel),
		"events": as(pxp.ParseRunEvents), "events taken": as(pxp.ParseRunEventsTaken),
		"told": as(pxp.ParseAgentTold), "list": as(pxp.ParseList), "describe": as(pxp.ParseDescribe), "list results": as(pxp.ParseListResults),
		"describe results": as(pxp.ParseDescribeResults),
	}
}

const digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParsers(t *testing.T) {
	t.Parallel()
	file := func(name string) string {
		return `{"filename":"` + name + `","sha256":"` + digest + `","uri":{"path":"/f","params":{}}}`
	}
	for _, c := range []struct {
		parser, text string
		want         string // what an error says; empty: there is none
	}{
		{"request", "", "no data"},
		{"request", "[]", "invalid data"},
		{"request", `{"transaction_id":"t","module":"m","action":"a"}`, ""},
		{"request", `{"transaction_id":"t","module":"m","action":"a","params":{},"unknown":1}`, ""},
		{"request", `{"transaction_id":"t","module":"m","action":"a","params":[]}`, "field params"},
		{"request", `{"transaction_id":"t","module":"","action":"a"}`, "field module"},
		{"request", `{"transaction_id":"t","module":"m"}`, "field action"},
		{"request", `{"transaction_id":"../t","module":"m","action":"a"}`, "field transaction_id"},
		{"request", `{"transaction_id":"` + strings.Repeat("t", 65) + `","module":"m","action":"a"}`, "field transaction_id"},
		{"request", `{"transaction_id":1,"module":"m","action":"a"}`, "invalid data"},
		{"non-blocking request", `{"transaction_id":"t","module":"m","action":"a"}`, "field notify_outcome"},
		{"non-blocking request", `{"transaction_id":"t","module":"m","action":"a","notify_outcome":"yes"}`, "invalid data"},
		{"non-blocking request", `{"transaction_id":"t","module":"m","action":"a","notify_outcome":false}`, ""},
		{"told", `{"modules":"` + digest + `","version":"1","os":"linux","arch":"amd64","more":1}`, ""},
		{"told", `{"modules":"x","version":"1","os":"linux","arch":"amd64"}`, "field modules"},
		{"told", `{"modules":"` + digest + `","version":"1","os":"linux"}`, "field arch: it is missing"},
		{"told", `{"modules":"` + digest + `","version":"1\n","os":"linux","arch":"amd64"}`, "field version"},
		{"told", `{"modules":"` + digest + `","version":"1","os":"` + strings.Repeat("x", 101) + `","arch":"amd64"}`, "field os"},
		{"describe", `{"name":"echo"}`, ""},
		{"describe", `{}`, "field name"},
		{"list results", `{"modules":[]}`, ""},
		{"list results", `{"modules":{}}`, "field modules"},
		{"describe results", `{"metadata":{}}`, ""},
		{"describe results", `{}`, "field metadata"},
		{"provisional", `{"transaction_id":"t"}`, ""},
		{"provisional", `{}`, "field transaction_id"},
		{"response", `{"transaction_id":"t","results":null}`, ""},
		{"response", `{"transaction_id":"t"}`, "field results"},
		{"failure", `{"transaction_id":"t","id":"i","description":"d"}`, ""},
		{"failure", `{"transaction_id":""}`, "field transaction_id"},
		{"command", `{"command":"date"}`, ""},
		{"command", `{}`, "field command"},
		{"command", `{"command":1}`, "invalid data"},
		{"command", `{"command":"a\u0000b"}`, "field command: it holds a byte 0"},
		{"command", `{"command":"` + strings.Repeat("x", pxp.MaxCommandBytes+1) + `"}`, "field command: it has"},
		{"task", `{"task":"m::t","input":{},"files":[` + file("init.sh") + `]}`, ""},
		{"task", `{"task":"m::t","input":{},"files":[` + file("m/lib/a.rb") + `],"metadata":{"files":["m/lib/"],"implementations":[{"name":"a"}]}}`, ""},
		{"task", `{"input":{},"files":[` + file("init.sh") + `]}`, "field task"},
		{"task", `{"task":"m::t","input":{},"files":[]}`, "field files"},
		{"task", `{"task":"m::t","files":[` + file("init.sh") + `]}`, "field input"},
		{"task", `{"task":"m::t","input":[],"files":[` + file("init.sh") + `]}`, "field input"},
		{"task", `{"task":"m::t","input":{},"files":[` + file("../init.sh") + `]}`, "field files: filename"},
		{"task", `{"task":"m::t","input":{},"files":[` + file("/init.sh") + `]}`, "field files: filename"},
		{"task", `{"task":"m::t","input":{},"files":[` + file(`a\\b`) + `]}`, "field files: filename"},
		{"task", `{"task":"m::t","input":{},"files":[` + file(`c:a`) + `]}`, "field files: filename"},
		{"task", `{"task":"m::t","input":{},"files":[` + file("a//b") + `]}`, "field files: filename"},
		{"task", `{"task":"m::t","input":{},"files":[` + strings.ToUpper(file("A")) + `]}`, "filename"},
		{"task", `{"task":"m::t","input":{},"files":[` + strings.Replace(file("a"), digest, strings.ToUpper(digest), 1) + `]}`, "lower case"},
		{"task", `{"task":"m::t","input":{},"files":[` + strings.Replace(file("a"), `"/f"`, `"f"`, 1) + `]}`, "begin with a slash"},
		{"task", `{"task":"m::t","input":{},"files":[` + strings.Replace(file("a"), `{}`, `{"environment":1}`, 1) + `]}`, "invalid data"},
		{"script", `{"script":` + file("a.sh") + `,"arguments":["a",""]}`, ""},
		{"script", `{"script":` + file("a.sh") + `}`, "field arguments"},
		{"script", `{"arguments":[]}`, "field script"},
		{"script", `{"script":` + file("a.sh") + `,"arguments":[1]}`, "invalid data"},
		{"script", `{"script":` + file("a.sh") + `,"arguments":["a\u0000"]}`, "byte 0"},
		{"files", `{}`, ""},
		{"files", `{"files":[{"kind":"directory","destination":"/d","link_source":"","uri":{"path":"","params":{}},"sha256":""}]}`, ""},
		{"files", `{"files":[{"kind":"file","destination":"/d","uri":{"path":"/x","params":{}},"sha256":"` + digest + `"}]}`, ""},
		{"files", `{"files":[{"kind":"file","destination":"/d","uri":{"path":"/x"},"sha256":"1"}]}`, "sha256"},
		{"files", `{"files":[{"kind":"symlink","destination":"/d"}]}`, "link_source"},
		{"files", `{"files":[{"kind":"pipe","destination":"/d"}]}`, "kind"},
		{"files", `{"files":[{"kind":"directory"}]}`, "destination"},
		{"puppet", `{"flags":["--noop"],"env":[],"job":"1"}`, ""},
		{"puppet", `{}`, "field flags"},
		{"puppet", `{"flags":"--noop"}`, "invalid data"},
		{"pointer", `{"catalog":"` + digest + `","environment":"production","uuid":"u"}`, ""},
		{"pointer", `{"catalog":"../../etc/passwd","environment":"production","uuid":"u"}`, "field catalog"},
		{"pointer", `{"catalog":"` + digest + `","environment":"a/b","uuid":"u"}`, "field environment"},
		{"pointer", `{"catalog":"` + digest + `","environment":"production"}`, "field uuid"},
		{"pointer", `{"catalog":"` + digest + `","environment":"production","uuid":"u","generation":-1}`, "field generation"},
		{"pointer", `{"catalog":"` + digest + `","environment":"production","uuid":"` + strings.Repeat("x", 1000) + `"}`, "field uuid: it has"},
		{"changed", `{"catalog":"` + digest + `","environment":"production","uuid":"u","apply":"now"}`, ""},
		{"changed", `{"catalog":"` + digest + `","environment":"production","uuid":"u","apply":"never"}`, "field apply"},
		{"echo", `{"argument":""}`, ""},
		{"echo", `{}`, "field argument"},
		{"ping", `{}`, ""},
		{"ping", `{"sender_timestamp":"x"}`, ""},
		{"ping", `{"sender_timestamp":1}`, "invalid data"},
		{"status", `{"transaction_id":"any/text"}`, ""},
		{"status", `{}`, "field transaction_id"},
		{"cancel", `{"transaction_id":"t","reason":"lunch"}`, ""},
		{"cancel", `{"transaction_id":"a/b"}`, "field transaction_id"},
		{"cancel", `{"transaction_id":"t","reason":"` + strings.Repeat("x", 201) + `"}`, "field reason"},
	} {
		_, err := parsers()[c.parser](jsontext.Value(c.text))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %.200s: %v", c.parser, c.text, err)
		case c.want != "" && (fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), c.want)):
			t.Errorf("%s %.200s: got %v, want an error that says %q", c.parser, c.text, err, c.want)
		}
	}
}

func TestTooMany(t *testing.T) {
	t.Parallel()
	list := func(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	for parser, text := range map[string]string{
		"files":  `{"files":[` + list(`{"kind":"directory","destination":"/d"}`, pxp.MaxFiles+1) + `]}`,
		"puppet": `{"flags":[` + list(`"--noop"`, pxp.MaxArguments+1) + `]}`,
	} {
		if _, err := parsers()[parser](jsontext.Value(text)); !strings.Contains(fault.Detail(err), "at most") {
			t.Errorf("%s: %v", parser, err)
		}
	}
}

// Errors are for the requester and for logs: they show no value.
func TestErrorsShowNoValues(t *testing.T) {
	t.Parallel()
	for parser, text := range map[string]string{
		"task":    `{"task":"m::t","input":"hunter2","files":[{"filename":"a","sha256":"` + digest + `","uri":{"path":"/f","params":{}}}]}`,
		"command": `{"command":["hunter2"]}`,
		"script":  `{"arguments":["hunter2"]}`,
		"request": `{"transaction_id":"hunter2!","module":"m","action":"a"}`,
	} {
		if _, err := parsers()[parser](jsontext.Value(text)); err == nil || strings.Contains(fault.Detail(err), "hunter2") {
			t.Errorf("%s: %v", parser, err)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte(`{"transaction_id":"t","module":"m","action":"a","params":{},"notify_outcome":true}`))
	f.Add([]byte(`{"task":"m::t","input":{},"files":[{"filename":"a","sha256":"` + digest + `","uri":{"path":"/f","params":{}}}]}`))
	f.Add([]byte(`{"script":{"filename":"../a"},"arguments":[""]}`))
	f.Add([]byte(`{"files":[{"kind":"symlink","destination":"/d","link_source":"x"}]}`))
	f.Add([]byte(`{"run":"u","events":[{"n":1,"kind":"begin","at":"2026-11-22T01:02:03.4Z","noop":true},{"n":2,"kind":"missing","missing":3,"at":"2026-11-22T01:02:03.4Z"}]}`))
	f.Add([]byte(`{"run":"u","events":[{"n":5,"kind":"resource","at":"2026-11-22T01:02:03.4+01:00","old":["a"],"new":null,"containment":["x"]}]}`))
	f.Add([]byte(`{"run":"u","last":7}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, parse := range parsers() {
			value, err := parse(text)
			if err != nil {
				if fault.Of(err) != fault.Invalid {
					t.Errorf("%s: an error of kind %s", name, fault.Of(err))
				}
				continue
			}
			if name == "response" || name == "request" || name == "non-blocking request" {
				continue // they hold JSON as it came
			}
			if _, err := parse(pxp.Data(value)); err != nil {
				t.Errorf("%s: what was read is not read again: %v", name, err)
			}
		}
	})
}

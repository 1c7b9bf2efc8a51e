package action_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const disk = `{"description": "Disk checks", "version": "1.0.0", "actions": [
  {"name": "usage", "read_only": true, "display": "always", "timeout": 20,
   "input": {"type": "object", "additionalProperties": false, "required": ["mount"], "properties": {
      "mount": {"type": "string", "title": "Mount", "pattern": "^/", "maxLength": 20, "x-order": 1},
      "limit": {"type": "integer", "minimum": 1, "default": 90, "x-order": 2},
      "unit": {"type": "string", "enum": ["B", "MB"]},
      "tags": {"type": "array", "items": {"type": "string"}},
      "deep": {"type": "boolean"}, "factor": {"type": "number"}, "any": {}}},
   "results": {"type": "object", "properties": {"percent": {"type": "integer"}, "full": {"type": "boolean"}}},
   "aggregates": [{"function": "average", "field": "percent", "format": "mean %.1f"}]},
  {"name": "clean", "input": {"type": "object"}, "results": {"type": "object"}}]}`

func module(t *testing.T) action.Module {
	t.Helper()
	m, err := action.Parse("disk", []byte(disk))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseAndText(t *testing.T) {
	t.Parallel()
	m := module(t)
	again, err := action.Parse("disk", m.Text())
	if err != nil || string(again.Text()) != string(m.Text()) || again.Digest() != m.Digest() {
		t.Errorf("%s\n%s\n%v", m.Text(), again.Text(), err)
	}
	if _, found := m.Find("usage"); !found || m.Actions[0].Name != "clean" {
		t.Errorf("actions %v are not sorted by name", m.Actions)
	}
	usage, _ := m.Find("usage")
	if usage.Limit().Seconds() != 20 || usage.Shown() != action.Always || !usage.ReadOnly {
		t.Errorf("usage: %v", usage)
	}
	clean, _ := m.Find("clean")
	if clean.Limit().Seconds() != 60 || clean.Shown() != action.Failed || clean.ReadOnly {
		t.Errorf("clean: %v", clean)
	}
}

func TestBadDescriptions(t *testing.T) {
	t.Parallel()
	one := func(a string) string { return `{"description":"x","actions":[` + a + `]}` }
	for text, want := range map[string]string{
		`{`:                   "not JSON",
		`{"actions":[]}`:      "no description",
		`{"description":"x"}`: "no actions",
		`{"description":"x","name":"other","actions":[]}`:                                                              "that of a module",
		one(`{"name":"a b","input":{},"results":{}}`):                                                                  "is no name",
		one(`{"name":"a","input":{}}`):                                                                                 "no schema for input and results",
		one(`{"name":"a","input":{"type":1},"results":{}}`):                                                            "schema for the input of a",
		one(`{"name":"a","input":{},"results":{"$ref":"http://x.test/"}}`):                                             "outside",
		one(`{"name":"a","input":{},"results":{},"display":"never"}`):                                                  "the rules are ok, failed and always",
		one(`{"name":"a","input":{},"results":{},"timeout":-1}`):                                                       "timeout",
		one(`{"name":"a","input":{},"results":{}},{"name":"a","input":{},"results":{}}`):                               "twice",
		one(`{"name":"a","input":{},"results":{},"aggregates":[{"function":"max","field":"x"}]}`):                      "is no function",
		one(`{"name":"a","input":{},"results":{"properties":{"y":{}}},"aggregates":[{"function":"sum","field":"x"}]}`): "no field",
		strings.Repeat(" ", 1<<20+1):                                                                                   "more than 1048576 bytes",
	} {
		_, err := action.Parse("disk", []byte(text))
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	usage, _ := module(t).Find("usage")
	schema, err := action.Compile(usage.Input)
	if err != nil {
		t.Fatal(err)
	}
	type texts = map[string]string
	for _, c := range []struct {
		texts  texts
		values map[string]json.RawMessage
		want   string // the input, or what the error says
		code   action.Code
	}{
		{texts{"mount": "/var"}, nil, `{"limit":90,"mount":"/var"}`, 0},
		{
			texts{"mount": "/var", "limit": "5", "deep": "true", "factor": "1.5", "tags": "a,b"},
			nil,
			`{"deep":true,"factor":1.5,"limit":5,"mount":"/var","tags":["a","b"]}`, 0,
		},
		{texts{"mount": "/1", "any": `{"a":1}`, "tags": `["x"]`}, nil, `{"any":{"a":1},"limit":90,"mount":"/1","tags":["x"]}`, 0},
		{texts{"mount": "/1", "any": "text"}, nil, `{"any":"text","limit":90,"mount":"/1"}`, 0},
		{nil, map[string]json.RawMessage{"mount": json.RawMessage(`"/var"`)}, `{"limit":90,"mount":"/var"}`, 0},
		{texts{"mount": "/"}, map[string]json.RawMessage{"mount": json.RawMessage(`"/var"`)}, "field mount: it is given as text and as JSON", action.InvalidData},
		{nil, nil, "field mount: it is missing", action.MissingData},
		{texts{"mount": "var"}, nil, "field mount: it must match the regular expression ^/", action.InvalidData},
		{texts{"mount": "/" + strings.Repeat("x", 30)}, nil, "field mount: it has 31 characters, at most 20 are allowed", action.InvalidData},
		{texts{"mount": "/", "limit": "many"}, nil, "field limit: it must be an integer", action.InvalidData},
		{texts{"mount": "/", "limit": "0"}, nil, "field limit: it must be at least 1", action.InvalidData},
		{texts{"mount": "/", "deep": "yes"}, nil, "field deep: it must be true or false", action.InvalidData},
		{texts{"mount": "/", "unit": "GB"}, nil, "field unit: it must be one of B, MB", action.InvalidData},
		{texts{"mount": "/", "mont": "x"}, nil, "field mont: the action takes no such field", action.InvalidData},
	} {
		input, err := schema.Arguments(c.texts, c.values)
		if err == nil && string(input) != c.want || err != nil && (!strings.Contains(fault.Detail(err), c.want) || action.CodeOf(err) != c.code) {
			t.Errorf("%v %s: %s, %v (code %d), want %s", c.texts, c.values, input, err, action.CodeOf(err), c.want)
		}
	}
}

func TestFieldsAreInOrder(t *testing.T) {
	t.Parallel()
	usage, _ := module(t).Find("usage")
	schema, _ := action.Compile(usage.Input)
	var names []string
	for _, f := range schema.Fields() {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"mount", "limit", "any", "deep", "factor", "tags", "unit"}, names); diff != "" {
		t.Error(diff)
	}
	mount, _ := schema.Field("mount")
	if mount.Title != "Mount" || !mount.Required || mount.MaxLength != 20 || mount.Type != "string" {
		t.Errorf("mount: %+v", mount)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format   string
		fit, not []string
	}{
		{"shellsafe", []string{"", "a b", "x=1"}, []string{"a;b", "`id`", "$x", "a|b", "a&b", "a>b", "a<b"}},
		{"service_name", []string{"ssh", "getty@tty1.service", "a:b"}, []string{"", "a b", "a;b", "a/b"}},
		{"package_name", []string{"libc6:amd64", "g++", "a/b"}, []string{"", "a b", "a;b"}},
		{"puppet_variable", []string{"a_1"}, []string{"", "a-b", "a b"}},
		{"puppet_tags", []string{"a", "a,b", "a::b,c_1"}, []string{"", "a,", "a b", "a:b"}},
		{"puppet_server_address", []string{"puppet", "p.example.test:8140", "[::1]:8140", "10.0.0.1", "[::1]"}, []string{"", "a b", "p:0", "p:x"}},
		{"puppet_resource", []string{"File[/etc/hosts]", "Foo::Bar[x y]"}, []string{"", "File", "File[]", "File[a]b"}},
		{"ipaddress", []string{"::1", "10.0.0.1"}, []string{"", "10.0.0.256", "host"}},
		{"ipv4", []string{"10.0.0.1"}, []string{"", "::1"}},
		{"ipv6", []string{"::1"}, []string{"", "10.0.0.1"}},
		{"regular_expression", []string{"", "a.*"}, []string{"("}},
		{"duration_go", []string{"90s"}, []string{"", "90"}},
	} {
		schema, err := action.Compile(jsontext.Value(`{"type":"string","format":"` + c.format + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range c.fit {
			if err := schema.Check([]byte(quote(text))); err != nil {
				t.Errorf("%s %q: %v", c.format, text, err)
			}
		}
		for _, text := range c.not {
			if err := schema.Check([]byte(quote(text))); fault.Of(err) != fault.Invalid || err == nil {
				t.Errorf("%s %q fits", c.format, text)
			}
		}
	}
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestFold(t *testing.T) {
	t.Parallel()
	answers := []action.Answer{
		{Node: "b", Data: jsontext.Value(`{"x":1,"y":2}`)},
		{Node: "c", Code: action.Aborted, Message: "no mount"},
		{Node: "a", Data: jsontext.Value(`{"y":2, "x":1.0}`)},
		{Node: "d", Code: action.Offline},
	}
	want := []action.Same{
		{Data: jsontext.Value(`{"x":1,"y":2}`), Nodes: []fleet.Certname{"a", "b"}},
		{Code: action.Aborted, Message: "no mount", Nodes: []fleet.Certname{"c"}},
		{Code: action.Offline, Nodes: []fleet.Certname{"d"}},
	}
	got := action.Fold(answers)
	for i := range got {
		if len(got[i].Data) == 0 {
			got[i].Data = nil
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAggregates(t *testing.T) {
	t.Parallel()
	answers := []action.Answer{
		{Node: "a", Data: jsontext.Value(`{"n":1,"s":"up","b":true}`)},
		{Node: "b", Data: jsontext.Value(`{"n":3,"s":"up","b":false}`)},
		{Node: "c", Data: jsontext.Value(`{"n":8,"s":"down","b":true}`)},
		{Node: "d", Data: jsontext.Value(`{}`)},
		{Node: "e", Code: action.Offline},
		{Node: "f", Code: action.Aborted, Data: jsontext.Value(`{"n":100}`)},
	}
	for _, c := range []struct {
		aggregate action.Aggregate
		want      []string
	}{
		{action.Aggregate{Function: action.Summary, Field: "s"}, []string{"  up = 2", "down = 1"}},
		{action.Aggregate{Function: action.Average, Field: "n"}, []string{"Average: 4.000"}},
		{action.Aggregate{Function: action.Average, Field: "n", Format: "mean %.1f"}, []string{"mean 4.0"}},
		{action.Aggregate{Function: action.Sum, Field: "n"}, []string{"Total: 12.000"}},
		{
			action.Aggregate{Function: action.BooleanSummary, Field: "b", Labels: map[string]string{"true": "enabled", "false": "disabled"}},
			[]string{" enabled = 2", "disabled = 1"},
		},
		{action.Aggregate{Function: action.Distribution, Field: "n"}, []string{"█    █             █  min: 1  max: 8"}},
		{action.Aggregate{Function: action.Sum, Field: "nothing"}, nil},
	} {
		got := c.aggregate.Over(answers, "x")
		if diff := cmp.Diff(c.want, got.Lines()); diff != "" {
			t.Errorf("%v: %s", c.aggregate, diff)
		}
		if got.Answers != 4 || c.want != nil && got.Without != 1 {
			t.Errorf("%v: %d answers, %d without", c.aggregate, got.Answers, got.Without)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(disk))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := action.Parse("disk", text)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%v is not Invalid", err)
			}
			return
		}
		again, err := action.Parse("disk", m.Text())
		if err != nil || again.Digest() != m.Digest() {
			t.Errorf("the text of a module is not that module: %v\n%s", err, m.Text())
		}
	})
}

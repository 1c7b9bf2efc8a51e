package compile_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
)

// A catalog and its exported resources, as a compiler writes them.
const (
	compared = `{"name":"a","version":"1","code_id":"x","catalog_uuid":"u","tags":["settings","a"],"classes":["a","settings"],"environment":"production",
		"edges":[{"source":"Stage[main]","target":"Class[A]"},{"source":"Class[A]","target":"File[/x]"}],"resources":[
		{"type":"Stage","title":"main","tags":["stage"],"exported":false,"parameters":{"name":"main"}},
		{"type":"Class","title":"A","tags":["class","a"],"file":"/etc/puppetlabs/code/environments/production/manifests/site.pp","line":1,"exported":false},
		{"type":"File","title":"/x","tags":["file","a"],"exported":false,"parameters":{"content":"secret","mode":"0644","loglevel":{"b":1,"a":[1,2.0]}},
		"sensitive_parameters":["content"]}]}`
	comparedExports = `[{"type":"Host","title":"h","exported":true,"parameters":{"ip":"192.0.2.1"}},{"type":"Host","title":"i","exported":true,"parameters":{}}]`
)

func TestCompareOpinion(t *testing.T) {
	t.Parallel()
	document, _, err := catalog.Normalise(json.RawMessage(compared), json.RawMessage(comparedExports))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		from, to string // in what plain Puppet gives
		want     string // Difference.String; empty: none
	}{
		"equal":               {"", "", ""},
		"stamp":               {`"version":"1","code_id":"x","catalog_uuid":"u"`, `"version":2,"catalog_uuid":"v"`, ""},
		"order of tags":       {`["file","a"]`, `["a","file"]`, ""},
		"order of parameters": {`"mode":"0644","loglevel"`, `"loglevel"`, "File[/x] parameter mode"},
		"parameter":           {`"0644"`, `"0600"`, "File[/x] parameter mode"},
		"number":              {`2.0`, `2`, "File[/x] parameter loglevel"},
		"order of keys":       {`{"b":1,"a":[1,2.0]}`, `{"a":[1,2.0],"b":1}`, "File[/x] parameter loglevel"},
		"order of a list":     {`[1,2.0]`, `[2.0,1]`, "File[/x] parameter loglevel"},
		"sensitive":           {`"content":"secret"`, `"content":"other"`, "File[/x] parameter content"},
		"no longer sensitive": {`"sensitive_parameters":["content"]`, `"x":1`, "File[/x] sensitive_parameters"},
		"not for eyes":        {`"ip":"192.0.2.1"`, `"ip":"192.0.2.1","secret":"secret","show_diff":false`, "@@Host[h] parameter secret"},
		"tags":                {`["file","a"]`, `["file"]`, "File[/x] tags"},
		"line":                {`"line":1`, `"line":2`, "Class[A] line"},
		"class":               {`"classes":["a","settings"]`, `"classes":["settings"]`, "classes"},
		"environment":         {`"environment":"production"`, `"environment":"other"`, "environment"},
		"missing resource":    {`"title":"/x"`, `"title":"/y"`, "File[/x] only Tutti has it"},
		"edge": {
			`{"source":"Class[A]","target":"File[/x]"}`, `{"source":"Class[A]","target":"File[/y]"}`,
			"Class[A] -> File[/x] edge that only Tutti has",
		},
		"order of edges": {
			`{"source":"Stage[main]","target":"Class[A]"},{"source":"Class[A]","target":"File[/x]"}`,
			`{"source":"Class[A]","target":"File[/x]"},{"source":"Stage[main]","target":"Class[A]"}`, "order of edges",
		},
		"twice the edge": {
			`{"source":"Stage[main]","target":"Class[A]"},`,
			`{"source":"Stage[main]","target":"Class[A]"},{"source":"Stage[main]","target":"Class[A]"},`, "order of edges",
		},
		"exported": {`192.0.2.1`, `192.0.2.2`, "@@Host[h] parameter ip"},
		"order of the exported": {
			comparedExports,
			`[{"type":"Host","title":"i","exported":true,"parameters":{}},{"type":"Host","title":"h","exported":true,"parameters":{"ip":"192.0.2.1"}}]`,
			"order of exported resources",
		},
		"nothing exported":       {comparedExports, `[]`, "@@Host[h] only Tutti has it"},
		"parameter that is null": {`"mode":"0644"`, `"mode":null`, "File[/x] parameter mode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog, exported := strings.Replace(compared, test.from, test.to, 1), strings.Replace(comparedExports, test.from, test.to, 1)
			if test.from != "" && catalog == compared && exported == comparedExports {
				t.Fatal("the test changes nothing")
			}
			if strings.HasPrefix(test.from, "[{") {
				exported = test.to
			}
			found, count, err := compile.CompareOpinion(document, compile.Opinion{Catalog: json.RawMessage(catalog), Exported: json.RawMessage(exported)})
			if err != nil || count < len(found) {
				t.Fatalf("%d differences, %v", count, err)
			}
			if test.want == "" {
				if len(found) > 0 {
					t.Errorf("got %+v", found)
				}
				return
			}
			if !slices.ContainsFunc(found, func(d compile.Difference) bool { return d.String() == test.want }) {
				t.Errorf("got %+v, want %q", found, test.want)
			}
			for _, d := range found {
				if strings.Contains(d.Tutti+d.Plain, "secret") || strings.Contains(d.Tutti+d.Plain, `other"`) && name == "sensitive" {
					t.Errorf("%s shows what is sensitive: %+v", d, d)
				}
			}
		})
	}
}

func TestCompareOpinionRefusesWhatIsNoCatalog(t *testing.T) {
	t.Parallel()
	document, _, err := catalog.Normalise(json.RawMessage(compared), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "[]", "{", `{} {}`} {
		if _, _, err := compile.CompareOpinion(document, compile.Opinion{Catalog: json.RawMessage(text)}); err == nil {
			t.Errorf("%q is taken for a catalog", text)
		}
	}
}

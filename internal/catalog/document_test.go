package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const uuid1 = "6d5e9f0a-1111-4222-8333-444455556666"

var version1 = fleet.DigestOf([]byte("code"))

func TestNormalise(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, catalog, exported, want string }{
		{
			"drops the stamp, sorts keys and sets",
			`{"version":17,"code_id":"x","catalog_uuid":"y","tags":["b","a"],"name":"n","resources":[],"classes":["z","c"]}`, "",
			`{"exported":[],"catalog":{"classes":["c","z"],"name":"n","resources":[],"tags":["a","b"]}}`,
		},
		{
			"keeps the order of resources, edges and hash values",
			`{"resources":[{"type":"B","title":"2","tags":["y","x"],"parameters":{"b":{"z":1,"a":2},"a":[3,1]}},{"type":"A","title":"1"}],
			  "edges":[{"source":"B","target":"A"},{"source":"A","target":"C"}]}`, "null",
			`{"exported":[],"catalog":{"edges":[{"source":"B","target":"A"},{"source":"A","target":"C"}],"resources":[` +
				`{"parameters":{"a":[3,1],"b":{"z":1,"a":2}},"tags":["x","y"],"title":"2","type":"B"},{"title":"1","type":"A"}]}}`,
		},
		{
			"keeps every digit", `{"resources":[{"parameters":{"n":12345678901234567890,"f":1.10,"e":1E400,"z":-0}}]}`, "",
			`{"exported":[],"catalog":{"resources":[{"parameters":{"e":1E400,"f":1.10,"n":12345678901234567890,"z":-0}}]}}`,
		},
		{
			"escapes in one way", `{"resources":[{"title":"\u003ca\u003e \u00e9 \/ \u0001\\ \" , ] }"}]}`, "",
			`{"exported":[],"catalog":{"resources":[{"title":"<a> é / \u0001\\ \" , ] }"}]}}`,
		},
		{
			"replaces what is no text", "{\"resources\":[{\"title\":\"a\xffb\\ud800c\"}]}", "",
			"{\"exported\":[],\"catalog\":{\"resources\":[{\"title\":\"a\ufffdb\ufffdc\"}]}}",
		},
		{
			"keeps exported resources apart", `{"resources":[]}`, ` [ {"type":"E","title":"t","exported":true} ] `,
			`{"exported":[{"exported":true,"title":"t","type":"E"}],"catalog":{"resources":[]}}`,
		},
		{
			"keeps metadata", `{"resources":[],"metadata":{"/b":{"x":1,"a":2},"/a":{}},"recursive_metadata":{"/d":{"s":[{}]}}}`, "",
			`{"exported":[],"catalog":{"metadata":{"/a":{},"/b":{"x":1,"a":2}},"recursive_metadata":{"/d":{"s":[{}]}},"resources":[]}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, digest, err := catalog.Normalise(outcome(tt.catalog, tt.exported))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
			if digest != fleet.DigestOf(got) {
				t.Error("the digest is not the document's")
			}
		})
	}
}

func TestNormaliseRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ catalog, exported string }{
		{``, ``},
		{`null`, ``},
		{`[]`, ``},
		{`{}`, ``},
		{`{"resources":{}}`, ``},
		{`{"resources":[1]}`, ``},
		{`{"resources":[{"a":1,"a":2}]}`, ``},
		{`{"resources":[]} {}`, ``},
		{`{"resources":[`, ``},
		{`{"resources":[]}`, `{}`},
		{`{"resources":[]}`, `["x"]`},
	} {
		if _, _, err := catalog.Normalise(outcome(tt.catalog, tt.exported)); fault.Of(err) != fault.Invalid {
			t.Errorf("Normalise(%s, %s): %v, want Invalid", tt.catalog, tt.exported, err)
		}
	}
}

func outcome(catalog, exported string) (_, _ json.RawMessage) {
	return json.RawMessage(catalog), json.RawMessage(exported)
}

func TestRender(t *testing.T) {
	t.Parallel()
	doc, _, err := catalog.Normalise(outcome(
		`{"name":"n","version":1,"resources":[{"title":"t"}],"metadata":{"/a":{}},"recursive_metadata":{}}`, `[{"title":"}\""}]`))
	if err != nil {
		t.Fatal(err)
	}
	stamp := `{"version":"` + string(version1) + `","code_id":"` + string(version1) + `","catalog_uuid":"` + uuid1 + `",`
	for _, tt := range []struct {
		static bool
		want   string
	}{
		{true, stamp + `"metadata":{"/a":{}},"name":"n","recursive_metadata":{},"resources":[{"title":"t"}]}`},
		{false, stamp + `"name":"n","resources":[{"title":"t"}]}`},
	} {
		got, err := catalog.Render(doc, catalog.Stamp{Version: version1, UUID: uuid1, Static: tt.static})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("static %t (-want +got):\n%s", tt.static, diff)
		}
	}
	exported, catalog, err := catalog.Split(doc)
	if err != nil || string(exported) != `[{"title":"}\""}]` || !json.Valid(catalog) {
		t.Errorf("Split: %s, %s, %v", exported, catalog, err)
	}
}

func TestRenderRefusesWhatIsNoDocument(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		``, `{"exported":`, `{"exported":[]}`, `{"exported":[],"catalog":{}}`, `{"exported":[],"catalog":[1,2,3,4,5,6,7,8]}`, `{"name":"n"}`,
	} {
		if _, err := catalog.Render([]byte(doc), catalog.Stamp{}); fault.Of(err) != fault.Internal || err == nil {
			t.Errorf("Render(%s): %v, want Internal", doc, err)
		}
	}
}

func TestRich(t *testing.T) {
	t.Parallel()
	for parameters, want := range map[string]bool{
		`{"content":{"__ptype":"Sensitive","__pvalue":"x"}}`:    true,
		`{"content":{"__pvalue":"x", "__ptype" : "Sensitive"}}`: true,
		`{"content":"plain"}`:                                     false,
		`{"content":"{\"__ptype\":\"Sensitive\"}"}`:               false,
		`{"content":"__ptype","__ptypes":"\u0022__ptype\u0022:"}`: false,
	} {
		doc, _, err := catalog.Normalise(outcome(`{"resources":[{"parameters":`+parameters+`}]}`, ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := catalog.Rich(doc); got != want {
			t.Errorf("Rich(%s) = %t, want %t", parameters, got, want)
		}
	}
}

// FuzzDocument checks that whatever is stored can be rendered, and that a
// rendered catalog normalises to what it was rendered from.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"version":17,"tags":["b","a"],"resources":[{"type":"B","parameters":{"b":{"z":1},"a":[3,1.0]}}]}`), []byte(`[{"a":"\u0022"}]`))
	f.Add([]byte("{\"resources\":[{\"\\\\\":\"\xff\\\"\"}],\"metadata\":{\"/x\":[]},\"classes\":[]}"), []byte(``))
	f.Add([]byte(` {"resources" : [ ] } `), []byte(`null`))
	f.Fuzz(func(t *testing.T, given, exported []byte) {
		doc, digest, err := catalog.Normalise(given, exported)
		if err != nil {
			return
		}
		if !json.Valid(doc) || bytes.Contains(doc, []byte("\n")) {
			t.Fatalf("the document is not compact JSON: %q", doc)
		}
		wire, err := catalog.Render(doc, catalog.Stamp{Version: version1, UUID: uuid1, Static: true})
		if err != nil || !jsontext.Value(wire).IsValid() {
			t.Fatalf("Render(%q) = %q, %v", doc, wire, err)
		}
		bare, err := catalog.Render(doc, catalog.Stamp{})
		if err != nil || !jsontext.Value(bare).IsValid() {
			t.Fatalf("Render(%q) without metadata = %q, %v", doc, bare, err)
		}
		list, _, err := catalog.Split(doc)
		if err != nil {
			t.Fatal(err)
		}
		again, same, err := catalog.Normalise(wire, list)
		if err != nil || same != digest {
			t.Fatalf("%q came back as %q, %v", doc, again, err)
		}
	})
}

// FuzzRender checks that damaged documents do no harm.
func FuzzRender(f *testing.F) {
	f.Add([]byte(`{"exported":[],"catalog":{"resources":[]}}`))
	f.Add([]byte(`{"exported":[{"\\":"\"],"catalog":{"resources":[]`))
	f.Add([]byte(`{"exported":[],"catalog":{"`))
	f.Fuzz(func(_ *testing.T, doc []byte) {
		_, _ = catalog.Render(doc, catalog.Stamp{})
		_, _ = catalog.Render(doc, catalog.Stamp{Static: true})
	})
}

// largeCatalog makes a catalog up that looks like those of real modules.
func largeCatalog(resources int) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"tags":["settings","node"],"name":"web01.example","version":1767225600,"code_id":null,"catalog_uuid":"` + uuid1 +
		`","catalog_format":2,"environment":"production","resources":[`)
	for i := range resources {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"File","title":"/etc/app/conf.d/%d.conf","tags":["file","class","app::config","app","node","web"],`+
			`"file":"modules/app/manifests/config.pp","line":%d,"exported":false,"parameters":{"ensure":"file","owner":"root","group":"root",`+
			`"mode":"0644","content":%q,"require":["Package[app]","File[/etc/app/conf.d]"],"notify":"Service[app]"}}`,
			i, i, strings.Repeat(fmt.Sprintf("option%d = \"value\"\n", i), 12))
	}
	b.WriteString(`],"edges":[`)
	for i := range resources {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"source":"Class[App::Config]","target":"File[/etc/app/conf.d/%d.conf]"}`, i)
	}
	b.WriteString(`],"classes":["settings","app","app::config"]}`)
	return json.RawMessage(b.String())
}

func BenchmarkNormalise(b *testing.B) {
	large := largeCatalog(2000)
	b.SetBytes(int64(len(large)))
	for b.Loop() {
		if _, _, err := catalog.Normalise(large, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	doc, _, err := catalog.Normalise(largeCatalog(2000), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, static := range []bool{true, false} {
		b.Run(fmt.Sprintf("static=%t", static), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if _, err := catalog.Render(doc, catalog.Stamp{Version: version1, UUID: uuid1, Static: static}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

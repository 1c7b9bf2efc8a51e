package facts

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func refused(t *testing.T, what string, err error, says string) {
	t.Helper()
	if err == nil || fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), says) {
		t.Errorf("%s: error %v, want an Invalid one that says %q", what, err, says)
	}
}

func TestParseFacts(t *testing.T) {
	t.Parallel()
	f, err := Parse([]byte(`{"name":"a.example","timestamp":"2026-03-01T13:00:00.5+01:00","expiration":"x",
		"values":{"b":{"z":1.50,"a":9007199254740993},"a":"\u00e4\/","b":{"z":[ ],"a":9007199254740993}},"more":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Told{
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
	f, err := Parse([]byte("{\"name\":\"a\",\"values\":{\"utf8\":\"\xc3\xa4\",\"raw\":\"\xe4\xff\"}}"))
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
		"too many values": {`{"name":"a","values":{"x":[` + strings.Repeat("1,", MaxLeaves) + `1]}}`, "more than"},
		"too large":       {`{"name":"a","values":{"x":"` + strings.Repeat("x", MaxBytes) + `"}}`, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(c.body))
			refused(t, name, err, c.says)
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
	out, _, err := Canonical(text)
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

// FuzzCanonical: what the scanner accepts is JSON, means the same as before, and
// its canonical form is a fixed point.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,-0.5e+3,null,true,"\ud83d\ude00\u0000"],"b":{"c":{}}}`, `{"a":1,"a":2}`, "{\"\xe4\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, _, err := Canonical(body)
		if err != nil {
			return
		}
		if !json.Valid([]byte(scan.ValidText(string(body)))) || !json.Valid(out) {
			t.Fatalf("accepted %q as %q", body, out)
		}
		again, _, err := Canonical(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q became %q, %v", out, again, err)
		}
		if !bytes.ContainsAny(body, `\`) && !reflect.DeepEqual(decode(t, []byte(scan.ValidText(string(body)))), decode(t, out)) {
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

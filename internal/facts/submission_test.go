package facts

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// A difference, written down, read and applied to its base, gives what it was made of.
func TestADifferenceLeadsToItsSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawFacts(t, "before"), drawFacts(t, "after")
		p, err := Difference(before, after)
		if err != nil {
			t.Fatal(err)
		}
		if p.Empty() != (string(before) == string(after)) {
			t.Errorf("from %s to %s: %+v", before, after, p)
		}
		body, err := json.Marshal(Submission{Number: 3, Base: fleet.DigestOf(before), Patch: p})
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParseSubmission(body, false)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		got, err := read.Apply(before)
		if err != nil || string(got) != string(after) {
			t.Errorf("from %s by %s: %s, want %s: %v", before, body, got, after, err)
		}
	})
}

func TestPatchesThatDoNotFit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string
		patch  Patch
		want   string
	}{
		"gone already":   {`{"a":1}`, Patch{Removed: []string{"/b"}}, `removes "/b"`},
		"no object":      {`{"a":1}`, Patch{Changed: map[string]json.RawMessage{"/a/b": []byte(`1`)}}, `below "/a"`},
		"both levels":    {`{"a":{}}`, Patch{Changed: map[string]json.RawMessage{"/a": []byte(`1`), "/a/b": []byte(`1`)}}, `a path above it`},
		"twice":          {`{"a":{"b":1}}`, Patch{Changed: map[string]json.RawMessage{"/a/b": []byte(`1`)}, Removed: []string{"/a"}}, "a path below it"},
		"no pointer":     {`{}`, Patch{Changed: map[string]json.RawMessage{"a": []byte(`1`)}}, "/os/release/full"},
		"everything":     {`{}`, Patch{Removed: []string{""}}, "/os/release/full"},
		"too long a way": {`{}`, Patch{Removed: []string{"/" + strings.Repeat("a", scan.MaxPath)}}, "more than"},
	} {
		if got, err := c.patch.Apply([]byte(c.before)); fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v, want Invalid with %s", name, got, err, c.want)
		}
	}
}

func TestSubmissions(t *testing.T) {
	t.Parallel()
	digest := fleet.DigestOf([]byte("x"))
	got, err := ParseSubmission(`{"number":5,"timestamp":"2026-03-01T12:00:00Z","environment":"production","watched":"`+string(digest)+
		`","more":[1],"values":{"b":1,"a":{"x":null},"trusted":{"me":1}}}`, true)
	want := Submission{
		Number: 5, Timestamp: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Environment: "production", Watched: digest,
		Values: json.RawMessage(`{"a":{"x":null},"b":1}`), Arrangement: "1,0",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for body, want := range map[string]string{
		`{"values":{}}`:                                                 `"number" is missing`,
		`{"number":-1,"values":{}}`:                                     `"number" is missing`,
		`{"number":"1","values":{}}`:                                    `a whole number for "number"`,
		`{"number":1.5,"values":{}}`:                                    `no whole number`,
		`{"number":1}`:                                                  `no "values" object`,
		`{"number":1,"values":[]}`:                                      `an object of facts`,
		`{"number":1,"values":{},"removed":["/a"]}`:                     `sent with PATCH`,
		`{"number":1,"values":{},"timestamp":"soon"}`:                   `"timestamp"`,
		`{"number":1,"values":{},"environment":"a b"}`:                  `"environment"`,
		`{"number":1,"values":{},"watched":"x"}`:                        `"watched"`,
		`[]`:                                                            `'{'`,
		`{"number":1,"values":{}} x`:                                    `follows after its end`,
		strings.Repeat(`{"values":`, 101) + "1":                         `nests deeper`,
		`{"number":1,"values":{"` + strings.Repeat("a", 3000) + `":1}}`: `more than 2000 bytes`,
	} {
		if _, err := ParseSubmission(body, true); fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want Invalid with %s", body, err, want)
		}
	}
	for body, want := range map[string]string{
		`{"number":1}`:              `no "base"`,
		`{"number":1,"base":7}`:     `a string for "base"`,
		`{"number":1,"base":"7"}`:   `"base"`,
		`{"number":1,"values":{}}`:  `sent with PUT`,
		`{"number":1,"changed":[]}`: `"changed"`,
		`{"number":1,"removed":{}}`: `"removed"`,
	} {
		if _, err := ParseSubmission(body, false); fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want Invalid with %s", body, err, want)
		}
	}
}

func TestGlances(t *testing.T) {
	t.Parallel()
	facts := json.RawMessage(`{"a/b":{"~":1},"list":[1,2],"os":{"family":"Debian","release":{"full":"12.1"}}}`)
	for pointer, want := range map[string]string{
		"/os/family": `"Debian"`, "/os/release": `{"full":"12.1"}`, "/os/": `"family""release"`, "/os/name": "", "/none/at/all": "", "/list": "[1,2]", "/list/0": "",
		"/a~1b/~0": "1", "/": `"a/b""list""os"`, "": string(facts), "/os/family/": `"Debian"`,
	} {
		if got, err := Glance(facts, pointer); err != nil || got != want {
			t.Errorf("%q: %s, want %s (%v)", pointer, got, want, err)
		}
	}
	for pointer, want := range map[string]string{"/os/family": "os", "/os/": "os", "/": "", "": "", "os": "", "/a~1b/x": "a/b"} {
		if got := AtPointer(pointer); got != want {
			t.Errorf("the fact of %q is %q, want %q", pointer, got, want)
		}
	}
}

func FuzzSubmission(f *testing.F) {
	f.Add(`{"number":1,"values":{"a":{"b":[1]}}}`, true)
	f.Add(`{"number":1,"base":"`+strings.Repeat("a", 64)+`","changed":{"/a/b":2,"/c~1":{}},"removed":["/d"]}`, false)
	base := json.RawMessage(`{"a":{"b":1},"d":2}`)
	f.Fuzz(func(t *testing.T, body string, whole bool) {
		sub, err := ParseSubmission(body, whole)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%v is not Invalid", err)
			}
			return
		}
		values := sub.Values
		if !whole {
			if values, err = sub.Apply(base); err != nil {
				return
			}
		}
		again, _, err := Canonical(values)
		if err != nil || string(again) != string(values) {
			t.Errorf("%s is not canonical: %v", values, err)
		}
	})
}

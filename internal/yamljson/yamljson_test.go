package yamljson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestToJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1.0\nb: [0x10, 1_000, .5, yes, true, ~, 2024-01-01, '5']": `{"a":1.0,"b":[16,1000,0.5,"yes",true,null,"2024-01-01","5"]}`,
		"a: &x {b: 1}\nc: *x":     `{"a":{"b":1},"c":{"b":1}}`,
		`{"<<": "\u00e4\u0001"}`:  "{\"\\u003c\\u003c\":\"ä\\u0001\"}",
		"- |\n  two\n  lines\n":   `["two\nlines\n"]`,
		"12345678901234567890123": "12345678901234567890123",
	} {
		if got, err := ToJSON([]byte(text)); string(got) != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                 "the text is empty",
		"a: [":             "line 1",
		"a: 1\na: 2":       `line 2: the key "a" is there twice`,
		"<<: {a: 1}":       "a key must be a plain name",
		"? [a]\n: b":       "a key must be a plain name",
		"a: .inf":          "no place in JSON",
		"a: !!binary aGk=": "binary values are not supported",
		"a: &a [*a]":       "nested more than",
	} {
		if got, err := ToJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
}

func FuzzToJSON(f *testing.F) {
	for _, seed := range []string{"a: 1.0\nb: [~, yes, 0x1F]", "a: &x {b: 1}\nc: *x", `{"<<": "\u0001"}`, "- |\n  x\n", `{"\t\n": "\t\n"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ToJSON(text)
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q became %q", text, got)
		}
		words, err := FromJSON(got)
		if err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if back, err := ToJSON(words); err != nil || string(back) != string(got) {
			t.Fatalf("%s became %s, %v, through\n%s", got, back, err, words)
		}
	})
}

package facts

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestTrustedFact(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		`{}`:                          `{"trusted":{"a":1,"b":"\u0001"}}`,
		`{"a":{"trusted":1}}`:         `{"a":{"trusted":1},"trusted":{"a":1,"b":"\u0001"}}`,
		`{"z":1}`:                     `{"trusted":{"a":1,"b":"\u0001"},"z":1}`,
		`{"a":1,"trusted":"x","u":2}`: `{"a":1,"trusted":{"a":1,"b":"\u0001"},"u":2}`,
	} {
		got, err := WithTrusted(json.RawMessage(values), json.RawMessage(`{"b": "\u0001", "a":1}`))
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, want %s (%v)", values, got, want, err)
		}
	}
	if _, err := WithTrusted(json.RawMessage(`{}`), json.RawMessage(`7`)); err == nil {
		t.Error("a number is taken for trusted data")
	}
}

// TestTrustedStaysCanonical: what is put in and taken out again leaves the facts as
// they were, and canonical in between.
func TestTrustedStaysCanonical(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := drawFacts(t, "values")
		with, err := WithTrusted(values, drawFacts(t, "trusted"))
		if err != nil {
			t.Fatal(err)
		}
		if again, _, err := Canonical(with); err != nil || string(again) != string(with) {
			t.Fatalf("%s is not canonical (%s), %v", with, again, err)
		}
		if got, err := WithoutTrusted(with); err != nil || string(got) != string(values) {
			t.Fatalf("%s became %s, %v", values, got, err)
		}
	})
}

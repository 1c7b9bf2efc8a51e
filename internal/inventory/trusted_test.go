package inventory

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
)

func TestTrustedFact(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		`{}`:                          `{"trusted":{"a":1,"b":"\u0001"}}`,
		`{"a":{"trusted":1}}`:         `{"a":{"trusted":1},"trusted":{"a":1,"b":"\u0001"}}`,
		`{"z":1}`:                     `{"trusted":{"a":1,"b":"\u0001"},"z":1}`,
		`{"a":1,"trusted":"x","u":2}`: `{"a":1,"trusted":{"a":1,"b":"\u0001"},"u":2}`,
	} {
		got, err := FactSet{Values: json.RawMessage(values)}.WithTrusted(json.RawMessage(`{"b": "\u0001", "a":1}`))
		if err != nil || string(got.Values) != want || got.Digest != fleet.DigestOf(got.Values) {
			t.Errorf("%s became %s, want %s (%v)", values, got.Values, want, err)
		}
	}
	if _, err := (FactSet{Values: json.RawMessage(`{}`)}).WithTrusted(json.RawMessage(`7`)); err == nil {
		t.Error("a number is taken for trusted data")
	}
}

// TestTrustedStaysCanonical: what is put in and taken out again leaves the facts as
// they were, and canonical in between.
func TestTrustedStaysCanonical(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := drawFacts(t, "values")
		with, err := FactSet{Values: values}.WithTrusted(drawFacts(t, "trusted"))
		if err != nil {
			t.Fatal(err)
		}
		if again, _, err := CanonicalFacts(with.Values); err != nil || string(again) != string(with.Values) {
			t.Fatalf("%s is not canonical (%s), %v", with.Values, again, err)
		}
		if got, err := WithoutTrusted(with.Values); err != nil || string(got) != string(values) {
			t.Fatalf("%s became %s, %v", values, got, err)
		}
	})
}

package facts

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestArrangedGivesFactsAsTheyCame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ told, arrangement, back string }{
		{`{"a":1,"b":{"c":2}}`, "", ""},
		{`{"b":1,"a":2}`, "1,0", ""},
		{`{"a":{"z":1,"y":{"k":1},"x":[{"q":1,"p":[{"n":0,"m":{}}]}]},"0":{"s":1,"r":2}}`, "1,0;2,1,0;;1,0;1,0;;1,0", ""},
		{`{"a":1,"b":[{"d":1,"c":2}]}`, ";1,0", ""},
		{`{"trusted":{"b":1,"a":2},"z":1,"y":{"trusted":1,"a":2}}`, "1,0;1,0", `{"z":1,"y":{"trusted":1,"a":2}}`},
		{`{"z":{"b":1,"a":1},"a":1,"a":2}`, "", `{"a":2,"z":{"a":1,"b":1}}`}, // no Ruby names one member twice
	} {
		values, arrangement, err := Canonical(json.RawMessage(c.told))
		if err != nil || arrangement != c.arrangement {
			t.Errorf("%s: arrangement %q (%v), want %q", c.told, arrangement, err, c.arrangement)
		}
		back, err := Arranged(values, arrangement)
		want := c.back
		if want == "" {
			want = c.told
		}
		if err != nil || string(back) != want {
			t.Errorf("%s: came back as %s (%v), want %s", c.told, back, err, want)
		}
	}
}

func TestArrangementsOfOtherFactsAreRefused(t *testing.T) {
	t.Parallel()
	for _, arrangement := range []string{"0", "1,0,2", "1,1", "-1,0", "a,b", "1,0;1,0;0", strings.Repeat(";", 9) + "1,0"} {
		_, err := Arranged(json.RawMessage(`{"a":1,"b":{"c":1,"d":2}}`), arrangement)
		if fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%q: %v, want Invalid", arrangement, err)
		}
	}
}

// FuzzArranged: facts come back byte for byte as they were told, but for white space, how
// texts are escaped, and what servers add.
func FuzzArranged(f *testing.F) {
	for _, seed := range []string{
		`{"b":[{"z":1,"a":{}}],"a":{"y":[],"x":null}}`, `{"trusted":{"b":1,"a":1},"os":{"z":1,"a":2},"a":1}`,
		`{"a":1,"a":2}`, `{"\u0062":1,"a":"\n"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, told []byte) {
		values, arrangement, err := Canonical(told)
		if err != nil {
			return
		}
		back, err := Arranged(values, arrangement)
		if err != nil {
			t.Fatalf("%s: %v", told, err)
		}
		again, same, err := Canonical(back)
		own, _ := WithoutTrusted(values)
		if err != nil || !bytes.Equal(again, own) || same != arrangement {
			t.Fatalf("%s came back as %s: canonical %s, want %s; arrangement %q, want %q (%v)", told, back, again, own, same, arrangement, err)
		}
		if !strings.ContainsAny(string(told), "\\\x00\x7f") && !bytes.Contains(told, []byte("trusted")) && arrangement != "" {
			var compacted bytes.Buffer
			if json.Compact(&compacted, told) == nil && json.Valid(told) && bytes.Equal(bytes.ToValidUTF8(told, nil), told) && compacted.String() != string(back) {
				t.Fatalf("%s came back as %s", compacted.String(), back)
			}
		}
	})
}

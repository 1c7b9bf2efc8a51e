package classifier

import (
	"slices"
	"testing"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// A rule means the same as pinned nodes and a rule, and what is shown of these reads
// back as they are.
func FuzzSetRule(f *testing.F) {
	for _, seed := range []string{
		`["or",["and",["=",["fact","a"],"b"]],["=","name","web-1"]]`, `["or",["or",["=","name","a"],["~","name","b"]]]`, `["=","name","web-1"]`, `null`,
		`["or",["and"],["=","name","NO"]]`, `["or",["or",["=","name","a"],["=","name","web-1"]],["not",["=","name","c"]]]`, `["or"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var g, back classify.Group
		err := setRule(&g, text)
		whole, wholeErr := classify.ParseJSON(text)
		if err != nil {
			if fault.Of(err) == fault.Internal && wholeErr == nil {
				t.Fatalf("%s: %v, but it is a rule", text, err)
			}
			return
		}
		sortPins(&g)
		if err := setRule(&back, wireRule(g)); err != nil {
			t.Fatalf("%s is shown as %s: %v", text, wireRule(g), err)
		}
		sortPins(&back)
		if string(wireRule(back)) != string(wireRule(g)) || !slices.Equal(back.Pinned, g.Pinned) {
			t.Fatalf("%s is shown as %s, which reads as %s", text, wireRule(g), wireRule(back))
		}
		if wholeErr != nil || whole == nil { // with empty parts it is none of ours
			return
		}
		for _, name := range []fleet.Certname{"web-1", "a", "other"} {
			node, err := classify.NewNode(name, []byte(`{"a":"b"}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			member := slices.Contains(g.Pinned, name) || g.Rule != nil && g.Rule.Holds(node)
			if member != whole.Holds(node) {
				t.Fatalf("%s holds for %s: %t, apart: %t", text, name, !member, member)
			}
		}
	})
}

func sortPins(g *classify.Group) {
	slices.Sort(g.Pinned)
	g.Pinned = slices.Compact(g.Pinned)
}

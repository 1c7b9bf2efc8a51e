package classify

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fleet"
)

func TestDoubtsSayWhatNothingHas(t *testing.T) {
	t.Parallel()
	rule, err := ParseRule(`facts.os.famly = "Debian" and facts.role = "web" and trusted.extensions.pp_role = "web"`)
	if err != nil {
		t.Fatal(err)
	}
	one := json.RawMessage("1")
	g := Group{
		Name: "Web", Rule: rule, Pinned: []fleet.Certname{"known", "stranger"},
		Classes: Classes{"role::wbe": nil, "apache": {"port": one, "prot": one}, "broken": {"x": one}},
		Data:    Classes{"ntp": {"servers": one}, "apache": {"portt": one}},
	}
	code := map[string]ClassKnown{
		"role::wbe": {Near: []string{"role::web"}}, "apache": {Found: true, Parameters: []string{"port", "vhosts"}}, "broken": {Unread: true}, "ntp": {},
	}
	const facts, pin = "no node has a value at facts.os.famly, which the rule looks at", "no node stranger is known, which is pinned"
	nodes := map[fleet.Certname]bool{"known": true}
	for name, tt := range map[string]struct {
		env  string
		has  Possessions
		want []string
	}{
		"all of it": {"production", Possessions{map[string]map[string]ClassKnown{"production": code}, map[string]bool{"facts.role": true}, nodes}, []string{
			"class apache has no parameter prot in the code of production: no node of the group gets a catalog; did you mean port?",
			"class apache has no parameter portt in the code of production: only a lookup by that name finds its data; did you mean port?",
			"there is no class ntp in the code of production: its data does nothing",
			"there is no class role::wbe in the code of production: no node of the group gets a catalog; did you mean role::web?", facts, pin,
		}},
		"no environment has it": {
			AgentSpecified,
			Possessions{
				Code:  map[string]map[string]ClassKnown{AgentSpecified: {"role::wbe": {}, "apache": {Unread: true}, "broken": {Unread: true}, "ntp": {Unread: true}}},
				Nodes: nodes,
			},
			[]string{
				"there is no class role::wbe in the code of any environment: no node of the group gets a catalog", pin,
			},
		},
		"no code yet": {AgentSpecified, Possessions{Code: map[string]map[string]ClassKnown{AgentSpecified: nil}, Nodes: nodes}, []string{pin}},
		"an environment that has none": {
			"staging", Possessions{Code: map[string]map[string]ClassKnown{"staging": nil}, Nodes: nodes}, []string{
				"the environment staging, which its nodes get, has no code", pin,
			},
		},
		"what is not known is not said": {"production", Possessions{Nodes: map[fleet.Certname]bool{"known": true, "stranger": true}}, nil},
	} {
		if diff := cmp.Diff(tt.want, g.Doubts(tt.env, tt.has)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	many := Group{Classes: Classes{}}
	for i := range 15 {
		many.Classes["c"+string(rune('a'+i))] = nil
		many.Pinned = append(many.Pinned, fleet.Certname("n"+string(rune('a'+i))))
	}
	said := many.Doubts("production", Possessions{Code: map[string]map[string]ClassKnown{"production": {}}})
	if len(said) != maxDoubts+2 || said[maxDoubts] != "and 5 more classes and parameters that are not in the code of production" ||
		said[maxDoubts+1] != "15 pinned nodes are not known: na, nb, nc, nd, ne, nf, ng, nh, ni, nj and 5 more" {
		t.Errorf("of many: %q", said)
	}
}

func TestTheNearestEnvironmentCounts(t *testing.T) {
	t.Parallel()
	root := NewRoot()
	top := Group{ID: NewID(), Name: "top", Parent: RootID, Environment: "test"}
	leaf := Group{ID: NewID(), Name: "leaf", Parent: top.ID}
	tree := NewTree([]Group{root, top, leaf})
	if got := tree.EnvironmentOf(leaf.ID); got != "test" {
		t.Errorf("below: %s", got)
	}
	if got := tree.EnvironmentOf(RootID); got != AgentSpecified {
		t.Errorf("the root: %s", got)
	}
}

package classify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// group describes a group by name; its id is made of it.
type group struct {
	name, parent, rule, env string
	envGroup                bool
	pin                     fleet.Certname
	classes                 string // JSON
	variables, data         string
}

func idOf(name string) ID {
	if name == "" || name == RootName {
		return RootID
	}
	return ID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", fleetHash(name)))
}

func fleetHash(name string) (sum uint32) {
	for _, c := range []byte(name) {
		sum = sum*31 + uint32(c)
	}
	return sum
}

// build makes checked groups under the root.
func build(tb testing.TB, groups ...group) []Group {
	tb.Helper()
	out := []Group{NewRoot()}
	for _, d := range groups {
		g := Group{ID: idOf(d.name), Name: d.name, Parent: idOf(d.parent), Environment: d.env, EnvironmentGroup: d.envGroup}
		if d.rule != "" {
			rule, err := ParseRule(d.rule)
			if err != nil {
				tb.Fatal(err)
			}
			g.Rule = rule
		}
		if d.pin != "" {
			g.Pinned = []fleet.Certname{d.pin}
		}
		for text, into := range map[string]any{d.classes: &g.Classes, d.variables: &g.Variables, d.data: &g.Data} {
			if text == "" {
				continue
			}
			if err := json.Unmarshal([]byte(text), into); err != nil {
				tb.Fatal(err)
			}
		}
		g, err := g.Checked()
		if err != nil {
			tb.Fatal(err)
		}
		if g.IsRoot() {
			out[0] = g
			continue
		}
		out = append(out, g)
	}
	return out
}

// told is a result in words: what the node gets, then what there is a conflict about.
func told(r Result) []string {
	var out []string
	if r.Environment != "" {
		out = append(out, "environment "+r.Environment)
	}
	for class, values := range r.Classes {
		out = append(out, "class "+class)
		for name, value := range values {
			out = append(out, class+"::"+name+"="+string(value))
		}
	}
	for name, value := range r.Parameters {
		out = append(out, "$"+name+"="+string(value))
	}
	for class, values := range r.Data {
		for name, value := range values {
			out = append(out, "data "+class+"::"+name+"="+string(value))
		}
	}
	slices.Sort(out)
	for _, c := range r.Conflicts {
		out = append(out, "conflict: "+word(c))
	}
	return out
}

func TestInheritanceAndConflicts(t *testing.T) {
	t.Parallel()
	const all, none = `name ~ ".*"`, `name = "other"`
	for name, c := range map[string]struct {
		groups []group
		want   []string
	}{
		"no groups": {nil, nil},
		"the root gives to all": {
			[]group{{name: RootName, classes: `{"base":{}}`, variables: `{"site":"north"}`}},
			[]string{"$site=\"north\"", "class base"},
		},
		"a child wins, the rest is handed down": {
			[]group{
				{name: "top", rule: all, env: "production", classes: `{"ntp":{"a":1,"b":1}}`, variables: `{"x":1}`, data: `{"ssh":{"p":1}}`},
				{name: "mid", parent: "top", rule: all, classes: `{"ntp":{"b":2}}`},
				{name: "leaf", parent: "mid", rule: all, env: "test", variables: `{"x":3}`, data: `{"ssh":{"p":3}}`},
			},
			[]string{"$x=3", "class ntp", "data ssh::p=3", "environment test", "ntp::a=1", "ntp::b=2"},
		},
		"a parent that does not match closes the way": {
			[]group{
				{name: "top", rule: none},
				{name: "leaf", parent: "top", rule: all, classes: `{"ntp":{}}`},
				{name: "pin", parent: "top", pin: "web-1.example.test", classes: `{"ssh":{}}`},
			},
			nil,
		},
		"a parent without a rule narrows nothing and hands down": {
			[]group{{name: "top", classes: `{"ntp":{}}`}, {name: "leaf", parent: "top", rule: all}},
			[]string{"class ntp"},
		},
		"a group without a rule has no nodes": {[]group{{name: "top", classes: `{"ntp":{}}`}}, nil},
		"pinned against the rule": {
			[]group{{name: "top", rule: none, pin: "web-1.example.test", classes: `{"ntp":{}}`}},
			[]string{"class ntp"},
		},
		"a child that does not match leaves the parent a leaf": {
			[]group{{name: "top", rule: all, classes: `{"ntp":{"a":1}}`}, {name: "leaf", parent: "top", rule: none, classes: `{"ntp":{"a":2}}`}},
			[]string{"class ntp", "ntp::a=1"},
		},
		"leaves that agree": {
			[]group{{name: "a", rule: all, classes: `{"ntp":{"s":{"x":[1,2],"y":1}}}`}, {name: "b", rule: all, classes: `{"ntp":{"s":{"y":1,"x":[1,2]},"t":0}}`}},
			[]string{"class ntp", `ntp::s={"x":[1,2],"y":1}`, "ntp::t=0"},
		},
		"leaves that disagree": {
			[]group{
				{name: "a", rule: all, env: "one", classes: `{"ntp":{"s":1,"u":1}}`, variables: `{"x":1}`, data: `{"ssh":{"p":1}}`},
				{name: "b", rule: all, env: "two", classes: `{"ntp":{"s":2,"u":1}}`, variables: `{"x":2}`, data: `{"ssh":{"p":2}}`},
			},
			[]string{
				"class ntp", "ntp::u=1",
				`conflict: the environment is "one" from group "a" and "two" from group "b"`,
				`conflict: parameter ntp::s is 1 from group "a" and 2 from group "b"`,
				`conflict: variable $x is 1 from group "a" and 2 from group "b"`,
				`conflict: data ssh::p is 1 from group "a" and 2 from group "b"`,
			},
		},
		"1 is not 1.0": {
			[]group{{name: "a", rule: all, variables: `{"x":1}`}, {name: "b", rule: all, variables: `{"x":1.0}`}},
			[]string{`conflict: variable $x is 1 from group "a" and 1.0 from group "b"`},
		},
		"an inherited value disagrees too": {
			[]group{
				{name: "top", rule: all, variables: `{"x":1}`},
				{name: "a", parent: "top", rule: all},
				{name: "b", parent: "top", rule: all, variables: `{"x":2}`},
			},
			[]string{`conflict: variable $x is 1 from group "top" and 2 from group "b"`},
		},
		"an environment group outvotes": {
			[]group{{name: "a", rule: all, env: "one"}, {name: "b", rule: all, env: "two", envGroup: true}},
			[]string{"environment two"},
		},
		"its children have its vote": {
			[]group{{name: "a", rule: all, env: "one"}, {name: "b", rule: all, env: "two", envGroup: true}, {name: "c", parent: "b", rule: all}},
			[]string{"environment two"},
		},
		"a child's own environment has no vote by itself": {
			[]group{{name: "a", rule: all, env: "one"}, {name: "b", rule: all, env: "two", envGroup: true}, {name: "c", parent: "b", rule: all, env: "three"}},
			[]string{`conflict: the environment is "one" from group "a" and "three" from group "c"`},
		},
		"two environment groups disagree": {
			[]group{{name: "a", rule: all, env: "one", envGroup: true}, {name: "b", rule: all, env: "agent-specified", envGroup: true}},
			[]string{`conflict: the environment is "one" from group "a" and "agent-specified" from group "b"`},
		},
		"who says nothing about the environment has no part": {
			[]group{{name: "a", rule: all, env: "one"}, {name: "b", rule: all, classes: `{"ntp":{}}`}},
			[]string{"class ntp", "environment one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			groups := build(t, c.groups...)
			got := told(Classify(groups, sampleNode(t)))
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Five groups, an inherited parameter and a conflict: each origin is told.
func TestExplainTellsEachOrigin(t *testing.T) {
	t.Parallel()
	groups := build(
		t,
		group{name: "debian", rule: `facts.os.family = "Debian"`, classes: `{"apt":{"purge":true,"source":"inside"}}`},
		group{name: "web", parent: "debian", rule: `trusted.extensions.pp_role = "web"`, classes: `{"apt":{"purge":false},"apache":{}}`},
		group{name: "big", parent: "debian", rule: `facts.processors.count >= 4 and not facts.virtual = true`, variables: `{"tier":"gold"}`},
		group{name: "pinned", pin: "web-1.example.test", variables: `{"tier":"silver"}`},
		group{name: "database", parent: "debian", rule: `name ~ "web" and (trusted.extensions.pp_role = "db" or facts.os.family = "RedHat")`},
		group{name: "below", parent: "database", rule: `name ~ "."`},
	)
	e := NewTree(groups).Explain(sampleNode(t))
	names := map[ID]string{}
	var members []string
	for _, m := range e.Members {
		names[m.Group] = m.Name
		line := fmt.Sprintf("%s member=%t leaf=%t pinned=%t", m.Name, m.Member, m.Leaf, m.Pinned)
		if m.Stopper != "" {
			line += " stopped by " + names[m.Stopper]
		}
		for _, f := range m.Why {
			line += fmt.Sprintf("; %s %t (%s)", f.Condition, f.Holds, f.Found)
		}
		members = append(members, line)
	}
	wantMembers := []string{
		`All Nodes member=true leaf=false pinned=false`,
		`debian member=true leaf=false pinned=false; facts.os.family = "Debian" true ("Debian")`,
		`big member=true leaf=true pinned=false; facts.processors.count >= 4 true (4); not facts.virtual = "true" true (false)`,
		`database member=false leaf=false pinned=false stopped by database; trusted.extensions.pp_role = "db" false ("web"); facts.os.family = "RedHat" false ("Debian")`,
		`below member=false leaf=false pinned=false stopped by database`,
		`web member=true leaf=true pinned=false; trusted.extensions.pp_role = "web" true ("web")`,
		`pinned member=true leaf=true pinned=true`,
	}
	if diff := cmp.Diff(wantMembers, members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	var origins []string
	for _, o := range e.Result.Origins {
		var via []string
		for _, id := range o.Via {
			via = append(via, names[id])
		}
		origins = append(origins, fmt.Sprintf("%s: %s from %s via %s: %s", o.Item, o.Value, names[o.Group], strings.Join(via, ","), o.State))
	}
	wantOrigins := []string{
		`class apache: null from web via web: used`,
		`class apt: null from debian via big,web: used`,
		`class apt: null from web via web: used`,
		`parameter apt::purge: true from debian via big,web: conflicting`,
		`parameter apt::purge: false from web via web: conflicting`,
		`parameter apt::source: "inside" from debian via big,web: used`,
		`variable $tier: "gold" from big via big: conflicting`,
		`variable $tier: "silver" from pinned via pinned: conflicting`,
	}
	if diff := cmp.Diff(wantOrigins, origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	err := NewTree(groups).Disagreement(e.Result, "web-1.example.test", false)
	want := "groups disagree about web-1.example.test: parameter apt::purge is true from group \"debian\" and false from group \"web\"; variable $tier is"
	if fault.Of(err) != fault.Invalid || !strings.HasPrefix(fault.Detail(err), want) {
		t.Errorf("got %v", err)
	}
	if err := NewTree(groups).Disagreement(e.Result, "web-1.example.test", true); err != nil {
		t.Errorf("about the environment: %v", err)
	}
}

// Rules that are put together here cannot grow beyond what is read back.
func TestARuleThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	one, err := ParseRule(`name = "a"`)
	if err != nil {
		t.Fatal(err)
	}
	many := make([]Rule, maxConditions)
	for i := range many {
		many[i] = *one
	}
	deep := *one
	for range maxDepth + 1 {
		deep = Negate(deep)
	}
	fine := All(many[:100]...)
	for _, c := range []struct {
		rule *Rule
		ok   bool
	}{{&fine, true}, {new(Any(many...)), false}, {&deep, false}, {&Rule{Op: And}, false}} {
		_, err := Group{ID: NewID(), Name: "g", Parent: RootID, Rule: c.rule}.Checked()
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "rule") {
			t.Errorf("%s of %d: %v", c.rule.Op, len(c.rule.Rules), err)
		}
	}
}

func TestABrokenGroupTakesOnlyItselfOut(t *testing.T) {
	t.Parallel()
	groups := build(t, group{name: "a", rule: `name ~ "."`, classes: `{"a":{}}`}, group{name: "b", parent: "a", rule: `name ~ "."`, classes: `{"b":{}}`},
		group{name: "c", rule: `name ~ "."`, classes: `{"c":{}}`})
	text, err := json.Marshal(groups[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.Replace(string(text), `"name","."`, `"name","("`, 1)), &groups[2]); err != nil {
		t.Fatal(err)
	}
	groups = append(groups, Group{ID: NewID(), Name: "lost", Parent: NewID()})
	got := told(Classify(groups, sampleNode(t)))
	if diff := cmp.Diff([]string{"class a", "class c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var defects []string
	for _, g := range NewTree(groups).Defects() {
		defects = append(defects, g.Name+": "+g.Defect[:20])
	}
	if diff := cmp.Diff([]string{"lost: no way leads from it", "b: its rule cannot be r"}, defects); diff != "" {
		t.Errorf("defects (-want +got):\n%s", diff)
	}
}

// What a node gets does not depend on the order of groups, comes only from groups
// that have it, and of everything that is given and in no conflict it gets all.
func TestClassificationHoldsTogether(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var described []group
		names := []string{RootName}
		for i := range rapid.IntRange(1, 8).Draw(rt, "groups") {
			name := fmt.Sprint("g", i)
			described = append(described, group{
				name: name, parent: rapid.SampledFrom(names).Draw(rt, "parent"),
				rule:      rapid.SampledFrom([]string{"", `name ~ "."`, `name = "none"`, `facts.os.family = "Debian"`}).Draw(rt, "rule"),
				env:       rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "env"),
				variables: rapid.SampledFrom([]string{"", `{"x":1}`, `{"x":2}`}).Draw(rt, "variables"),
			})
			names = append(names, name)
		}
		groups, node := build(t, described...), sampleNode(t)
		r := Classify(groups, node)
		shuffled := rapid.Permutation(groups).Draw(rt, "order")
		if diff := cmp.Diff(r, Classify(shuffled, node), cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("the order counts:\n%s", diff)
		}
		byID := map[ID]Group{}
		for _, g := range groups {
			byID[g.ID] = g
		}
		for _, g := range groups {
			if got, want := slices.Contains(r.Groups, g.ID), naiveMember(byID, g, node); got != want {
				rt.Fatalf("member of %s: %t, want %t", g.Name, got, want)
			}
		}
		values, conflict := map[string]bool{}, false
		for _, leaf := range r.Leaves {
			if v := naiveVariable(byID, byID[leaf]); v != "" {
				values[v] = true
			}
		}
		for _, c := range r.Conflicts {
			conflict = conflict || c.Item.Kind == Variable
		}
		if conflict != (len(values) > 1) || len(values) == 1 && !values[string(r.Parameters["x"])] {
			rt.Fatalf("leaves give %v, the node gets %s, conflict %t", values, r.Parameters["x"], conflict)
		}
	})
}

// naiveMember asks every group up to the root.
func naiveMember(groups map[ID]Group, g Group, node Node) bool {
	if g.Rule == nil {
		return false
	}
	for ; !g.IsRoot(); g = groups[g.Parent] {
		if g.Rule != nil && !g.Rule.Holds(node) {
			return false
		}
	}
	return true
}

func naiveVariable(groups map[ID]Group, g Group) string {
	for ; !g.IsRoot(); g = groups[g.Parent] {
		if v, ok := g.Variables["x"]; ok {
			return string(v)
		}
	}
	return ""
}

func TestPlanShowsAndDoesTheSame(t *testing.T) {
	t.Parallel()
	now := build(t, group{name: "a", rule: `name = "x"`}, group{name: "b", parent: "a"}, group{name: "c"})
	for i := range now {
		now[i].Revision = 3
	}
	wanted := []Wanted{
		{Group: Group{Name: "b", Description: "moved"}},
		{Group: Group{Name: "d"}, Parent: "b"},
		{Group: Group{ID: idOf("c"), Name: "renamed"}, Parent: "d"},
	}
	plan, err := Plan(now, wanted, func() ID { return idOf("d") })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var changes []Change
	for _, p := range plan {
		changes = append(changes, p.Change)
		line := fmt.Sprint(p.Change.Kind, " ", p.Name, " at ", p.Change.Group.Revision, ":")
		for _, d := range p.Differences {
			line += fmt.Sprintf(" %s %q->%q", d.Field, d.Old, d.New)
		}
		got = append(got, line)
	}
	want := []string{
		`create d at 0: name ""->"d" parent ""->"b"`,
		`update b at 3: parent "a"->"All Nodes" description ""->"moved"`,
		`update c at 3: name "c"->"renamed" parent "All Nodes"->"d"`,
		`delete a at 3: name "a"->"" parent "All Nodes"->"" rule "name = \"x\""->""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	applied, err := Apply(now, changes)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Plan(applied.Groups, wanted, NewID)
	if err != nil || len(again) != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

func TestPlansThatAreRefused(t *testing.T) {
	t.Parallel()
	now := build(t, group{name: "a"})
	for name, c := range map[string]struct {
		wanted []Wanted
		want   string
	}{
		"twice":            {[]Wanted{{Group: Group{Name: "a"}}, {Group: Group{Name: "a"}}}, `the group "a" is described twice`},
		"twice by id":      {[]Wanted{{Group: Group{Name: "a"}}, {Group: Group{ID: idOf("a"), Name: "b"}}}, `described twice`},
		"unknown parent":   {[]Wanted{{Group: Group{Name: "b"}, Parent: "none"}}, `no group "none" is described`},
		"parent that goes": {[]Wanted{{Group: Group{Name: "b"}, Parent: "a"}}, `no group "a" is described`},
		"circle":           {[]Wanted{{Group: Group{Name: "b"}, Parent: "c"}, {Group: Group{Name: "c"}, Parent: "b"}}, `the groups b, c would be above themselves`},
		"bad variable":     {[]Wanted{{Group: Group{Name: "b", Variables: Values{"facts": json.RawMessage("1")}}}}, `$facts is Puppet's own`},
	} {
		if _, err := Plan(now, c.wanted, NewID); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

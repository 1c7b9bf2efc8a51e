package classify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Kind says what sort of thing a group gives.
type Kind string

// The kinds, in the order in which they are listed.
const (
	Environment Kind = "environment"
	Class       Kind = "class"
	Parameter   Kind = "parameter" // of a class
	Variable    Kind = "variable"
	Data        Kind = "data" // for a parameter of a class
)

// Item names one thing that groups can give.
type Item struct {
	Kind  Kind
	Class string // of Class, Parameter, Data
	Name  string // of Parameter, Variable, Data
}

// String is the item as people know it.
func (i Item) String() string {
	switch i.Kind {
	case Environment:
		return "the environment"
	case Class:
		return "class " + i.Class
	case Parameter:
		return "parameter " + i.Class + "::" + i.Name
	case Variable:
		return "variable $" + i.Name
	case Data:
		return "data " + i.Class + "::" + i.Name
	}
	return i.Name
}

// State is what became of a value.
type State string

// The states.
const (
	Used        State = "used"
	Overridden  State = "overridden"  // a group below gives another
	Conflicting State = "conflicting" // groups disagree
	Outvoted    State = "outvoted"    // an environment group decides
)

// Origin is a value and the group that gives it.
type Origin struct {
	Item      Item
	Value     json.RawMessage // null for Class
	Group     ID              // that it is written in
	GroupName string
	Via       []ID // the leaves that it reaches the node through
	State     State
}

// Conflict is a thing that leaves give different values for.
type Conflict struct {
	Item    Item
	Origins []Origin
}

// Result is what a node gets. What there is a conflict about is left out of the
// values.
type Result struct {
	Groups      []ID   // that the node is in, parents before children
	Leaves      []ID   // those of them that have no other below
	Environment string // a name, AgentSpecified, or empty: no group says
	Classes     Classes
	Parameters  Values // top-scope variables
	Data        Classes
	Conflicts   []Conflict
	Origins     []Origin
}

// Classify says what node gets of groups.
func Classify(groups []Group, node Node) Result { return NewTree(groups).Classify(node) }

// Classify says what node gets.
func (t *Tree) Classify(node Node) Result { return t.result(t.stands(node)) }

func (g *Group) pins(node Node) bool {
	_, found := slices.BinarySearch(g.Pinned, node.Name)
	return found
}

func (t *Tree) result(stands []stand) Result {
	r := Result{Classes: Classes{}, Parameters: Values{}, Data: Classes{}}
	found := survey{}
	for i, s := range stands {
		if s.member {
			r.Groups = append(r.Groups, t.groups[i].ID)
		}
		if s.leaf {
			r.Leaves = append(r.Leaves, t.groups[i].ID)
			t.inherit(i, found)
		}
	}
	for _, item := range slices.SortedFunc(maps.Keys(found), compareItems) {
		r.settle(item, found[item])
	}
	return r
}

// given is a value on its way to the node.
type given struct {
	value     json.RawMessage
	group     int
	id        ID
	name      string
	via       []ID
	used      bool // by one of via
	authority bool // the environment of an environment group
}

// survey collects what all leaves give, by item and then by the group that it is
// written in, in the order in which they are met.
type survey map[Item][]given

// inherit adds what leaf i gives: the nearest group that gives a thing wins.
func (t *Tree) inherit(leaf int, found survey) {
	seen := map[Item]bool{}
	for i := leaf; i >= 0; i = t.parents[i] {
		g := &t.groups[i]
		g.gives(func(item Item, value json.RawMessage) {
			found.add(item, given{
				value: value, group: i, id: g.ID, name: g.Name, via: []ID{t.groups[leaf].ID}, used: !seen[item], authority: g.EnvironmentGroup,
			})
			seen[item] = item.Kind != Class // a class is there or not; every group that names it counts
		})
	}
}

func (s survey) add(item Item, g given) {
	for i := range s[item] {
		if known := &s[item][i]; known.group == g.group {
			known.via = append(known.via, g.via...)
			known.used = known.used || g.used
			return
		}
	}
	s[item] = append(s[item], g)
}

// gives visits everything that is written in the group.
func (g *Group) gives(visit func(Item, json.RawMessage)) {
	if g.Environment != "" {
		visit(Item{Kind: Environment}, json.RawMessage(`"`+g.Environment+`"`))
	}
	for class, values := range g.Classes {
		visit(Item{Kind: Class, Class: class}, json.RawMessage("null"))
		for name, value := range values {
			visit(Item{Kind: Parameter, Class: class, Name: name}, value)
		}
	}
	for name, value := range g.Variables {
		visit(Item{Kind: Variable, Name: name}, value)
	}
	for class, values := range g.Data {
		for name, value := range values {
			visit(Item{Kind: Data, Class: class, Name: name}, value)
		}
	}
}

// settle decides what the node gets for one item.
func (r *Result) settle(item Item, all []given) {
	slices.SortFunc(all, func(a, b given) int { return cmp.Compare(a.group, b.group) })
	authority := slices.ContainsFunc(all, func(g given) bool { return g.used && g.authority && item.Kind == Environment })
	origins := make([]Origin, len(all))
	var candidates []int
	for i, g := range all {
		origins[i] = Origin{Item: item, Value: g.value, Group: g.id, GroupName: g.name, Via: g.via, State: Used}
		switch {
		case !g.used:
			origins[i].State = Overridden
		case authority && !g.authority:
			origins[i].State = Outvoted
		default:
			candidates = append(candidates, i)
		}
	}
	value := origins[candidates[0]].Value
	if agree := !slices.ContainsFunc(candidates, func(i int) bool { return string(origins[i].Value) != string(value) }); agree {
		r.take(item, value)
	} else {
		conflict := Conflict{Item: item}
		for _, i := range candidates {
			origins[i].State = Conflicting
			conflict.Origins = append(conflict.Origins, origins[i])
		}
		r.Conflicts = append(r.Conflicts, conflict)
	}
	r.Origins = append(r.Origins, origins...)
}

func (r *Result) take(item Item, value json.RawMessage) {
	switch item.Kind {
	case Environment:
		r.Environment = strings.Trim(string(value), `"`) // a checked name
	case Class:
		if r.Classes[item.Class] == nil {
			r.Classes[item.Class] = Values{}
		}
	case Parameter: // comes after its Class
		r.Classes[item.Class][item.Name] = value
	case Variable:
		r.Parameters[item.Name] = value
	case Data:
		if r.Data[item.Class] == nil {
			r.Data[item.Class] = Values{}
		}
		r.Data[item.Class][item.Name] = value
	}
}

// Lookup is the data by class::parameter, as a lookup asks for it.
func (r Result) Lookup() Values {
	values := Values{}
	for class, data := range r.Data {
		for name, value := range data {
			values[class+"::"+name] = value
		}
	}
	return values
}

var kinds = []Kind{Environment, Class, Parameter, Variable, Data}

func compareItems(a, b Item) int {
	return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Name, b.Name))
}

// Disagreement is the Conflict fault about r's environment, or the Invalid one
// about the rest; nil when groups agree about what is asked. It names groups with
// their values.
func (t *Tree) Disagreement(r Result, node fleet.Certname, aboutEnvironment bool) error {
	var parts []string
	for _, c := range r.Conflicts {
		if (c.Item.Kind == Environment) == aboutEnvironment {
			parts = append(parts, word(c))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	kind := fault.Invalid
	if aboutEnvironment {
		kind = fault.Conflict
	}
	more := ""
	if len(parts) > 5 {
		more = fmt.Sprintf("; and %d more", len(parts)-5)
		parts = parts[:5]
	}
	return fault.New(kind, "groups disagree about %s: %s%s; `tutti group explain %s` shows all", node, strings.Join(parts, "; "), more, node)
}

// word says who gives what.
func word(c Conflict) string {
	var sides []string
	for _, o := range c.Origins {
		sides = append(sides, fmt.Sprintf("%.100s from group %q", o.Value, o.GroupName))
	}
	return c.Item.String() + " is " + strings.Join(sides, " and ")
}

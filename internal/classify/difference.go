package classify

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Difference is one thing that two states of a group do not share.
type Difference struct {
	Field string // as people know it: rule, classes.apache.port
	Old   string // empty: it was not there
	New   string // empty: it will not be there
}

// Differences lists what would change, in the order of the fields. Values are
// JSON, the rest is text.
func Differences(from, to Group) []Difference {
	before, after := from.flat(), to.flat()
	var out []Difference
	for _, field := range slices.SortedFunc(maps.Keys(union(before, after)), byField) {
		if before[field] != after[field] {
			out = append(out, Difference{Field: field, Old: before[field], New: after[field]})
		}
	}
	return out
}

func union(a, b map[string]string) map[string]string {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// fields is the order in which people read a group.
var fields = []string{"name", "parent", "description", "environment", "environment_group", "rule", "nodes", "classes", "variables", "data"}

func byField(a, b string) int {
	headA, _, _ := strings.Cut(a, ".")
	headB, _, _ := strings.Cut(b, ".")
	if c := slices.Index(fields, headA) - slices.Index(fields, headB); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// flat is everything that counts of a group, by field.
func (g Group) flat() map[string]string {
	flat := map[string]string{"name": g.Name, "parent": string(g.Parent), "description": g.Description, "environment": g.Environment}
	if g.EnvironmentGroup {
		flat["environment_group"] = "true"
	}
	if g.Rule != nil {
		flat["rule"] = g.Rule.String()
	}
	for _, name := range g.Pinned {
		flat["nodes."+string(name)] = string(name)
	}
	for class, values := range g.Classes {
		flat["classes."+class] = class
		values.flatInto(flat, "classes."+class+".")
	}
	g.Variables.flatInto(flat, "variables.")
	for class, values := range g.Data {
		values.flatInto(flat, "data."+class+".")
	}
	return flat
}

func (v Values) flatInto(flat map[string]string, prefix string) {
	for name, value := range v {
		flat[prefix+name] = string(value)
	}
}

// document is how a group travels and is stored.
type document struct {
	ID               ID               `json:"id"`
	Name             string           `json:"name"`
	Parent           ID               `json:"parent"`
	Description      string           `json:"description,omitempty"`
	Environment      string           `json:"environment,omitempty"`
	EnvironmentGroup bool             `json:"environment_group,omitempty"`
	Rule             json.RawMessage  `json:"rule,omitempty"`
	Pinned           []fleet.Certname `json:"nodes,omitempty"`
	Classes          Classes          `json:"classes,omitempty"`
	Variables        Values           `json:"variables,omitempty"`
	Data             Classes          `json:"data,omitempty"`
}

// MarshalJSON writes the stored form: without revision and what goes with it.
func (g Group) MarshalJSON() ([]byte, error) {
	d := document{
		ID: g.ID, Name: g.Name, Parent: g.Parent, Description: g.Description, Environment: g.Environment, EnvironmentGroup: g.EnvironmentGroup,
		Pinned: g.Pinned, Classes: g.Classes, Variables: g.Variables, Data: g.Data,
	}
	if g.Rule != nil {
		rule, err := g.Rule.MarshalJSON()
		if err != nil {
			return nil, err
		}
		d.Rule = rule
	}
	return compact(d)
}

// UnmarshalJSON reads the stored form. What cannot be used makes the group
// defective instead of failing: one bad row must not hide the others.
func (g *Group) UnmarshalJSON(text []byte) error {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	*g = Group{
		ID: d.ID, Name: d.Name, Parent: d.Parent, Description: d.Description, Environment: d.Environment, EnvironmentGroup: d.EnvironmentGroup,
		Pinned: d.Pinned, Classes: d.Classes, Variables: d.Variables, Data: d.Data,
	}
	g.Defect = g.adopt(d.Rule)
	return nil
}

// adopt takes the rule and brings the group into its canonical form; it returns
// why that cannot be.
func (g *Group) adopt(rule json.RawMessage) (defect string) {
	var err error
	if len(rule) > 0 {
		if g.Rule, err = ParseJSON(rule); err != nil {
			return "its rule cannot be read: " + err.Error()
		}
	}
	checked, err := g.Checked()
	if err != nil {
		return err.Error()
	}
	*g = checked
	return ""
}

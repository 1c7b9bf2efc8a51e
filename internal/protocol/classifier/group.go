package classifier

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// wireGroup is a group as the classifier's clients know it.
type wireGroup struct {
	ID                string           `json:"id"`
	Name              string           `json:"name"`
	Description       string           `json:"description,omitempty"`
	Parent            string           `json:"parent"`
	Environment       string           `json:"environment"`
	EnvironmentTrumps bool             `json:"environment_trumps"`
	Rule              json.RawMessage  `json:"rule"` // or null
	Classes           classify.Classes `json:"classes"`
	ConfigData        classify.Classes `json:"config_data"`
	Variables         classify.Values  `json:"variables"`
	LastEdited        string           `json:"last_edited,omitempty"`
	SerialNumber      int64            `json:"serial_number"`
}

const wireTime = "2006-01-02T15:04:05.000Z"

// family is all groups, to find those above in.
type family map[classify.ID]classify.Group

func familyOf(groups []classify.Group) family {
	all := make(family, len(groups))
	for _, g := range groups {
		all[g.ID] = g
	}
	return all
}

// line is a group and those above it, up to the root, or as far as they hang together.
func (f family) line(g classify.Group) []classify.Group {
	line := []classify.Group{g}
	for !g.IsRoot() && len(line) <= len(f) {
		above, ok := f[g.Parent]
		if !ok {
			break
		}
		line, g = append(line, above), above
	}
	return line
}

// environment is the group's own, or the one that it inherits.
func (f family) environment(g classify.Group) string {
	for _, above := range f.line(g) {
		if above.Environment != "" {
			return above.Environment
		}
	}
	return classify.AgentSpecified
}

func (f family) wire(g classify.Group) wireGroup {
	out := wireGroup{
		ID: string(g.ID), Name: g.Name, Description: g.Description, Parent: string(g.Parent), Environment: f.environment(g),
		EnvironmentTrumps: g.EnvironmentGroup, Rule: wireRule(g), Classes: orNone(g.Classes), ConfigData: orNone(g.Data),
		Variables: g.Variables, SerialNumber: g.Revision,
	}
	if out.Variables == nil {
		out.Variables = classify.Values{}
	}
	if !g.ChangedAt.IsZero() {
		out.LastEdited = g.ChangedAt.UTC().Format(wireTime)
	}
	return out
}

func orNone(classes classify.Classes) classify.Classes {
	out := classify.Classes{}
	for class, values := range classes {
		if out[class] = values; values == nil {
			out[class] = classify.Values{}
		}
	}
	return out
}

// inherited is the group with what it inherits, the nearer value first.
func (f family) inherited(g classify.Group) wireGroup {
	out := f.wire(g)
	merge := func(into, from classify.Values) {
		for name, value := range from {
			if _, nearer := into[name]; !nearer {
				into[name] = value
			}
		}
	}
	classes := func(into, from classify.Classes) {
		for class, values := range from {
			if into[class] == nil {
				into[class] = classify.Values{}
			}
			merge(into[class], values)
		}
	}
	whole := wireGroup{Classes: classify.Classes{}, ConfigData: classify.Classes{}, Variables: classify.Values{}}
	for _, above := range f.line(g) {
		classes(whole.Classes, above.Classes)
		classes(whole.ConfigData, above.Data)
		merge(whole.Variables, above.Variables)
	}
	out.Classes, out.ConfigData, out.Variables = whole.Classes, whole.ConfigData, whole.Variables
	return out
}

// whole is the group's rule with pinned nodes as branches of an `or`; nil if there
// are neither.
func whole(g classify.Group) *classify.Rule {
	var branches []classify.Rule
	if g.Rule != nil {
		branches = append(branches, *g.Rule)
		if g.Rule.Op == classify.Or {
			branches = slices.Clone(g.Rule.Rules)
		}
	}
	for _, node := range g.Pinned {
		branches = append(branches, isNamed(node))
	}
	if len(branches) == 0 {
		return nil
	}
	rule := classify.Any(branches...)
	return &rule
}

func isNamed(node fleet.Certname) classify.Rule {
	rule, _ := classify.Compare(classify.Equals, classify.Path{Root: classify.Name}, string(node)) // any text is a value
	return rule
}

// wireRule always has the `or` that clients put pinned nodes into.
func wireRule(g classify.Group) json.RawMessage {
	rule := whole(g)
	if rule == nil {
		return json.RawMessage("null")
	}
	text, _ := rule.MarshalJSON() // strings and lists
	if len(g.Pinned) > 0 && rule.Op != classify.Or {
		text = slices.Concat([]byte(`["or",`), text, []byte(`]`))
	}
	return text
}

// setRule takes a rule apart into a rule and pinned nodes.
func setRule(g *classify.Group, text json.RawMessage) error {
	g.Rule, g.Pinned = nil, nil
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil || len(list) < 2 || string(list[0]) != `"or"` {
		var err error
		g.Rule, err = parseRule(text)
		return err
	}
	var branches []classify.Rule
	for _, branch := range list[1:] {
		rule, err := parseRule(branch)
		if err != nil {
			return err
		}
		if rule != nil { // ["and"] and ["or"] are no conditions
			branches = append(branches, *rule)
		}
	}
	split(g, branches)
	return nil
}

// split makes a rule and pinned nodes of the branches of an `or`. One that is left is
// the rule itself, and if that is an `or`, its branches count.
func split(g *classify.Group, branches []classify.Rule) {
	var rest []classify.Rule
	for _, branch := range branches {
		if node, ok := pinned(branch); ok {
			g.Pinned = append(g.Pinned, node)
			continue
		}
		rest = append(rest, branch)
	}
	switch {
	case len(rest) == 1 && rest[0].Op == classify.Or:
		split(g, rest[0].Rules)
	case len(rest) > 0:
		rule := classify.Any(rest...)
		g.Rule = &rule
	}
}

// sameJSON says whether two texts are one value.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func parseRule(text json.RawMessage) (*classify.Rule, error) {
	if len(text) == 0 {
		return nil, nil //nolint:nilnil // no rule
	}
	rule, err := classify.ParseJSON(text)
	if err != nil {
		return nil, bad("schema-violation", map[string]any{"submitted": text, "error": map[string]string{"rule": fault.Detail(err)}}, "%s", fault.Detail(err))
	}
	return rule, nil
}

// pinned says whether a rule only names one node.
func pinned(rule classify.Rule) (fleet.Certname, bool) {
	if rule.Op != classify.Equals || rule.Path.Root != classify.Name {
		return "", false
	}
	node, err := fleet.ParseCertname(rule.Value)
	return node, err == nil
}

// stamp signs a change.
func stamp(g *classify.Group, by fleet.Actor, now time.Time) {
	g.ChangedBy, g.ChangedAt = by.Name, now.UTC()
}

package classify

import (
	"encoding/json"
	"slices"
)

// Explanation is a result with how each group came to its verdict.
type Explanation struct {
	Result  Result
	Members []Membership // every group, parents before children
}

// Membership is how a node stands to a group.
type Membership struct {
	Group   ID
	Name    string
	Depth   int // the root has 0
	Member  bool
	Leaf    bool
	Pinned  bool
	Stopper ID        // of a node that is kept out: the group whose condition fails, this one or one above
	Why     []Finding // the conditions that decided about this group's own rule
	Defect  string
}

// Finding is one condition of a rule, and what it found.
type Finding struct {
	Condition string // for people
	Holds     bool
	Found     json.RawMessage // the value at the condition's path; nil when there is none
}

// maxFindings and maxFoundBytes bound what is told about one group.
const (
	maxFindings   = 20
	maxFoundBytes = 200
)

// Explain classifies node and tells why.
func (t *Tree) Explain(node Node) Explanation {
	stands := t.stands(node)
	out := Explanation{Result: t.result(stands)}
	for i, s := range stands {
		g := &t.groups[i]
		m := Membership{
			Group: g.ID, Name: g.Name, Depth: t.depths[i], Member: s.member, Leaf: s.leaf, Pinned: s.pinned, Defect: g.Defect,
		}
		if s.stopped >= 0 {
			m.Stopper = t.groups[s.stopped].ID
		}
		if g.Rule != nil && !s.pinned && (s.stopped < 0 || s.stopped == i) && !g.IsRoot() {
			m.Why = g.Rule.findings(node)
			m.Why = m.Why[:min(len(m.Why), maxFindings)]
		}
		out.Members = append(out.Members, m)
	}
	for _, g := range t.detached {
		out.Members = append(out.Members, Membership{Group: g.ID, Name: g.Name, Stopper: g.ID, Defect: g.Defect})
	}
	return out
}

// findings lists the conditions that decided: of a rule that holds, those that
// carry it; of one that fails, those that failed it.
func (r Rule) findings(node Node) []Finding {
	holds := r.Holds(node)
	switch {
	case r.Op == And && holds, r.Op == Or && !holds:
		var out []Finding
		for _, sub := range r.Rules {
			if out = append(out, sub.findings(node)...); len(out) > maxFindings {
				break
			}
		}
		return out
	case r.Op == And, r.Op == Or:
		decisive := slices.IndexFunc(r.Rules, func(sub Rule) bool { return sub.Holds(node) == holds })
		return r.Rules[decisive].findings(node)
	case r.Op == Not && len(r.Rules) == 1 && len(r.Rules[0].Rules) > 0:
		return r.Rules[0].findings(node)
	case r.Op == Not && len(r.Rules) == 1:
		return []Finding{{Condition: r.String(), Holds: holds, Found: r.Rules[0].found(node)}}
	}
	return []Finding{{Condition: r.String(), Holds: holds, Found: r.found(node)}}
}

// found is the value that the condition looked at, as JSON; a long one is cut to
// a text that says so.
func (r Rule) found(node Node) json.RawMessage {
	value, ok := node.value(r.Path)
	if !ok {
		return nil
	}
	text, err := compact(value)
	if err != nil {
		return nil
	}
	if len(text) > maxFoundBytes {
		text, _ = compact(string([]rune(string(text))[:maxFoundBytes/4]) + "…") // a string is JSON
	}
	return text
}

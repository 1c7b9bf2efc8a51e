package classifier

import (
	"encoding/json"
	"net/http"

	"github.com/tutti-project/tutti/internal/classify"
)

// translateRule writes a rule as a query of PuppetDB's nodes, or with format=inventory
// of its inventory.
func (h *Handler) translateRule(w http.ResponseWriter, r *http.Request) error {
	var text json.RawMessage
	if err := body(w, r, classify.MaxRuleBytes, &text); err != nil {
		return err
	}
	rule, err := parseRule(text)
	if err != nil {
		return err
	}
	if rule == nil {
		return bad("schema-violation", map[string]any{"submitted": text}, "a rule is expected, like [\"=\", \"name\", \"web-1\"]")
	}
	write := writer(r.URL.Query().Get("format"))
	if write == nil {
		return bad("malformed-request", nil, "format must be nodes or inventory")
	}
	query, err := translated(*rule, write)
	if err != nil {
		return err
	}
	return answer(w, map[string]any{"query": query})
}

func answer(w http.ResponseWriter, value any) error {
	write(w, http.StatusOK, value)
	return nil
}

// operand is how a query names what a rule looks at; nil if it cannot.
type operand func(classify.Path) any

func writer(format string) operand {
	switch format {
	case "", "nodes":
		return nodesOperand
	case "inventory":
		return inventoryOperand
	}
	return nil
}

// nodesOperand knows names and whole facts.
func nodesOperand(path classify.Path) any {
	switch {
	case path.Root == classify.Name:
		return "certname"
	case path.Root == classify.Fact && len(path.Steps) == 1 && !path.Steps[0].IsIndex:
		return []string{"fact", path.Steps[0].Key}
	}
	return nil
}

// inventoryOperand knows facts.a.b and trusted.a.b.
func inventoryOperand(path classify.Path) any {
	if path.Root == classify.Name {
		return "certname"
	}
	return path.String()
}

func translated(rule classify.Rule, name operand) (any, error) {
	query := []any{string(rule.Op)}
	for _, sub := range rule.Rules {
		part, err := translated(sub, name)
		if err != nil {
			return nil, err
		}
		query = append(query, part)
	}
	if len(rule.Rules) > 0 {
		return query, nil
	}
	left := name(rule.Path)
	if left == nil {
		return nil, bad("untranslatable-rule", map[string]any{"rule": rule}, "%s has no place in a query of nodes; ask for format=inventory", rule.Path)
	}
	var value any = rule.Value
	switch rule.Op {
	case classify.Less, classify.LessEqual, classify.Greater, classify.GreaterEqual:
		if json.Valid([]byte(rule.Value)) { // 007 is no JSON
			value = json.Number(rule.Value)
		}
	case classify.And, classify.Or, classify.Not, classify.Equals, classify.Matches:
	}
	return append(query, left, value), nil
}

// showRules shows a group's rule, the one that counts (with those above it), and both
// queries; null for what cannot be asked.
func (h *Handler) showRules(w http.ResponseWriter, r *http.Request) error {
	g, groups, err := h.group(r)
	if err != nil {
		return err
	}
	all := familyOf(groups)
	answered := map[string]any{"rule": wireRule(g), "rule_with_inherited": nil, "translated": nil}
	if counting := all.counting(g); counting != nil {
		queries := map[string]any{"nodes_query_format": nil, "inventory_query_format": nil}
		for name, write := range map[string]operand{"nodes_query_format": nodesOperand, "inventory_query_format": inventoryOperand} {
			if query, err := translated(*counting, write); err == nil {
				queries[name] = query
			}
		}
		answered["rule_with_inherited"], answered["translated"] = counting, queries
	}
	return answer(w, answered)
}

// counting is the rule that decides who is in the group: its own and those above it;
// nil when it has none of its own, and so no nodes.
func (f family) counting(g classify.Group) *classify.Rule {
	if whole(g) == nil {
		return nil
	}
	var rules []classify.Rule
	for _, above := range f.line(g) {
		if rule := whole(above); rule != nil {
			rules = append(rules, *rule)
		}
	}
	rule := classify.All(rules...)
	return &rule
}

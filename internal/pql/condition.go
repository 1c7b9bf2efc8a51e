package pql

// NodeCondition reads a condition on nodes, as it may stand in nodes{...}. It may
// also name what only the inventory has: facts, trusted, environment, timestamp.
//
//	facts.os.family = "Debian" and latest_report_status = "failed"
//
// Such a part becomes a subquery, `inventory { facts.os.family = "Debian" }`; so it
// does not hold for a node without facts, and its negation does.
func NodeCondition(text string) (Expr, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	p.space()
	e, err := p.or()
	if err != nil {
		return nil, err.in(text)
	}
	p.space()
	if p.at < len(p.text) {
		p.miss("the end of the condition")
		return nil, p.fail()
	}
	e = onNodes(e)
	if err := (checker{LookUp("nodes")}).expr(e); err != nil {
		return nil, err.in(text)
	}
	return e, nil
}

// CompleteCondition lists what may follow the beginning of a node's condition.
func CompleteCondition(before string) []Suggestion {
	seen := map[Suggestion]bool{}
	var out []Suggestion
	for _, entity := range []string{"nodes", "inventory"} {
		for _, s := range Complete(entity + "{" + before) {
			if !seen[s] && s.Text != "}" && s.Kind != "entity" {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// onNodes moves conditions on the inventory into subqueries, neighbours into one.
func onNodes(e Expr) Expr {
	switch e := e.(type) {
	case And:
		return one(gathered(e.Terms, func(terms []Expr) Expr { return And{terms} }))
	case Or:
		return one(gathered(e.Terms, func(terms []Expr) Expr { return Or{terms} }))
	case Not:
		return Not{onNodes(e.Term)}
	case Compare:
		return moved(e, e.Field)
	case Null:
		return moved(e, e.Field)
	case In:
		return moved(e, e.Fields...)
	}
	return e
}

// gathered is the terms with those about the inventory as one; a single one is all.
func gathered(terms []Expr, join func([]Expr) Expr) []Expr {
	var here, there []Expr
	var at *Query
	for _, term := range terms {
		term = onNodes(term)
		if s, ok := term.(Subquery); ok && s.Query.Pos == (Pos{}) { // made here
			if at == nil {
				at = s.Query
				here = append(here, s)
			}
			there = append(there, s.Query.Where)
			continue
		}
		here = append(here, term)
	}
	if len(there) > 1 {
		at.Where = join(there)
	}
	if len(here) > 1 {
		return []Expr{join(here)}
	}
	return here
}

// moved is e, in a subquery if nodes do not have its fields and the inventory has.
func moved(e Expr, fields ...Field) Expr {
	for _, f := range fields {
		if LookUp("nodes").Field(f.Name) != nil || LookUp("inventory").Field(f.Name) == nil {
			return e
		}
	}
	return Subquery{&Query{Entity: "inventory", Where: e}}
}

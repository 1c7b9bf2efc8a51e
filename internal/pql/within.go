package pql

import "github.com/tutti-project/tutti/internal/fault"

// Within narrows a query, and each query inside of it, to rows of the nodes for which a condition holds (see
// NodeCondition). Rows that belong to no node, such as fact_names, tell of all of them: a query for these is Invalid.
// The query that is given stays as it is.
func Within(q *Query, nodes Expr) (*Query, error) {
	entity := LookUp(q.Entity)
	switch {
	case entity == nil: // Check says so
		return q, nil
	case entity.Field("certname") == nil:
		return nil, fault.New(fault.Invalid, "%s tells of all nodes, and the author of this preview may see only some of them", q.Entity)
	}
	narrow := *q
	terms := []Expr{ofNodes(q.Entity, nodes)}
	if q.Where != nil {
		where, err := withinExpr(q.Where, nodes)
		if err != nil {
			return nil, err
		}
		terms = append(terms, where)
	}
	narrow.Where = And{terms}
	return &narrow, nil
}

// ofNodes is a condition on nodes as one on rows of an entity.
func ofNodes(entity string, nodes Expr) Expr {
	if entity == "nodes" {
		return nodes
	}
	certname := Field{Name: "certname"}
	return In{Fields: []Field{certname}, Query: &Query{Entity: "nodes", Columns: []Column{{Field: certname}}, Where: nodes}}
}

// withinExpr narrows the queries inside of a condition.
func withinExpr(e, nodes Expr) (Expr, error) {
	switch e := e.(type) {
	case And:
		terms, err := withinEach(e.Terms, nodes)
		return And{terms}, err
	case Or:
		terms, err := withinEach(e.Terms, nodes)
		return Or{terms}, err
	case Not:
		term, err := withinExpr(e.Term, nodes)
		return Not{term}, err
	case In:
		if e.Query == nil {
			return e, nil
		}
		query, err := Within(e.Query, nodes)
		e.Query = query
		return e, err
	case Subquery:
		query, err := Within(e.Query, nodes)
		return Subquery{query}, err
	}
	return e, nil
}

func withinEach(terms []Expr, nodes Expr) ([]Expr, error) {
	narrow := make([]Expr, len(terms))
	for i, term := range terms {
		var err error
		if narrow[i], err = withinExpr(term, nodes); err != nil {
			return nil, err
		}
	}
	return narrow, nil
}

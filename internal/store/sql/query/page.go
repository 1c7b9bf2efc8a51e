package query

import (
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/pql"
)

// factPage picks the node and name of the facts on one page, so that only those
// are put together from their leaves. It is empty where that cannot be told from
// names and nodes alone: rest are the conditions on more than those.
//
// Names come from the index of paths, each by its first path, or nodes by theirs:
// which of them leads decides in what order SQLite finds the rows, and so whether
// it can stop at the end of the page.
func (t *Translation) factPage(q *pql.Query, rest []pql.Expr, hoisted string) string {
	if q.Limit == nil || len(rest) > 0 || len(q.GroupBy) > 0 || slices.ContainsFunc(q.Columns, pql.Column.Aggregates) {
		return ""
	}
	keys := map[string]string{"name": "p.name", "certname": "m.certname"}
	var order []string
	for _, o := range q.OrderBy {
		key := keys[o.Field.Field.Name]
		if key == "" || o.Field.Function != "" {
			return ""
		}
		if o.Descending {
			key += " DESC"
		}
		order = append(order, key)
	}
	// PostgreSQL would make a join of this, and read and sort the facts of all nodes for it. OFFSET keeps it a look-up for each row of the page.
	has := "SELECT 1 FROM fact_paths o CROSS JOIN facts f WHERE o.name = p.name AND f.node_id = m.id AND f.path_id = o.id" + t.Words.either("", " OFFSET 0")
	where := []string{"EXISTS (" + has + ")"}
	if hoisted != "" {
		where = append(where, hoisted)
	}
	if t.uses == 0 && !t.Gone && !t.Active {
		where = append(where, living("m.id"))
	}
	from := "nodes m CROSS JOIN (SELECT DISTINCT name FROM fact_paths) p"
	if len(order) > 0 && strings.HasPrefix(order[0], "p.") {
		from = "fact_paths p CROSS JOIN nodes m"
		where = append(where, "NOT EXISTS (SELECT 1 FROM fact_paths o WHERE o.name = p.name AND o.id < p.id)")
	}
	text := "SELECT m.id AS node_id, p.name AS name FROM " + from + " WHERE " + strings.Join(where, " AND ")
	if len(order) > 0 {
		text += " ORDER BY " + strings.Join(order, ", ")
	}
	return "(" + text + t.limits(q) + ") k"
}

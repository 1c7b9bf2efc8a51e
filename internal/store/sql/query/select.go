package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/pql"
)

// output is one column of a statement's result and how it becomes JSON.
type output struct {
	name  string
	as    storedAs
	cols  []int  // the columns that it is made of
	part  string // of a report, of rows
	field string
}

// Statement is a translated query.
type Statement struct {
	Text    string
	Outputs []output
}

// facets are the SQL expressions that columns need, each under a name of the inner
// SELECT.
type facets struct {
	scope
	exprs  []string
	places []place
}

// place is the join of the facts at a path.
type place struct {
	extra
	path string
}

// use gives an expression a name in the inner SELECT.
func (f *facets) use(expr string) string {
	i := slices.Index(f.exprs, expr)
	if i < 0 {
		i = len(f.exprs)
		f.exprs = append(f.exprs, expr)
	}
	return fmt.Sprintf("c%d", i)
}

// Statement translates q. The inner SELECT computes what columns, groups and orders need, each under a
// name; the outer one groups, sums up, orders and cuts.
func (t *Translation) Statement(q *pql.Query) Statement {
	s, rows := t.open(q, true)
	f := &facets{scope: s}
	columns := q.Columns
	if len(columns) == 0 {
		columns = AllColumns(q.Entity)
	}
	var result Statement
	var shown []string
	for _, c := range columns {
		o := output{name: c.Name(), field: c.Field.Name}
		var exprs []string
		exprs, o.as, o.part = f.column(c)
		for _, e := range exprs {
			o.cols = append(o.cols, len(shown))
			shown = append(shown, e)
		}
		result.Outputs = append(result.Outputs, o)
	}
	groups := f.groups(q)
	order := f.orders(q)
	limit := ""
	if !rows.paged {
		limit = t.limits(q)
	}
	var inner strings.Builder
	for i, e := range f.exprs {
		fmt.Fprintf(&inner, ", %s AS c%d", e, i)
	}
	if inner.Len() == 0 {
		inner.WriteString(", 1 AS c0")
	}
	for _, p := range f.places {
		rows.joins = append(rows.joins, p.extra)
	}
	result.Text = "SELECT " + strings.Join(shown, ", ") + " FROM (SELECT " + inner.String()[2:] + rows.text(inner.String()) + ") q" + groups + order + limit
	return result
}

// sub is a query whose rows another one looks into: columns c0, c1, ….
func (t *Translation) sub(q *pql.Query) string {
	st := t.Statement(q)
	names := make([]string, len(st.Outputs))
	for i, o := range st.Outputs {
		names[i] = fmt.Sprintf("k%d AS c%d", o.cols[0], i)
	}
	total := 0
	for _, o := range st.Outputs {
		total += len(o.cols)
	}
	ks := make([]string, total)
	for i := range ks {
		ks[i] = fmt.Sprintf("k%d", i)
	}
	return "WITH w (" + strings.Join(ks, ", ") + ") AS (" + st.Text + ") SELECT " + strings.Join(names, ", ") + " FROM w"
}

// AllColumns is what a query of an entity gives that names no columns.
func AllColumns(entity string) []pql.Column {
	var columns []pql.Column
	for _, f := range pql.LookUp(entity).Fields {
		if f.Answer {
			columns = append(columns, pql.Column{Field: pql.Field{Name: f.Name}})
		}
	}
	return columns
}

// column lists what is selected for a column of the answer.
func (f *facets) column(c pql.Column) (exprs []string, as storedAs, part string) {
	if c.Function != "" {
		exprs, as = f.function(c)
		return exprs, as, ""
	}
	field := f.fields[c.Field.Name]
	if len(c.Field.Path) > 0 {
		raw, as, part := f.nested(c.Field, field)
		return []string{f.use(raw)}, as, part
	}
	switch {
	case field.as == asLeaf && field.raw == "": // one row is one leaf
		return []string{f.use(field.kind), f.use(field.expr)}, asLeaf, ""
	case field.as == asLeaf:
		return []string{f.use(field.raw)}, asLeafValue, ""
	case field.as == asFactList || field.as == asReport || field.as == asRows:
		return []string{f.use(field.expr), f.use(field.raw)}, field.as, field.kind
	default:
		return []string{f.use(field.expr)}, field.as, ""
	}
}

// nested is a place inside a structured field, as JSON or as leaves.
func (f *facets) nested(path pql.Field, field sqlField) (raw string, as storedAs, part string) {
	if field.as == asJSON {
		return f.Words.jsonRaw(field.expr, f.jsonStep(path.Path)), asJSON, ""
	}
	list := "(SELECT " + f.Words.list("p.path, x.kind, x.value", "p.path") +
		" FROM facts x JOIN fact_paths p ON p.id = x.path_id WHERE x.node_id = " + f.node + " AND " + f.below(path) + ")"
	if !hasMatch(path) { // what has a value has nothing below it, which most have
		at := f.place(path)
		single := f.Words.single("CAST(" + f.arg(leafPath(path)) + " AS text), " + at + ".kind, " + at + ".value")
		list = "CASE WHEN " + at + ".kind IS NOT NULL THEN " + single + " ELSE " + list + " END"
	}
	return list, asLeafValue, leafPath(path)
}

// place joins the fact at a path, which a node has once at most, and names it. PostgreSQL would rather read the facts of all nodes: OFFSET
// keeps it a look-up for each row.
func (f *facets) place(path pql.Field) string {
	text := leafPath(path)
	i := slices.IndexFunc(f.places, func(p place) bool { return p.path == text })
	if i < 0 {
		i = len(f.places)
		name := fmt.Sprintf("x%s_%d", f.scope.use, i)
		id := "(SELECT id FROM fact_paths WHERE path = " + f.arg(text) + ")"
		join := f.Words.either(
			"LEFT JOIN facts "+name+" ON "+name+".node_id = "+f.node+" AND "+name+".path_id = "+id,
			"LEFT JOIN LATERAL (SELECT x.kind, x.number, x.value FROM facts x WHERE x.node_id = "+f.node+" AND x.path_id = "+id+" OFFSET 0) "+name+" ON TRUE")
		f.places = append(f.places, place{extra{name, join}, text})
	}
	return f.places[i].name
}

func (f *facets) function(c pql.Column) ([]string, storedAs) {
	if c.Field.Name == "" {
		return []string{"count(*)"}, asInt
	}
	field := f.fields[c.Field.Name]
	switch c.Function {
	case "to_string":
		mask, _ := pql.Mask(c.Mask) // it was checked
		return []string{f.use(f.Words.date(field.expr, mask))}, asText
	case "jsonb_typeof":
		kind, _, _ := f.dynamic(c.Field, field)
		return []string{f.use(kind)}, asText
	case "count":
		if field.as == asLeaf || len(c.Field.Path) > 0 {
			kind, _, _ := f.dynamic(c.Field, field)
			return []string{"count(" + f.use(kind) + ")"}, asInt
		}
		return []string{"count(" + f.use(field.expr) + ")"}, asInt
	}
	value, as := field.expr, field.as
	if field.as == asLeaf || field.as == asJSON || len(c.Field.Path) > 0 {
		_, value, _ = f.dynamic(c.Field, field)
		as = asFloat
	}
	if c.Function == "avg" || c.Function == "sum" {
		as := map[string]storedAs{"avg": asAverage, "sum": asFloat}[c.Function]
		return []string{c.Function + "(CAST(" + f.use(value) + " AS DOUBLE PRECISION))"}, as
	}
	return []string{c.Function + "(" + f.use(value) + ")"}, as
}

// dynamic is the type, the number and the text of a value that can be anything.
func (f *facets) dynamic(path pql.Field, field sqlField) (kind, number, text string) {
	if field.as == asJSON {
		at := f.jsonStep(path.Path)
		kind, text = f.Words.jsonType(field.expr, at), f.Words.jsonText(field.expr, at)
		return kind, "CAST(CASE WHEN " + kind + " = 'number' THEN " + text + " END AS DOUBLE PRECISION)", text
	}
	if field.as == asLeaf {
		return typeOfKind(field.kind), field.number, field.expr
	}
	if !hasMatch(path) {
		at := f.place(path)
		return "CASE WHEN " + at + ".kind IS NOT NULL THEN " + typeOfKind(at+".kind") + " END", at + ".number", at + ".value"
	}
	of := func(what string) string {
		return "(SELECT " + what + " FROM facts x WHERE x.node_id = " + f.node + " AND " + f.at(path) + ")"
	}
	return of(typeOfKind("x.kind")), of("x.number"), of("x.value")
}

// typeOfKind is PostgreSQL's word for the type of a value.
func typeOfKind(kind string) string {
	return "CASE " + kind + " WHEN 0 THEN 'null' WHEN 1 THEN 'boolean' WHEN 2 THEN 'number' WHEN 3 THEN 'number' WHEN 4 THEN 'string'" +
		" WHEN 6 THEN 'array' WHEN -2 THEN 'array' ELSE 'object' END"
}

// groups is the GROUP BY, with all that depends on what rows are grouped by.
func (f *facets) groups(q *pql.Query) string {
	if len(q.GroupBy) == 0 {
		return ""
	}
	var names []string
	for _, g := range q.GroupBy {
		exprs, _, _ := f.column(g)
		names = append(names, exprs...)
		if g.Function == "" {
			names = append(names, f.keys(g)...)
		}
	}
	slices.Sort(names)
	return " GROUP BY " + strings.Join(slices.Compact(names), ", ")
}

// keys are the expressions that order rows by a column: first its type where it
// has many, as PostgreSQL orders JSON.
func (f *facets) keys(c pql.Column) []string {
	field := f.fields[c.Field.Name]
	if c.Function == "" && (field.as == asLeaf || len(c.Field.Path) > 0 || field.as == asJSON) {
		kind, number, text := f.dynamic(c.Field, field)
		rank := "CASE " + kind + " WHEN 'null' THEN 0 WHEN 'string' THEN 1 WHEN 'number' THEN 2 WHEN 'boolean' THEN 3 WHEN 'array' THEN 4 WHEN 'object' THEN 5 END"
		return []string{f.use(rank), f.use(number), f.use(text)}
	}
	exprs, _, _ := f.column(c)
	return exprs[:1]
}

func (f *facets) orders(q *pql.Query) string {
	var keys []string
	for _, o := range q.OrderBy {
		direction := " ASC NULLS LAST"
		if o.Descending {
			direction = " DESC NULLS FIRST"
		}
		column := f.named(q, o.Field)
		if column.Function == "" && len(column.Field.Path) == 0 && f.fields[column.Field.Name].there { // an index may have the order
			direction, _, _ = strings.Cut(direction, " NULLS")
		}
		for _, key := range f.keys(column) {
			keys = append(keys, key+direction)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return " ORDER BY " + strings.Join(keys, ", ")
}

// named finds the column that an order means by a function's name.
func (f *facets) named(q *pql.Query, c pql.Column) pql.Column {
	i := slices.IndexFunc(q.Columns, func(x pql.Column) bool { return x.Function != "" && x.Function == c.Field.Name })
	if c.Function == "" && len(c.Field.Path) == 0 && i >= 0 && pql.LookUp(q.Entity).Field(c.Field.Name) == nil {
		return q.Columns[i]
	}
	return c
}

func (t *Translation) limits(q *pql.Query) string {
	if q.Limit == nil && q.Offset == nil {
		return ""
	}
	limit, offset := int64(1)<<62, int64(0)
	if q.Limit != nil {
		limit = *q.Limit
	}
	if q.Offset != nil {
		offset = *q.Offset
	}
	return " LIMIT " + t.arg(limit) + " OFFSET " + t.arg(offset)
}

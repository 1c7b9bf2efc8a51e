package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/pql"
)

// Translation turns one checked query into one statement. Values only ever become
// arguments.
type Translation struct {
	Words  Words
	Args   []any
	marks  map[argument]string
	uses   int
	Paths  []Path // every fact path there is; read when a query needs them
	Gone   bool   // nodes that are deactivated or expired count too
	Active bool   // no node is deactivated or expired
	Failed error

	Indexed  map[string]int64 // the ids of the paths that the index of facts has
	Compared []string         // the paths that statements compared in a way that the index answers
}

// Again is a translation with the same knowledge for another statement.
func (t *Translation) Again() *Translation {
	return &Translation{Words: t.Words, Paths: t.Paths, Gone: t.Gone, Active: t.Active, Indexed: t.Indexed}
}

// Path is a fact path that there is.
type Path struct {
	ID    int64
	Steps []any
}

// argument is what placeholders are told apart by. Equal values share one, so that
// equal expressions have equal texts.
type argument struct {
	value any
	path  bool // read as a path into JSON
}

// arg is the placeholder of a value.
func (t *Translation) arg(v any) string { return t.argument(argument{value: v}) }

func (t *Translation) argument(a argument) string {
	if known, ok := t.marks[a]; ok {
		return known
	}
	if t.marks == nil {
		t.marks = map[argument]string{}
	}
	t.Args = append(t.Args, a.value)
	t.marks[a] = t.Words.mark(len(t.Args))
	return t.marks[a]
}

// scope is one use of an entity in a query.
type scope struct {
	source
	*Translation
	entity string
	use    string // the number that its tables carry
}

func (t *Translation) scope(entity string, known narrowed) scope {
	t.uses++
	number := fmt.Sprint(t.uses)
	s := t.Words.source(entity, known)
	for i := range s.parts {
		s.parts[i].name = strings.ReplaceAll(s.parts[i].name, "@", number)
	}
	for i := range s.joins {
		s.joins[i].name, s.joins[i].text = strings.ReplaceAll(s.joins[i].name, "@", number), strings.ReplaceAll(s.joins[i].text, "@", number)
	}
	s.from, s.where, s.node = strings.ReplaceAll(s.from, "@", number), strings.ReplaceAll(s.where, "@", number), strings.ReplaceAll(s.node, "@", number)
	for name, f := range s.fields {
		f.expr, f.kind = strings.ReplaceAll(f.expr, "@", number), strings.ReplaceAll(f.kind, "@", number)
		f.number, f.raw = strings.ReplaceAll(f.number, "@", number), strings.ReplaceAll(f.raw, "@", number)
		f.column, f.when = strings.ReplaceAll(f.column, "@", number), strings.ReplaceAll(f.when, "@", number)
		s.fields[name] = f
	}
	return scope{source: s, Translation: t, entity: entity, use: number}
}

// opened is the FROM and WHERE of a query, while it is not yet known which joins
// its columns need.
type opened struct {
	source
	conditions []string
	paged      bool // limit and offset are in FROM
}

// text is the FROM and WHERE with the joins and columns that these expressions, the
// conditions and other such joins mention.
func (o opened) text(used ...string) string {
	where := ""
	if len(o.conditions) > 0 {
		where = " WHERE " + balanced(o.conditions, " AND ")
	}
	mentioned := strings.Join(used, " ") + where
	var kept []string
	for _, j := range slices.Backward(o.joins) {
		if strings.Contains(mentioned, j.name+".") {
			kept = append(kept, j.text)
			mentioned += j.text
		}
	}
	slices.Reverse(kept)
	var parts strings.Builder
	for _, part := range o.parts {
		if strings.Contains(mentioned, part.name) {
			parts.WriteString(part.text)
		}
	}
	text := " FROM " + strings.Replace(o.from, partsMark, parts.String(), 1)
	if len(kept) > 0 {
		text += " " + strings.Join(kept, " ")
	}
	return text + where
}

// open makes the scope of a query and its FROM and WHERE. With page these may
// hold its limit and offset.
func (t *Translation) open(q *pql.Query, page bool) (scope, opened) {
	terms := conjuncts(q.Where)
	known := narrowed{paths: slices.ContainsFunc(terms, namesPaths)}
	switch q.Entity {
	case "facts":
		terms, known.hoisted = t.hoist(q.Where)
		known.shown = t.uses == 0 && len(q.GroupBy) == 0
		if page {
			known.page = t.factPage(q, terms, known.hoisted)
		}
	case "reports":
		known.latest = slices.ContainsFunc(terms, wantsLatest)
	case "events":
		known.latest = slices.ContainsFunc(terms, wantsLatest) && !slices.ContainsFunc(terms, wantsUnusual)
	}
	outermost := t.uses == 0
	s := t.scope(q.Entity, known)
	var where []string
	if s.where != "" {
		where = append(where, s.where)
	}
	if outermost && s.node != "" && !t.Gone && !t.Active && !mentionsState(q.Where) {
		where = append(where, s.live())
	}
	for _, term := range patternsLast(terms) {
		where = append(where, s.must(term))
		if wantsUnusual(term) && q.Entity == "events" {
			where = append(where, "(e"+s.use+".status <> 'success')") // as the index of those says
		}
		if isStatus(term) && q.Entity == "reports" && known.latest {
			where = append(where, "(n"+s.use+".latest_status = "+s.arg(Clean(term.(pql.Compare).Value.Text))+")")
		}
	}
	return s, opened{s.source, where, known.page != ""}
}

// live holds for rows of nodes that are neither deactivated nor expired.
func (s scope) live() string { return living(s.node) }

// living holds for the ids of such nodes. The others are few, and need no join.
func living(node string) string {
	return "(" + node + " NOT IN (SELECT id FROM nodes WHERE deactivated_at <> 0 OR expired_at <> 0))"
}

// must is a condition that the whole query hangs on: where it is unknown, the row
// is left out as where it is false. So columns can be compared as they are
// stored, which an index may help with.
func (s scope) must(e pql.Expr) string {
	c, ok := e.(pql.Compare)
	if ok && c.Op == "~" && c.Field.Name == "certname" && s.entity != "nodes" && s.node != "" && !s.Words.Postgres {
		if first, _ := beginning(c.Value.Text); first != "" { // SQLite finds few nodes first, and would not begin with them
			return "(" + s.node + " IN (SELECT id FROM nodes WHERE " + s.matching("certname", c.Value.Text) + "))"
		}
	}
	if !ok || c.Op == "~" || len(c.Field.Path) > 0 {
		return s.expr(e)
	}
	f := s.fields[c.Field.Name]
	switch {
	case f.when != "" && c.Value.Text == "true":
		return "(" + f.when + ")"
	case f.as == asText && f.column != "" && c.Op == "=" && Clean(c.Value.Text) != "":
		return "(" + f.column + " = " + s.scalar(f.as, c.Value) + ")"
	case f.as == asTime && f.column != "" && !f.there && strings.HasPrefix(c.Op, "<"):
		return "(" + f.column + " " + c.Op + " " + s.scalar(f.as, c.Value) + " AND " + f.column + " <> 0)"
	case f.as == asTime && f.column != "" && !f.there:
		if at, ok := pql.Time(c.Value.Text); ok && at.UnixMicro() > 0 { // zero stands for none
			return "(" + f.column + " " + c.Op + " " + s.scalar(f.as, c.Value) + ")"
		}
	}
	return s.expr(e)
}

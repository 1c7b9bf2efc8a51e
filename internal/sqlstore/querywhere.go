package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// translation turns one checked query into one statement. Values only ever become
// arguments.
type translation struct {
	words  queryWords
	args   []any
	marks  map[argument]string
	uses   int
	paths  []factPath // every fact path there is; read when a query needs them
	failed error
}

type factPath struct {
	id    int64
	steps []any
}

// argument is what placeholders are told apart by. Equal values share one, so that
// equal expressions have equal texts.
type argument struct {
	value any
	path  bool // read as a path into JSON
}

// arg is the placeholder of a value.
func (t *translation) arg(v any) string { return t.argument(argument{value: v}) }

func (t *translation) argument(a argument) string {
	if known, ok := t.marks[a]; ok {
		return known
	}
	if t.marks == nil {
		t.marks = map[argument]string{}
	}
	t.args = append(t.args, a.value)
	t.marks[a] = t.words.mark(len(t.args))
	return t.marks[a]
}

// scope is one use of an entity in a query.
type scope struct {
	source
	*translation
	entity string
}

func (t *translation) scope(entity string, known narrowed) scope {
	t.uses++
	number := fmt.Sprint(t.uses)
	s := t.words.source(entity, known)
	s.from, s.where, s.node = strings.ReplaceAll(s.from, "@", number), strings.ReplaceAll(s.where, "@", number), strings.ReplaceAll(s.node, "@", number)
	for name, f := range s.fields {
		f.expr, f.kind = strings.ReplaceAll(f.expr, "@", number), strings.ReplaceAll(f.kind, "@", number)
		f.number, f.raw = strings.ReplaceAll(f.number, "@", number), strings.ReplaceAll(f.raw, "@", number)
		s.fields[name] = f
	}
	return scope{source: s, translation: t, entity: entity}
}

// open makes the scope of a query and its FROM and WHERE.
func (t *translation) open(q *pql.Query) (scope, string) {
	kept, known := q.Where, narrowed{paths: slices.ContainsFunc(conjuncts(q.Where), namesPaths)}
	if q.Entity == "facts" {
		kept, known.hoisted = t.hoist(q.Where)
	}
	s := t.scope(q.Entity, known)
	var where []string
	if s.where != "" {
		where = append(where, s.where)
	}
	if s.node != "" && !mentionsState(q.Where) {
		where = append(where, s.active())
	}
	if kept != nil {
		where = append(where, s.expr(kept))
	}
	text := " FROM " + s.from
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	return s, text
}

// hoist takes the conditions on a fact's name and node alone out of a chain of
// `and`: they narrow what is read before facts are put together.
func (t *translation) hoist(e pql.Expr) (kept pql.Expr, hoisted string) {
	inner := scope{translation: t, entity: "facts", source: source{fields: map[string]sqlField{
		"name": plainText("p.name"), "certname": plainText("m.certname"),
	}}}
	var rest []pql.Expr
	var texts []string
	for _, term := range conjuncts(e) {
		switch {
		case simple(term):
			texts = append(texts, inner.expr(term))
		default:
			rest = append(rest, term)
		}
	}
	if len(rest) > 0 {
		kept = pql.And{Terms: rest}
	}
	return kept, strings.Join(texts, " AND ")
}

// conjuncts are the conditions that must all hold.
func conjuncts(e pql.Expr) []pql.Expr {
	switch e := e.(type) {
	case nil:
		return nil
	case pql.And:
		var terms []pql.Expr
		for _, t := range e.Terms {
			terms = append(terms, conjuncts(t)...)
		}
		return terms
	}
	return []pql.Expr{e}
}

// namesPaths says whether a condition leaves few fact paths over.
func namesPaths(e pql.Expr) bool {
	switch e := e.(type) {
	case pql.Compare:
		return e.Field.Name == "name" && e.Op == "=" || e.Field.Name == "path"
	case pql.In:
		return e.Query == nil && len(e.Fields) == 1 && (e.Fields[0].Name == "name" || e.Fields[0].Name == "path")
	case pql.Or:
		return !slices.ContainsFunc(e.Terms, func(t pql.Expr) bool { return !namesPaths(t) })
	}
	return false
}

// simple tells conditions on name and certname alone, without other queries.
func simple(e pql.Expr) bool {
	named := func(f pql.Field) bool { return f.Name == "name" || f.Name == "certname" }
	switch e := e.(type) {
	case pql.And:
		return !slices.ContainsFunc(e.Terms, func(t pql.Expr) bool { return !simple(t) })
	case pql.Or:
		return !slices.ContainsFunc(e.Terms, func(t pql.Expr) bool { return !simple(t) })
	case pql.Not:
		return simple(e.Term)
	case pql.Compare:
		return named(e.Field)
	case pql.In:
		return e.Query == nil && len(e.Fields) == 1 && named(e.Fields[0])
	}
	return false
}

// mentionsState says whether a condition itself says which nodes it wants.
func mentionsState(e pql.Expr) bool {
	state := func(f pql.Field) bool {
		return f.Name == "node_state" || f.Name == "deactivated" || f.Name == "expired"
	}
	switch e := e.(type) {
	case pql.And:
		return slices.ContainsFunc(e.Terms, mentionsState)
	case pql.Or:
		return slices.ContainsFunc(e.Terms, mentionsState)
	case pql.Not:
		return mentionsState(e.Term)
	case pql.Compare:
		return state(e.Field)
	case pql.Null:
		return state(e.Field)
	case pql.In:
		return slices.ContainsFunc(e.Fields, state)
	}
	return false
}

// active holds for rows of nodes that are neither deactivated nor expired.
func (s scope) active() string {
	n := "n" + s.number()
	return "(" + n + ".deactivated_at = 0 AND " + n + ".expired_at = 0)"
}

// number is the use that the scope's aliases carry.
func (s scope) number() string {
	i := strings.LastIndexAny(s.node[:strings.IndexByte(s.node, '.')], "abcdefghijklmnopqrstuvwxyz")
	return s.node[i+1 : strings.IndexByte(s.node, '.')]
}

const (
	always = "(1 = 1)"
	never  = "(1 = 0)"

	falsehood = "FALSE"
)

func (s scope) expr(e pql.Expr) string {
	switch e := e.(type) {
	case pql.And:
		return s.junction(e.Terms, " AND ")
	case pql.Or:
		return s.junction(e.Terms, " OR ")
	case pql.Not:
		return "(NOT " + s.expr(e.Term) + ")"
	case pql.Compare:
		return s.compare(e)
	case pql.Null:
		return s.null(e)
	case pql.In:
		if e.Query != nil {
			return s.inQuery(e)
		}
		return s.inValues(e)
	case pql.Subquery:
		return s.related(e.Query)
	}
	return never
}

func (s scope) junction(terms []pql.Expr, word string) string {
	texts := make([]string, len(terms))
	for i, term := range terms {
		texts[i] = s.expr(term)
	}
	return balanced(texts, word)
}

// balanced joins conditions as a tree: databases bound how deep a chain may be.
func balanced(texts []string, word string) string {
	switch n := len(texts); {
	case n == 0:
		return never
	case n == 1:
		return texts[0]
	case n <= 8:
		return "(" + strings.Join(texts, word) + ")"
	default:
		return "(" + balanced(texts[:n/2], word) + word + balanced(texts[n/2:], word) + ")"
	}
}

func (s scope) compare(c pql.Compare) string {
	if c.Field.Name == "node_state" {
		return s.state(c.Value.Text)
	}
	f := s.fields[c.Field.Name]
	switch {
	case len(c.Field.Path) > 0 && f.as == asJSON:
		return s.compareJSON(f.expr, s.jsonStep(c.Field.Path), c)
	case len(c.Field.Path) > 0:
		return s.leaf(c.Field, func(kind, value, number string) string { return s.compareLeaf(kind, value, number, c.Op, c.Value) })
	}
	switch f.as { //nolint:exhaustive // the others compare as they are
	case asLeaf:
		return s.compareLeaf(f.kind, f.expr, f.number, c.Op, c.Value)
	case asJSON:
		return s.compareJSON(f.expr, s.jsonStep(nil), c)
	case asList:
		return s.compareList(f.expr, c)
	case asPath:
		return s.comparePath(f, c)
	}
	if c.Op == "~" {
		return s.words.matches(f.expr, s.pattern(c.Value.Text))
	}
	return "(" + f.expr + " " + c.Op + " " + s.scalar(f.as, c.Value) + ")"
}

func (s scope) pattern(text string) string {
	pattern, err := s.words.pattern(text)
	if err != nil && s.failed == nil {
		s.failed = fault.Wrap(fault.Invalid, err, "%v", err)
	}
	return s.arg(pattern)
}

// scalar is the argument of a plain value.
func (s scope) scalar(as storedAs, v pql.Value) string {
	switch as { //nolint:exhaustive // the others are text
	case asFlag:
		return s.arg(bit(v.Text == "true"))
	case asInt:
		n, _ := pql.Numeric(v)
		return "CAST(" + s.arg(n) + " AS DOUBLE PRECISION)"
	case asTime:
		at, _ := pql.Time(v.Text)
		return s.arg(at.UnixMicro())
	default:
		return s.arg(clean(v.Text))
	}
}

func (s scope) state(want string) string {
	switch want {
	case "active":
		return s.active()
	case "inactive":
		return "(NOT " + s.active() + ")"
	}
	return always
}

// compareLeaf compares a fact's value with regard to its type.
func (s scope) compareLeaf(kind, value, number, op string, v pql.Value) string {
	switch {
	case op == "~":
		return "(CASE WHEN " + kind + " IN (1, 2, 3, 4) THEN " + s.words.matches(value, s.pattern(v.Text)) + " ELSE " + falsehood + " END)"
	case op != "=":
		n, _ := pql.Numeric(v)
		return "(" + kind + " IN (2, 3) AND COALESCE(" + number + " " + op + " " + s.arg(n) + ", " + falsehood + "))"
	case v.Kind == pql.String:
		return "(" + kind + " = 4 AND " + value + " = " + s.arg(clean(v.Text)) + ")"
	case v.Kind == pql.Boolean:
		return "(" + kind + " = 1 AND " + value + " = " + s.arg(v.Text) + ")"
	default:
		n, _ := v.Number()
		return "(" + kind + " IN (2, 3) AND COALESCE(" + number + " = " + s.arg(n) + ", " + falsehood + "))"
	}
}

// compareJSON compares what a path leads to in a JSON text.
func (s scope) compareJSON(doc, path string, c pql.Compare) string {
	w := s.words
	kind, text := w.jsonType(doc, path), w.jsonText(doc, path)
	number := "CAST(CASE WHEN " + kind + " = 'number' THEN " + text + " END AS DOUBLE PRECISION)"
	var cond string
	switch {
	case c.Op == "~":
		cond = kind + " IN ('string', 'number', 'boolean') AND " + w.matches(text, s.pattern(c.Value.Text))
	case c.Op != "=":
		n, _ := pql.Numeric(c.Value)
		cond = number + " " + c.Op + " " + s.arg(n)
	case c.Value.Kind == pql.String:
		cond = kind + " = 'string' AND " + text + " = " + s.arg(clean(c.Value.Text))
	case c.Value.Kind == pql.Boolean:
		cond = kind + " = 'boolean' AND " + text + " = " + s.arg(c.Value.Text)
	default:
		n, _ := c.Value.Number()
		cond = number + " = " + s.arg(n)
	}
	return "COALESCE(" + cond + ", " + falsehood + ")"
}

// jsonStep is the argument of a path into a JSON text. SQLite cannot name a key with a quote.
func (s scope) jsonStep(steps []pql.Step) string {
	for _, step := range steps {
		if strings.ContainsAny(step.Text, "\"\x00") && s.failed == nil {
			s.failed = fault.New(fault.Invalid, "a key with a quote cannot be looked up: %.80s", step.Text)
		}
	}
	return s.argument(argument{s.words.jsonPath(steps), true})
}

// compareList holds when any element does.
func (s scope) compareList(list string, c pql.Compare) string {
	text := c.Value.Text
	if c.Field.Name == "tag" && c.Op == "=" {
		text = strings.ToLower(text)
	}
	var cond string
	if c.Op == "~" {
		cond = s.words.matches("l.value", s.pattern(text))
	} else {
		cond = "l.value = " + s.arg(clean(text))
	}
	return "EXISTS (SELECT 1 FROM " + s.words.elements(list) + " l WHERE " + cond + ")"
}

func (s scope) comparePath(f sqlField, c pql.Compare) string {
	if c.Field.Name == "depth" {
		want, _ := pql.Numeric(c.Value)
		return s.pathIDs(f.raw, func(steps []any) bool {
			n := float64(len(steps))
			return map[string]bool{"=": n == want, ">": n > want, "<": n < want, ">=": n >= want, "<=": n <= want}[c.Op]
		})
	}
	if c.Op == "~>" {
		return s.pathIDs(f.raw, pathMatcher(c.Value.List))
	}
	return "(" + f.expr + " = " + s.arg(clean(pathText(c.Value))) + ")"
}

// pathText is a literal path as it is stored.
func pathText(v pql.Value) string {
	steps := make([]any, len(v.List))
	for i, item := range v.List {
		steps[i] = item.Text
		if n, ok := item.Number(); ok {
			steps[i] = int64(n)
		}
	}
	return inventory.PathText(steps...)
}

// pathMatcher tells paths whose steps match one by one; a number only an index.
func pathMatcher(want []pql.Value) func([]any) bool {
	return func(steps []any) bool {
		if len(steps) != len(want) {
			return false
		}
		for i, w := range want {
			if !stepMatches(w, steps[i]) {
				return false
			}
		}
		return true
	}
}

func stepMatches(want pql.Value, step any) bool {
	if want.Kind == pql.Integer {
		n, _ := want.Number()
		index, ok := step.(int64)
		return ok && float64(index) == n
	}
	re, err := pql.Regexp(want.Text)
	return err == nil && re.MatchString(fmt.Sprint(step))
}

// pathIDs holds for the fact paths that keep likes.
func (s scope) pathIDs(column string, keep func([]any) bool) string {
	var ids []string
	for _, p := range s.paths {
		if keep(p.steps) {
			ids = append(ids, fmt.Sprint(p.id))
		}
	}
	if len(ids) == 0 {
		return never
	}
	return "(" + column + " IN (" + strings.Join(ids, ", ") + "))" // numbers of ours, no input
}

// leaf holds when the fact at a path exists and cond does for it.
func (s scope) leaf(f pql.Field, cond func(kind, value, number string) string) string {
	at := s.at(f)
	return "EXISTS (SELECT 1 FROM facts x WHERE x.node_id = " + s.node + " AND " + at + " AND " + cond("x.kind", "x.value", "x.number") + ")"
}

// at holds for the rows x of the facts at a path exactly.
func (s scope) at(f pql.Field) string {
	if hasMatch(f) {
		return s.pathIDs("x.path_id", func(steps []any) bool { return followed(f, steps) == len(steps) })
	}
	return "x.path_id = (SELECT id FROM fact_paths WHERE path = " + s.arg(leafPath(f)) + ")"
}

// below holds for the rows x of the facts at a path and below it.
func (s scope) below(f pql.Field) string {
	if hasMatch(f) {
		return s.pathIDs("x.path_id", func(steps []any) bool { return followed(f, steps) > 0 })
	}
	path := leafPath(f)
	return "x.path_id IN (SELECT id FROM fact_paths WHERE path = " + s.arg(path) +
		" OR path >= " + s.arg(path+".") + " AND path < " + s.arg(path+"/") + " OR path >= " + s.arg(path+"[") + " AND path < " + s.arg(path+`\`) + ")"
}

func hasMatch(f pql.Field) bool {
	return slices.ContainsFunc(f.Path, func(s pql.Step) bool { return s.Kind == pql.Match })
}

// leafPath is a dotted field as fact paths are stored; trusted is a fact.
func leafPath(f pql.Field) string {
	steps := make([]any, 0, len(f.Path)+1)
	if f.Name == "trusted" {
		steps = append(steps, "trusted")
	}
	for _, s := range f.Path {
		if s.Kind == pql.Index {
			steps = append(steps, s.Index)
			continue
		}
		steps = append(steps, s.Text)
	}
	return clean(inventory.PathText(steps...))
}

// followed is how many steps of a path the field accounts for; 0 if it leads
// elsewhere.
func followed(f pql.Field, steps []any) int {
	want := f.Path
	if f.Name == "trusted" {
		want = append([]pql.Step{{Text: "trusted"}}, want...)
	}
	if len(steps) < len(want) {
		return 0
	}
	for i, w := range want {
		text, isKey := steps[i].(string)
		switch w.Kind {
		case pql.Key:
			if !isKey || text != w.Text {
				return 0
			}
		case pql.Index:
			if steps[i] != any(w.Index) {
				return 0
			}
		case pql.Match:
			if re, err := pql.Regexp(w.Text); err != nil || !isKey || !re.MatchString(text) {
				return 0
			}
		}
	}
	return len(want)
}

func (s scope) null(e pql.Null) string {
	f := s.fields[e.Field.Name]
	not := map[bool]string{true: "", false: "NOT "}[e.Is]
	switch {
	case e.Field.Name == "node_state":
		return map[bool]string{true: never, false: always}[e.Is]
	case len(e.Field.Path) > 0 && f.as == asJSON:
		kind := s.words.jsonType(f.expr, s.jsonStep(e.Field.Path))
		return "COALESCE(" + kind + map[bool]string{true: " = ", false: " <> "}[e.Is] + "'null', " + falsehood + ")"
	case len(e.Field.Path) > 0 && e.Is:
		return s.leaf(e.Field, func(kind, _, _ string) string { return kind + " = 0" })
	case len(e.Field.Path) > 0:
		return "EXISTS (SELECT 1 FROM facts x WHERE x.node_id = " + s.node + " AND " + s.below(e.Field) + " AND x.kind <> 0)"
	case f.as == asLeaf:
		return "(" + not + f.kind + " = 0)"
	}
	return "(" + f.expr + " IS " + not + "NULL)"
}

func (s scope) inValues(e pql.In) string {
	f := s.fields[e.Fields[0].Name]
	plain := len(e.Fields) == 1 && len(e.Fields[0].Path) == 0 && (f.as == asText || f.as == asTime || f.as == asFlag || f.as == asInt)
	var texts []string
	for _, v := range e.Values {
		switch {
		case plain:
			texts = append(texts, s.scalar(f.as, v))
		case len(e.Fields) == 1:
			texts = append(texts, s.compare(pql.Compare{Op: "=", Field: e.Fields[0], Value: v}))
		default:
			terms := make([]string, len(e.Fields))
			for i, field := range e.Fields {
				terms[i] = s.compare(pql.Compare{Op: "=", Field: field, Value: v.List[i]})
			}
			texts = append(texts, "("+strings.Join(terms, " AND ")+")")
		}
	}
	if plain && len(texts) > 0 {
		return "(" + f.expr + " IN (" + strings.Join(texts, ", ") + "))"
	}
	return balanced(texts, " OR ")
}

// inQuery compares with the rows of another query. A missing value is in none.
func (s scope) inQuery(e pql.In) string {
	left := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		left[i] = s.fields[f.Name].expr
	}
	inner := s.sub(e.Query)
	return s.among(left, inner)
}

// among holds when values are among the rows of a statement. Without the test for
// NULL one missing value would make the answer unknown.
func (s scope) among(left []string, inner string) string {
	names := make([]string, len(left))
	present := make([]string, len(left))
	for i := range left {
		names[i] = fmt.Sprintf("c%d", i)
		present[i] = names[i] + " IS NOT NULL"
	}
	text := "(" + strings.Join(left, ", ") + ") IN (SELECT " + strings.Join(names, ", ") + " FROM (" + inner + ") i WHERE " + strings.Join(present, " AND ") + ")"
	return "(" + text + ")"
}

// related holds when the other entity has a row that belongs to this one.
func (s scope) related(q *pql.Query) string {
	here, there := pql.Related(s.entity, q.Entity)
	other, text := s.open(q)
	if slices.Equal(here, []string{"certname"}) {
		return "(" + s.node + " IN (SELECT " + other.node + text + "))"
	}
	left, right := make([]string, len(here)), make([]string, len(there))
	for i := range here {
		left[i] = s.fields[here[i]].expr
		right[i] = fmt.Sprintf("%s AS c%d", other.fields[there[i]].expr, i)
	}
	return "COALESCE(" + s.among(left, "SELECT "+strings.Join(right, ", ")+text) + ", " + falsehood + ")"
}

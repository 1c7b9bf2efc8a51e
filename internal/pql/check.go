package pql

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Checked is a query that fits the schema. Only [Check] makes one.
type Checked struct{ query *Query }

// Query is the tree that was checked.
func (c Checked) Query() *Query { return c.query }

// Check compares a query with the schema: entities, fields, types of values,
// regular expressions, groupings.
func Check(q *Query) (Checked, error) {
	if err := (checker{}).query(q, whole); err != nil {
		return Checked{}, err
	}
	return Checked{q}, nil
}

// CheckCondition checks a condition on rows of one entity, also of those that
// only have an address.
func CheckCondition(entity string, e Expr) error {
	if err := (checker{LookUp(entity)}).expr(e); err != nil {
		return err
	}
	return nil
}

// use says where a query stands.
type use uint8

const (
	whole    use = iota
	operand      // of in: it must have columns
	relative     // an implicit subquery: its rows only need to exist
)

type checker struct{ entity *Entity }

func (c checker) query(q *Query, as use) *Error {
	c.entity = LookUp(q.Entity)
	if c.entity == nil || c.entity.Counts {
		return wrong(q.Pos, "Invalid entity '%s' in query", q.Entity)
	}
	if as == operand && len(q.Columns) == 0 {
		return wrong(q.Pos, "the query after 'in' names its columns, like %s[certname]{}", q.Entity)
	}
	if as == relative && (len(q.OrderBy) > 0 || q.Limit != nil || q.Offset != nil || len(q.GroupBy) > 0) {
		return wrong(q.Pos, "a subquery cannot be grouped, ordered or limited; use `certname in %s[certname]{...}`", q.Entity)
	}
	if err := c.columns(q); err != nil {
		return err
	}
	if err := c.orders(q); err != nil {
		return err
	}
	if q.Where == nil {
		return nil
	}
	return c.expr(q.Where)
}

func (c checker) columns(q *Query) *Error {
	if err := c.unknown(q.Columns); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, column := range slices.Concat(q.Columns, q.GroupBy) {
		if err := c.column(column); err != nil {
			return err
		}
	}
	aggregates := false
	for _, column := range q.Columns {
		if names[column.Name()] {
			return wrong(column.Pos, "the column '%s' is there twice", column.Name())
		}
		names[column.Name()] = true
		aggregates = aggregates || column.Aggregates()
	}
	if len(q.GroupBy) > 0 && len(q.Columns) == 0 {
		return wrong(q.Pos, "what is grouped names its columns")
	}
	if !aggregates && len(q.GroupBy) == 0 {
		return nil
	}
	return grouped(q)
}

// grouped checks that what is not summed up is what rows are grouped by.
func grouped(q *Query) *Error {
	for _, g := range q.GroupBy {
		if g.Aggregates() {
			return wrong(g.Pos, "rows cannot be grouped by %s()", g.Function)
		}
	}
	for _, column := range q.Columns {
		same := func(g Column) bool { return g.key() == column.key() }
		if !column.Aggregates() && !slices.ContainsFunc(q.GroupBy, same) {
			return wrong(column.Pos, "the column '%s' must be in 'group by', or in a function like count()", column.Name())
		}
	}
	return nil
}

// key tells columns apart.
func (c Column) key() string { return c.Function + "(" + c.Field.String() + "," + c.Mask }

func (c checker) column(column Column) *Error {
	if column.Function == "count" && column.Field.Name == "" {
		return nil
	}
	if column.Function != "" && column.Field.Name == "" {
		return wrong(column.Pos, "%s needs a field", column.Function)
	}
	if err := c.unknown([]Column{column}); err != nil {
		return err
	}
	info := c.entity.Field(column.Field.Name)
	if slices.ContainsFunc(column.Field.Path, func(s Step) bool { return s.Kind == Match }) {
		return wrong(column.Pos, "match() may lead to many values; it can be tested, not shown")
	}
	return c.function(column, info)
}

// unknown names every column that the entity has no field for.
func (c checker) unknown(columns []Column) *Error {
	var names []string
	var at Pos
	for _, column := range columns {
		info := c.entity.Field(column.Field.Name)
		if column.Function != "" && column.Field.Name == "" || info != nil && info.Answer && (len(column.Field.Path) == 0 || info.Nested) {
			continue
		}
		if len(names) == 0 {
			at = column.Pos
		}
		names = append(names, column.Field.String())
	}
	if len(names) == 0 {
		return nil
	}
	word := map[bool]string{true: "fields", false: "field"}[len(names) > 1]
	acceptable := c.names(func(f FieldInfo) bool { return f.Answer })
	return wrong(at, "Can't extract unknown '%s' %s %s. Acceptable fields are %s", c.entity.Name, word, and(names), and(acceptable)).near(names[0], acceptable)
}

func (c checker) function(column Column, info *FieldInfo) *Error {
	t := info.Type
	switch column.Function {
	case "avg", "sum":
		if t != NumberType && t != JSONType {
			return wrong(column.Pos, "%s takes numbers, and '%s' is a %s", column.Function, column.Field, t)
		}
	case "min", "max":
		if t == BoolType || t == ListType || t == PathType {
			return wrong(column.Pos, "%s takes numbers, text and timestamps, and '%s' is a %s", column.Function, column.Field, t)
		}
	case "to_string":
		if t != TimeType {
			return wrong(column.Pos, "to_string takes a timestamp, and '%s' is a %s", column.Field, t)
		}
		if _, err := Mask(column.Mask); err != nil {
			return wrong(column.Pos, "%v", err)
		}
	case "jsonb_typeof":
		if t != JSONType {
			return wrong(column.Pos, "jsonb_typeof takes json, and '%s' is a %s", column.Field, t)
		}
	}
	whole := len(column.Field.Path) == 0 && info.Nested || t == JSONType && !info.Test && !info.Nested
	if column.Function != "" && column.Function != "count" && whole {
		return wrong(column.Pos, "%s takes one value, and '%s' has many", column.Function, column.Field)
	}
	return nil
}

func (c checker) orders(q *Query) *Error {
	for _, o := range q.OrderBy {
		name := o.Field.Field.Name
		if o.Field.Function == "" && slices.ContainsFunc(q.Columns, func(x Column) bool { return x.Function == name && len(o.Field.Field.Path) == 0 }) {
			continue // by the name of a function that is a column
		}
		info := c.entity.Field(name)
		if o.Field.Function == "" && (info == nil || !info.Answer || len(o.Field.Field.Path) > 0 && !info.Nested) {
			return wrong(o.Field.Pos, "Unrecognized column '%s' specified in :order_by; Supported columns are '%s'",
				o.Field.Field, strings.Join(c.names(func(f FieldInfo) bool { return f.Answer }), "', '"))
		}
		if err := c.column(o.Field); err != nil {
			return err
		}
		if info != nil && o.Field.Function == "" && info.Type == JSONType && !info.Test && len(o.Field.Field.Path) == 0 {
			return wrong(o.Field.Pos, "rows cannot be ordered by '%s'", o.Field.Field)
		}
		same := func(g Column) bool { return g.key() == o.Field.key() }
		sums := slices.ContainsFunc(q.Columns, Column.Aggregates) || len(q.GroupBy) > 0
		if sums && !slices.ContainsFunc(slices.Concat(q.Columns, q.GroupBy), same) {
			return wrong(o.Field.Pos, "groups can be ordered by their columns only, not by '%s'", o.Field.Name())
		}
	}
	return nil
}

func (c checker) names(which func(FieldInfo) bool) []string {
	var names []string
	for _, f := range c.entity.Fields {
		if which(f) {
			names = append(names, f.Name)
		}
	}
	return names
}

// and lists quoted words with "and" before the last.
func and(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + w + "'"
	}
	switch n := len(quoted); n {
	case 0:
		return ""
	case 1:
		return quoted[0]
	case 2:
		return quoted[0] + " and " + quoted[1]
	default:
		return strings.Join(quoted[:n-1], ", ") + ", and " + quoted[n-1]
	}
}

func (c checker) expr(e Expr) *Error {
	switch e := e.(type) {
	case And:
		return c.terms(e.Terms)
	case Or:
		return c.terms(e.Terms)
	case Not:
		return c.expr(e.Term)
	case Compare:
		return c.compare(e)
	case Null:
		_, err := c.tested(e.Field)
		return err
	case In:
		return c.in(e)
	case Subquery:
		if LookUp(e.Query.Entity) != nil {
			if here, _ := Related(c.entity.Name, e.Query.Entity); here == nil {
				return wrong(e.Query.Pos, "No implicit relationship for entity '%s'", e.Query.Entity)
			}
		}
		return c.query(e.Query, relative)
	}
	return wrong(Pos{}, "a condition is missing")
}

func (c checker) terms(terms []Expr) *Error {
	for _, t := range terms {
		if err := c.expr(t); err != nil {
			return err
		}
	}
	return nil
}

// tested finds a field that a condition may use.
func (c checker) tested(f Field) (*FieldInfo, *Error) {
	info := c.entity.Field(f.Name)
	if info == nil || len(f.Path) > 0 && !info.Nested || len(f.Path) == 0 && !info.Test {
		known := c.names(func(f FieldInfo) bool { return (f.Test || f.Nested) && f.Name != "node_state" })
		slices.Sort(known)
		return nil, wrong(f.Pos, "'%s' is not a queryable object for %s. Known queryable objects are %s", f, c.entity.Name, and(known)).near(f.Name, known)
	}
	return info, c.steps(f)
}

func (c checker) steps(f Field) *Error {
	for _, s := range f.Path {
		if s.Kind == Match {
			if _, err := Regexp(s.Text); err != nil {
				return wrong(f.Pos, "%v", err)
			}
			if f.Name == "parameters" {
				return wrong(f.Pos, "match() leads into facts and trusted only")
			}
		}
	}
	return nil
}

func (c checker) compare(e Compare) *Error {
	info, err := c.tested(e.Field)
	if err != nil {
		return err
	}
	switch e.Op {
	case "=":
		return c.equals(info, e.Field, e.Value)
	case "~":
		return c.matches(info, e)
	case "~>":
		return c.pathMatches(info, e)
	default:
		return c.ordered(info, e)
	}
}

func (c checker) ordered(info *FieldInfo, e Compare) *Error {
	switch info.Type {
	case TimeType:
		return timestamp(e.Value)
	case NumberType, JSONType:
		if _, ok := e.Value.Number(); !ok {
			return wrong(e.Value.Pos, "Argument \"%s\" and operator \"%s\" have incompatible types.", e.Value.Text, e.Op)
		}
		return nil
	case TextType, BoolType, ListType, PathType:
	}
	return wrong(e.Pos, "Query operators >,>=,<,<= are not allowed on field %s", e.Field)
}

func timestamp(v Value) *Error {
	if _, ok := Time(v.Text); !ok || v.Kind != String {
		return wrong(v.Pos, "'%s' is not a valid timestamp value", v.Text)
	}
	return nil
}

// equals checks a value that a field is held against.
func (c checker) equals(info *FieldInfo, f Field, v Value) *Error {
	if v.Kind == NullValue {
		return wrong(v.Pos, "nothing equals null; ask whether '%s' is null", f)
	}
	ok := true
	switch info.Type {
	case TextType:
		ok = v.Kind == String
		if ok && f.Name == "node_state" && !slices.Contains([]string{"active", "inactive", "any"}, v.Text) {
			return wrong(v.Pos, "node_state is active, inactive or any, not '%s'", v.Text)
		}
	case ListType:
		ok = v.Kind == String
	case BoolType:
		ok = v.Kind == Boolean
	case NumberType:
		_, ok = v.Number()
	case TimeType:
		return timestamp(v)
	case JSONType:
		ok = v.Kind != List || c.entity.Name == "resources" // parameters are compared whole
	case PathType:
		ok = v.Kind == List && !slices.ContainsFunc(v.List, func(s Value) bool { return s.Kind != String && s.Kind != Integer })
	}
	switch {
	case ok:
		return nil
	case info.Type == NumberType && v.Kind == String:
		return wrong(v.Pos, "Argument \"%s\" is incompatible with numeric field \"%s\".", v.Text, f)
	}
	return wrong(v.Pos, "'%s' is a %s and cannot be compared with %s", f, info.Type, v)
}

func (c checker) matches(info *FieldInfo, e Compare) *Error {
	if info.Type != TextType && info.Type != ListType && info.Type != JSONType || e.Field.Name == "node_state" {
		return wrong(e.Pos, "Query operator ~ is not allowed on field %s", e.Field)
	}
	if e.Value.Kind != String {
		return wrong(e.Value.Pos, "a regular expression is a string, not %s", e.Value)
	}
	if _, err := Regexp(e.Value.Text); err != nil {
		return wrong(e.Value.Pos, "%v", err)
	}
	return nil
}

func (c checker) pathMatches(info *FieldInfo, e Compare) *Error {
	if info.Type != PathType {
		return wrong(e.Pos, "Query operator ~> is not allowed on field %s", e.Field)
	}
	if e.Value.Kind != List {
		return wrong(e.Value.Pos, "~> takes a list of regular expressions and indexes")
	}
	for _, v := range e.Value.List {
		if v.Kind != String && v.Kind != Integer {
			return wrong(v.Pos, "~> takes regular expressions and indexes, not %s", v)
		}
		if _, err := Regexp(v.Text); v.Kind == String && err != nil {
			return wrong(v.Pos, "%v", err)
		}
	}
	return nil
}

// maxValues is how long a list after `in` may be.
const maxValues = 10_000

func (c checker) in(e In) *Error {
	infos := make([]*FieldInfo, len(e.Fields))
	for i, f := range e.Fields {
		var err *Error
		if infos[i], err = c.tested(f); err != nil {
			return err
		}
		if f.Name == "node_state" {
			return wrong(f.Pos, "node_state is compared with =")
		}
	}
	if e.Query != nil {
		return c.inQuery(e, infos)
	}
	if len(e.Fields) == 0 || len(e.Values) > maxValues {
		return wrong(e.Pos, "in takes at least one field, and at most %d values", maxValues)
	}
	for _, v := range e.Values {
		if err := c.inValue(e, infos, v); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) inValue(e In, infos []*FieldInfo, v Value) *Error {
	if len(e.Fields) == 1 {
		return c.equals(infos[0], e.Fields[0], v)
	}
	if v.Kind != List || len(v.List) != len(e.Fields) {
		return wrong(v.Pos, "each value is a list of %d, as many as there are fields", len(e.Fields))
	}
	for i, item := range v.List {
		if err := c.equals(infos[i], e.Fields[i], item); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) inQuery(e In, infos []*FieldInfo) *Error {
	if err := c.query(e.Query, operand); err != nil {
		return err
	}
	if len(e.Query.Columns) != len(e.Fields) {
		return wrong(e.Query.Pos, "the query after 'in' has %d columns, and there are %d fields before it", len(e.Query.Columns), len(e.Fields))
	}
	other := LookUp(e.Query.Entity)
	for i, column := range e.Query.Columns {
		if t := columnType(other, column); t != infos[i].Type {
			return wrong(e.Pos, "'%s' is a %s and cannot be among '%s', which is a %s", e.Fields[i], infos[i].Type, column.Name(), t)
		}
		if infos[i].Type == JSONType {
			return wrong(e.Pos, "'%s' can be any value and cannot be looked up in a query", e.Fields[i])
		}
	}
	return nil
}

// columnType is what a column of e holds.
func columnType(e *Entity, c Column) Type {
	switch c.Function {
	case "count", "avg", "sum":
		return NumberType
	case "to_string", "jsonb_typeof":
		return TextType
	}
	return e.Field(c.Field.Name).Type
}

// Time reads a timestamp; what is left out is zero, without a zone it is UTC.
func Time(text string) (time.Time, bool) {
	for _, layout := range [...]string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04",
		"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02", "2006-01", "2006",
	} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// explainRegexp words an error of a pattern.
func explainRegexp(pattern string, err error) error {
	return fmt.Errorf("invalid regular expression %q: %w", pattern, err)
}

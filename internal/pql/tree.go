package pql

import (
	"strconv"
	"strings"
)

// Bounds of a query.
const (
	MaxBytes = 1 << 20
	MaxDepth = 60
)

// Pos is a place in a query text, in characters from 1. The zero Pos is nowhere.
type Pos struct {
	Line, Column int
}

// Query asks for rows of one entity.
type Query struct {
	Pos     Pos
	Entity  string
	Columns []Column // empty: every field
	Where   Expr     // nil: every row
	GroupBy []Column
	OrderBy []Order
	Limit   *int64
	Offset  *int64
}

// Names are the keys of the query's rows, in order.
func (q *Query) Names() []string {
	var names []string
	for _, c := range q.Columns {
		names = append(names, c.Name())
	}
	if e := LookUp(q.Entity); e != nil && names == nil {
		for _, f := range e.Fields {
			if f.Answer {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// Column is a field, or a function of one.
type Column struct {
	Pos      Pos
	Function string // count, avg, sum, min, max, to_string, jsonb_typeof; empty: the field itself
	Field    Field  // its Name is empty for count()
	Mask     string // of to_string
}

// Name is the key that a column has in an answer.
func (c Column) Name() string {
	if c.Function != "" {
		return c.Function
	}
	return c.Field.String()
}

// Order is one key of an order.
type Order struct {
	Field      Column // of an aggregate, the function's name is a field's name here
	Descending bool
}

// Field names a field of an entity, or a place inside a structured one.
type Field struct {
	Pos  Pos
	Name string
	Path []Step
}

// Step leads one level down into a structured value.
type Step struct {
	Kind   StepKind
	Text   string // the key, or the regular expression
	Index  int64
	Quoted bool // the key was written in quotes
}

// StepKind tells steps apart.
type StepKind uint8

// The kinds of step.
const (
	Key   StepKind = iota
	Index          // [2]
	Match          // match("eth.*"): any key that matches
)

func (f Field) String() string {
	var b strings.Builder
	b.WriteString(f.Name)
	for _, s := range f.Path {
		s.write(&b)
	}
	return b.String()
}

func (s Step) write(b *strings.Builder) {
	switch s.Kind {
	case Index:
		b.WriteString("[" + strconv.FormatInt(s.Index, 10) + "]")
	case Match:
		b.WriteString(`.match("` + s.Text + `")`)
	case Key:
		b.WriteByte('.')
		if s.Quoted || !bareKey(s.Text) {
			b.WriteString(`"` + s.Text + `"`)
			return
		}
		b.WriteString(s.Text)
	}
}

// Expr is a condition on a row.
type Expr interface{ expr() }

// The conditions.
type (
	// And holds when every term does.
	And struct{ Terms []Expr }
	// Or holds when one term does.
	Or struct{ Terms []Expr }
	// Not holds when its term does not.
	Not struct{ Term Expr }
	// Compare holds a field against a value. A missing value never compares.
	Compare struct {
		Pos   Pos
		Op    string // = > < >= <= ~ ~>
		Field Field
		Value Value
	}
	// Null asks whether a field has no value, or with Is false whether it has one.
	Null struct {
		Pos   Pos
		Field Field
		Is    bool
	}
	// In asks whether fields are among the rows of a query, or among values.
	In struct {
		Pos    Pos
		Fields []Field
		Query  *Query // nil: Values
		Values []Value
	}
	// Subquery asks whether a related row of another entity exists.
	Subquery struct{ Query *Query }
)

func (And) expr()      {}
func (Or) expr()       {}
func (Not) expr()      {}
func (Compare) expr()  {}
func (Null) expr()     {}
func (In) expr()       {}
func (Subquery) expr() {}

// Value is a literal.
type Value struct {
	Pos  Pos
	Kind ValueKind
	Text string // a string's content; of the others what was written
	List []Value
}

// ValueKind is the type of a literal.
type ValueKind uint8

// The types of literals.
const (
	String ValueKind = iota
	Integer
	Real
	Boolean
	NullValue
	List
)

// Text makes a string literal.
func Text(s string) Value { return Value{Kind: String, Text: s} }

// Number is the value of a number.
func (v Value) Number() (float64, bool) {
	if v.Kind != Integer && v.Kind != Real {
		return 0, false
	}
	n, err := strconv.ParseFloat(v.Text, 64)
	return n, err == nil
}

// bareKey tells keys that need no quotes in a path.
func bareKey(key string) bool {
	for _, r := range key {
		if !isBare(r) {
			return false
		}
	}
	return key != "" && !strings.HasPrefix(key, "match(")
}

func isBare(r rune) bool {
	return r > ' ' && r != 0x7f && !strings.ContainsRune(`.",[]!<=>~{}()`, r) && r != '\u00a0' && r != '\u0085'
}

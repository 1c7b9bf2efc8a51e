package pql

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// String writes a query in PQL on one line. Entities that PQL cannot name are
// written all the same.
func (q *Query) String() string {
	var p printer
	p.query(q)
	return p.b.String()
}

type printer struct{ b strings.Builder }

func (p *printer) add(texts ...string) {
	for _, t := range texts {
		p.b.WriteString(t)
	}
}

func (p *printer) query(q *Query) {
	p.add(q.Entity)
	if len(q.Columns) > 0 {
		p.add("[")
		p.columns(q.Columns)
		p.add("]")
	}
	p.add(" {")
	if q.Where != nil {
		p.add(" ")
		p.expr(q.Where, weakest)
	}
	p.clauses(q)
	if p.b.String()[p.b.Len()-1] != '{' {
		p.add(" ")
	}
	p.add("}")
}

func (p *printer) clauses(q *Query) {
	if len(q.GroupBy) > 0 {
		p.add(" group by ")
		p.columns(q.GroupBy)
	}
	for i, o := range q.OrderBy {
		p.add([]string{" order by ", ", "}[min(i, 1)])
		p.column(o.Field)
		if o.Descending {
			p.add(" desc")
		}
	}
	if q.Limit != nil {
		p.add(" limit ", strconv.FormatInt(*q.Limit, 10))
	}
	if q.Offset != nil {
		p.add(" offset ", strconv.FormatInt(*q.Offset, 10))
	}
}

func (p *printer) columns(list []Column) {
	for i, c := range list {
		if i > 0 {
			p.add(", ")
		}
		p.column(c)
	}
}

func (p *printer) column(c Column) {
	if c.Function == "" {
		p.add(c.Field.String())
		return
	}
	p.add(c.Function, "(", c.Field.String())
	if c.Mask != "" {
		p.add(", ", quote(c.Mask))
	}
	p.add(")")
}

// How tightly an operator binds; a term that binds less needs parentheses.
const (
	weakest = iota
	inOr
	inAnd
	inNot
)

func (p *printer) expr(e Expr, around int) {
	switch e := e.(type) {
	case Or:
		p.terms(e.Terms, " or ", around >= inOr, inOr)
	case And:
		p.terms(e.Terms, " and ", around >= inAnd, inAnd)
	case Not:
		p.not(e.Term)
	case Compare:
		p.compare(e, "")
	case Null:
		p.add(e.Field.String(), map[bool]string{true: " is null", false: " is not null"}[e.Is])
	case In:
		p.in(e)
	case Subquery:
		p.query(e.Query)
	}
}

func (p *printer) terms(terms []Expr, word string, wrap bool, around int) {
	if wrap {
		p.add("(")
		defer p.add(")")
	}
	for i, t := range terms {
		if i > 0 {
			p.add(word)
		}
		p.expr(t, around)
	}
}

func (p *printer) not(term Expr) {
	if c, ok := term.(Compare); ok && (c.Op == "=" || c.Op == "~") {
		p.compare(c, "!")
		return
	}
	p.add("!")
	if _, ok := term.(Null); ok {
		p.add("(")
		defer p.add(")")
	}
	p.expr(term, inNot)
}

func (p *printer) compare(c Compare, prefix string) {
	p.add(c.Field.String(), " ", prefix, c.Op, " ", c.Value.String())
}

func (p *printer) in(e In) {
	if len(e.Fields) == 1 {
		p.add(e.Fields[0].String())
	} else {
		p.add("[")
		for i, f := range e.Fields {
			p.add([]string{"", ", "}[min(i, 1)], f.String())
		}
		p.add("]")
	}
	p.add(" in ")
	if e.Query != nil {
		p.query(e.Query)
		return
	}
	p.add(Value{Kind: List, List: e.Values}.String())
}

// String writes a literal in PQL.
func (v Value) String() string {
	switch v.Kind {
	case String:
		return quote(v.Text)
	case List:
		parts := make([]string, len(v.List))
		for i, item := range v.List {
			parts[i] = item.String()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case NullValue:
		return "null"
	case Integer, Real, Boolean:
	}
	return v.Text
}

// quote writes a JSON string.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

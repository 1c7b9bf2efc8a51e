package pql

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Read reads a query in the notation that it is in: the AST begins with a bracket.
func Read(text string) (*Query, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		return ParseAST(text, "")
	}
	return Parse(text)
}

// Parse reads a query in PQL.
func Parse(text string) (*Query, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	p.space()
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(p.text) {
		p.miss("the end of the query")
		return nil, p.fail()
	}
	return q, nil
}

func newParser(text string) (*parser, *Error) {
	if len(text) > MaxBytes {
		return nil, wrong(Pos{}, "the query has %d bytes, at most %d are allowed", len(text), MaxBytes)
	}
	if !utf8.ValidString(text) {
		return nil, wrong(Pos{}, "the query is not valid UTF-8")
	}
	return &parser{scan{text: text}}, nil
}

// parser reads PQL by recursive descent: one method for each rule.
type parser struct{ scan }

// query = entity projection? block
func (p *parser) query() (*Query, *Error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	q := &Query{Pos: p.pos()}
	if err := p.entity(q); err != nil {
		return nil, err
	}
	p.space()
	if err := p.projection(q); err != nil {
		return nil, err
	}
	p.space()
	return q, p.block(q)
}

func (p *parser) entity(q *Query) *Error {
	start := p.at
	name := p.peekName()
	if e := LookUp(name); e == nil || e.Hidden {
		for i := range schema {
			if !schema[i].Hidden {
				p.miss(schema[i].Name)
			}
		}
		p.at = start
		return p.fail()
	}
	q.Entity = name
	p.at += len(name)
	return nil
}

// projection = '[' (column (',' column)*)? ']'
func (p *parser) projection(q *Query) *Error {
	if !p.take("[") {
		return nil
	}
	p.space()
	if p.take("]") {
		return nil
	}
	var err *Error
	if q.Columns, err = p.columns(); err != nil {
		return err
	}
	p.space()
	if !p.take("]") {
		return p.fail()
	}
	return nil
}

func (p *parser) columns() ([]Column, *Error) {
	var list []Column
	for {
		p.space()
		c, err := p.column()
		if err != nil {
			return nil, err
		}
		list = append(list, c)
		if !p.comma() {
			return list, nil
		}
	}
}

// comma reads a comma with white space around it, or nothing.
func (p *parser) comma() bool {
	start := p.at
	p.space()
	if p.take(",") {
		p.space()
		return true
	}
	p.at = start
	return false
}

// column = field | function '(' field? (',' string)? ')'
func (p *parser) column() (Column, *Error) {
	c := Column{Pos: p.pos()}
	if name := p.peekName(); isFunction(name) {
		start := p.at
		p.at += len(name)
		p.space()
		if p.take("(") {
			c.Function = name
			return c, p.arguments(&c)
		}
		p.at = start
	}
	var err *Error
	c.Field, err = p.field()
	return c, err
}

func (p *parser) arguments(c *Column) *Error {
	p.space()
	if p.take(")") {
		return nil
	}
	var err *Error
	if c.Field, err = p.field(); err != nil {
		return err
	}
	if p.comma() {
		if c.Mask, err = p.quoted(); err != nil {
			return err
		}
	}
	p.space()
	if !p.take(")") {
		return p.fail()
	}
	return nil
}

// block = '{' condition? (group | paging*) '}'
func (p *parser) block(q *Query) *Error {
	if !p.take("{") {
		return p.fail()
	}
	p.space()
	switch {
	case p.at == len(p.text):
		for _, what := range []string{"a field", "!", "(", "["} {
			p.miss(what)
		}
	case !p.clauseAhead() && p.peek() != '}':
		var err *Error
		if q.Where, err = p.or(); err != nil {
			return err
		}
		p.space()
	}
	for !p.take("}") {
		if err := p.clause(q); err != nil {
			return err
		}
		p.space()
	}
	return nil
}

// clauseAhead tells `limit 5` from a condition on a field named limit.
func (p *parser) clauseAhead() bool {
	look := *p
	for _, w := range []string{"group", "order"} {
		if look.words(w, "by") {
			return true
		}
	}
	for _, w := range []string{"limit", "offset"} {
		look.at = p.at
		if look.word(w) && look.space() {
			if _, ok := look.digits(""); ok {
				return true
			}
		}
	}
	return false
}

func (p *parser) clause(q *Query) *Error {
	var err *Error
	at := p.pos()
	switch {
	case q.GroupBy == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil && p.words("group", "by"):
		q.GroupBy, err = p.columns()
		return err
	case p.words("order", "by"):
		if q.OrderBy != nil {
			return wrong(at, "Multiple 'order_by' clauses are not permitted").in(p.text)
		}
		return p.orders(q)
	case p.word("limit"):
		return p.amount(&q.Limit, at, "limit")
	case p.word("offset"):
		return p.amount(&q.Offset, at, "offset")
	}
	return p.fail()
}

func (p *parser) amount(to **int64, at Pos, word string) (err *Error) {
	if *to != nil {
		return wrong(at, "Multiple '%s' clauses are not permitted", word).in(p.text)
	}
	*to, err = p.count()
	return err
}

func (p *parser) count() (*int64, *Error) {
	p.space()
	start := p.at
	text, ok := p.digits("a whole number")
	if !ok {
		return nil, p.fail()
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, p.failAt(start, "the number is too large", "a whole number")
	}
	return &n, nil
}

func (p *parser) orders(q *Query) *Error {
	for {
		p.space()
		column, err := p.column()
		if err != nil {
			return err
		}
		o := Order{Field: column}
		start := p.at
		if p.space() {
			switch {
			case p.word("desc"):
				o.Descending = true
			case p.word("asc"):
			default:
				p.at = start
			}
		}
		q.OrderBy = append(q.OrderBy, o)
		if !p.comma() {
			return nil
		}
	}
}

// or = and (' or ' and)*
func (p *parser) or() (Expr, *Error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	terms, err := p.chain("or", p.and)
	if err != nil || len(terms) == 1 {
		return one(terms), err
	}
	return Or{terms}, nil
}

func (p *parser) and() (Expr, *Error) {
	terms, err := p.chain("and", p.unary)
	if err != nil || len(terms) == 1 {
		return one(terms), err
	}
	return And{terms}, nil
}

func one(terms []Expr) Expr {
	if len(terms) == 0 {
		return nil
	}
	return terms[0]
}

func (p *parser) chain(word string, term func() (Expr, *Error)) ([]Expr, *Error) {
	var terms []Expr
	for {
		t, err := term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
		start := p.at
		if !p.space() || !p.word(word) || !p.space() {
			p.at = start
			return terms, nil
		}
	}
}

// unary = '!'? ( '(' or ')' | subquery | condition )
func (p *parser) unary() (Expr, *Error) {
	if p.take("!") {
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		p.space()
		term, err := p.unary()
		return Not{term}, err
	}
	if p.take("(") {
		p.space()
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		p.space()
		if !p.take(")") {
			return nil, p.fail()
		}
		return inner, nil
	}
	if p.subqueryAhead() {
		q, err := p.query()
		return Subquery{q}, err
	}
	return p.condition()
}

func (p *parser) subqueryAhead() bool {
	name := p.peekName()
	e := LookUp(name)
	if e == nil || e.Hidden {
		return false
	}
	rest := strings.TrimLeft(p.text[p.at+len(name):], " \t\r\n\v\f")
	return strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "[")
}

func (p *parser) condition() (Expr, *Error) {
	at := p.pos()
	if p.take("[") {
		return p.tuple(at)
	}
	f, err := p.field()
	if err != nil {
		return nil, err
	}
	spaced := p.space()
	if spaced {
		if e, err := p.null(at, f); e != nil || err != nil {
			return e, err
		}
		if p.word("in") {
			return p.among(at, []Field{f})
		}
	}
	return p.compare(at, f)
}

func (p *parser) null(at Pos, f Field) (Expr, *Error) {
	if !p.word("is") {
		return nil, nil
	}
	p.space()
	is := true
	if p.word("not") {
		is = false
		p.space()
	}
	if !p.word("null") {
		return nil, p.fail()
	}
	return Null{at, f, is}, nil
}

// operators are tried longest first.
var operators = [...]string{"~>", "!~", "!=", ">=", "<=", "~", "=", ">", "<"}

func (p *parser) compare(at Pos, f Field) (Expr, *Error) {
	for _, op := range operators {
		if !p.take(op) {
			continue
		}
		p.space()
		v, err := p.operand(op)
		if err != nil {
			return nil, err
		}
		if positive, negated := strings.CutPrefix(op, "!"); negated {
			return Not{Compare{at, positive, f, v}}, nil
		}
		return Compare{at, op, f, v}, nil
	}
	return nil, p.fail()
}

func (p *parser) operand(op string) (Value, *Error) {
	if op == "~>" && !strings.HasPrefix(p.rest(), "[") {
		p.miss("a list of regular expressions")
		return Value{}, p.fail()
	}
	return p.value()
}

// tuple = '[' field (',' field)* ']' 'in' …
func (p *parser) tuple(at Pos) (Expr, *Error) {
	var fields []Field
	for {
		p.space()
		f, err := p.field()
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
		if !p.comma() {
			break
		}
	}
	p.space()
	if !p.take("]") {
		return nil, p.fail()
	}
	p.space()
	if !p.word("in") {
		return nil, p.fail()
	}
	return p.among(at, fields)
}

// among reads what follows `in`: a list, or a query.
func (p *parser) among(at Pos, fields []Field) (Expr, *Error) {
	p.space()
	if strings.HasPrefix(p.rest(), "[") {
		list, err := p.value()
		return In{Pos: at, Fields: fields, Values: list.List}, err
	}
	p.miss("a list of values")
	q, err := p.query()
	return In{Pos: at, Fields: fields, Query: q}, err
}

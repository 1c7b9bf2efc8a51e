package pql

import (
	"strings"
)

// ParseAST reads a query in the AST language. entity is what is asked for when the
// text does not begin with "from"; it is empty where the text must say it. An
// empty text asks for every row of entity.
func ParseAST(text, entity string) (*Query, error) {
	if strings.TrimSpace(text) == "" && entity != "" {
		return &Query{Entity: entity}, nil
	}
	n, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	var a astReader
	var q *Query
	if n.head() == "from" {
		q, err = a.from(n)
	} else if entity == "" {
		err = wrong(n.pos, "a query names its entity first: [\"from\", ENTITY, ...]")
	} else {
		q = &Query{Pos: n.pos, Entity: entity}
		err = a.body(q, n)
	}
	if err != nil {
		return nil, err.in(text)
	}
	return q, nil
}

// head is the operator of a form.
func (n node) head() string {
	if n.kind == List && len(n.items) > 0 && n.items[0].kind == String {
		return n.items[0].text
	}
	return ""
}

// astReader turns JSON into a tree. How deep it nests was bounded before.
type astReader struct{}

// from = ["from", entity, body?, paging*]
func (a astReader) from(n node) (*Query, *Error) {
	if len(n.items) < 2 || n.items[1].kind != String {
		return nil, wrong(n.pos, "'from' is followed by the name of an entity")
	}
	q := &Query{Pos: n.pos, Entity: entityWord(n.items[1].text)}
	if LookUp(q.Entity) == nil {
		return nil, wrong(n.items[1].pos, "Invalid entity '%s' in query", n.items[1].text)
	}
	rest := n.items[2:]
	if len(rest) > 0 && !isPaging(rest[0].head()) {
		if err := a.body(q, rest[0]); err != nil {
			return nil, err
		}
		rest = rest[1:]
	}
	for _, clause := range rest {
		if err := a.paging(q, clause); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// entityWord accepts the names that addresses have.
func entityWord(name string) string { return strings.ReplaceAll(name, "-", "_") }

func isPaging(head string) bool { return head == "order_by" || head == "limit" || head == "offset" }

// body = ["extract", columns, condition?, group?] | condition
func (a astReader) body(q *Query, n node) *Error {
	if n.kind == NullValue {
		return nil
	}
	if n.head() == "extract" {
		return a.extract(q, n)
	}
	var err *Error
	q.Where, err = a.condition(n)
	return err
}

func (a astReader) extract(q *Query, n node) *Error {
	if len(n.items) < 2 || len(n.items) > 4 {
		return wrong(n.pos, "'extract' takes columns, a condition and a grouping")
	}
	var err *Error
	if q.Columns, err = a.columns(n.items[1]); err != nil {
		return err
	}
	for _, part := range n.items[2:] {
		switch {
		case part.kind == NullValue:
		case part.head() == "group_by":
			for _, item := range part.items[1:] {
				c, err := a.column(item)
				if err != nil {
					return err
				}
				q.GroupBy = append(q.GroupBy, c)
			}
		case q.Where != nil:
			return wrong(part.pos, "'extract' takes one condition")
		default:
			if q.Where, err = a.condition(part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a astReader) columns(n node) ([]Column, *Error) {
	if n.kind != List || n.head() == "function" {
		c, err := a.column(n)
		return []Column{c}, err
	}
	var list []Column
	for _, item := range n.items {
		c, err := a.column(item)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// column = field | ["function", name, field?, mask?]
func (a astReader) column(n node) (Column, *Error) {
	c := Column{Pos: n.pos}
	var err *Error
	if n.head() != "function" {
		c.Field, err = a.field(n)
		return c, err
	}
	if len(n.items) < 2 || len(n.items) > 4 || n.items[1].kind != String || !isFunction(n.items[1].text) {
		return c, wrong(n.pos, "a function is [\"function\", NAME, FIELD]; there are %s", strings.Join(functions[:], ", "))
	}
	c.Function = n.items[1].text
	if len(n.items) > 2 {
		if c.Field, err = a.field(n.items[2]); err != nil {
			return c, err
		}
	}
	if len(n.items) > 3 {
		if n.items[3].kind != String {
			return c, wrong(n.items[3].pos, "a mask is a string")
		}
		c.Mask = n.items[3].text
	}
	return c, nil
}

// field reads a name with its path, or ["parameter", name].
func (a astReader) field(n node) (Field, *Error) {
	f := Field{Pos: n.pos}
	if n.head() == "parameter" && len(n.items) == 2 && n.items[1].kind == String {
		f.Name, f.Path = "parameters", []Step{{Text: n.items[1].text}}
		return f, nil
	}
	if n.kind != String {
		return f, wrong(n.pos, "a field is a string")
	}
	return a.dotted(f, n)
}

func (a astReader) dotted(f Field, n node) (Field, *Error) {
	name, _, dotted := strings.Cut(n.text, ".")
	if !dotted || !isStructured(name) {
		f.Name = n.text
		return f, nil
	}
	p := parser{scan{text: n.text}}
	inner, err := p.field()
	if err != nil || p.at < len(n.text) {
		return f, wrong(n.pos, "'%s' is not a path into %s", n.text, name)
	}
	inner.Pos = n.pos
	return inner, nil
}

func (a astReader) paging(q *Query, n node) *Error {
	head := n.head()
	if !isPaging(head) || len(n.items) != 2 {
		return wrong(n.pos, "only order_by, limit and offset may follow the condition, each with one argument")
	}
	if head == "order_by" {
		if q.OrderBy != nil {
			return wrong(n.pos, "Multiple 'order_by' clauses are not permitted")
		}
		return a.orders(q, n.items[1])
	}
	to := &q.Limit
	if head == "offset" {
		to = &q.Offset
	}
	if *to != nil {
		return wrong(n.pos, "Multiple '%s' clauses are not permitted", head)
	}
	p := parser{scan{text: n.items[1].text}}
	count, err := p.count()
	if err != nil || p.at < len(p.text) || n.items[1].kind != Integer {
		return wrong(n.items[1].pos, "the %s is a whole number from 0", head)
	}
	*to = count
	return nil
}

// orders = [ field | [field, "asc"|"desc"], ... ]
func (a astReader) orders(q *Query, n node) *Error {
	if n.kind != List {
		return wrong(n.pos, "'order_by' takes a list")
	}
	for _, item := range n.items {
		var o Order
		var err *Error
		if item.kind == List && item.head() != "function" && len(item.items) > 0 {
			if len(item.items) > 2 {
				return wrong(item.pos, "an order is a field, and asc or desc")
			}
			if len(item.items) == 2 {
				direction := strings.ToLower(item.items[1].text)
				if direction != "asc" && direction != "desc" {
					return wrong(item.items[1].pos, "the order is asc or desc, not '%s'", item.items[1].text)
				}
				o.Descending = direction == "desc"
			}
			item = item.items[0]
		}
		if o.Field, err = a.column(item); err != nil {
			return err
		}
		q.OrderBy = append(q.OrderBy, o)
	}
	return nil
}

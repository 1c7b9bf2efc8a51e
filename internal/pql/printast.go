package pql

import (
	"strconv"
	"strings"
)

// AST writes a query in the AST language.
func (q *Query) AST() string {
	parts := []string{quote("from"), quote(q.Entity)}
	if body := q.body(); body != "" {
		parts = append(parts, body)
	}
	if len(q.OrderBy) > 0 {
		orders := make([]string, len(q.OrderBy))
		for i, o := range q.OrderBy {
			orders[i] = o.Field.ast()
			if o.Descending {
				orders[i] = array(orders[i], quote("desc"))
			}
		}
		parts = append(parts, array(quote("order_by"), array(orders...)))
	}
	if q.Limit != nil {
		parts = append(parts, array(quote("limit"), strconv.FormatInt(*q.Limit, 10)))
	}
	if q.Offset != nil {
		parts = append(parts, array(quote("offset"), strconv.FormatInt(*q.Offset, 10)))
	}
	return array(parts...)
}

func array(parts ...string) string { return "[" + strings.Join(parts, ",") + "]" }

// body is the extract form, or the condition alone.
func (q *Query) body() string {
	if len(q.Columns) == 0 && len(q.GroupBy) == 0 {
		if q.Where == nil {
			return ""
		}
		return exprAST(q.Where)
	}
	parts := []string{quote("extract"), array(columnsAST(q.Columns)...)}
	if q.Where != nil {
		parts = append(parts, exprAST(q.Where))
	}
	if len(q.GroupBy) > 0 {
		parts = append(parts, array(append([]string{quote("group_by")}, columnsAST(q.GroupBy)...)...))
	}
	return array(parts...)
}

func columnsAST(columns []Column) []string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.ast()
	}
	return list
}

func (c Column) ast() string {
	if c.Function == "" {
		return quote(c.Field.String())
	}
	parts := []string{quote("function"), quote(c.Function)}
	if c.Field.Name != "" {
		parts = append(parts, quote(c.Field.String()))
	}
	if c.Mask != "" {
		parts = append(parts, quote(c.Mask))
	}
	return array(parts...)
}

func exprAST(e Expr) string {
	switch e := e.(type) {
	case And:
		return termsAST("and", e.Terms)
	case Or:
		return termsAST("or", e.Terms)
	case Not:
		return termsAST("not", []Expr{e.Term})
	case Compare:
		return array(quote(e.Op), quote(e.Field.String()), e.Value.ast())
	case Null:
		return array(quote("null?"), quote(e.Field.String()), strconv.FormatBool(e.Is))
	case In:
		return e.ast()
	case Subquery:
		parts := []string{quote("subquery"), quote(e.Query.Entity)}
		if body := e.Query.body(); body != "" {
			parts = append(parts, body)
		}
		return array(parts...)
	}
	return "null"
}

func termsAST(head string, terms []Expr) string {
	parts := []string{quote(head)}
	for _, t := range terms {
		parts = append(parts, exprAST(t))
	}
	return array(parts...)
}

func (e In) ast() string {
	fields := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		fields[i] = quote(f.String())
	}
	names := array(fields...)
	if len(fields) == 1 {
		names = fields[0]
	}
	if e.Query != nil {
		return array(quote("in"), names, e.Query.AST())
	}
	return array(quote("in"), names, array(quote("array"), Value{Kind: List, List: e.Values}.ast()))
}

// JSON writes a literal as JSON.
func (v Value) JSON() string { return v.ast() }

// ast writes a literal as JSON.
func (v Value) ast() string {
	if v.Kind != List {
		return v.String()
	}
	parts := make([]string, len(v.List))
	for i, item := range v.List {
		parts[i] = item.ast()
	}
	return array(parts...)
}

package sql

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/pql"
)

// truth has SQL's three values.
type truth int8

const (
	no truth = iota
	unknown
	yes
)

func of(b bool) truth {
	if b {
		return yes
	}
	return no
}

// matching are the rows that fulfil the condition.
func (o oracle) matching(q *pql.Query, active bool) []oracleRow {
	var out []oracleRow
	for _, r := range o.rows[q.Entity] {
		if r.node != "" && active && o.state(r.node) != "active" {
			continue
		}
		if q.Where == nil || o.holds(q.Entity, r, q.Where) == yes {
			out = append(out, r)
		}
	}
	return out
}

// speaksOfState looks at a query as it is written: the word is in it or not.
func speaksOfState(e pql.Expr) bool {
	return e != nil && strings.Contains((&pql.Query{Entity: "nodes", Where: e}).String(), "node_state = ")
}

func (o oracle) state(node string) string {
	for _, r := range o.rows["nodes"] {
		if r.node == node && (r.fields["deactivated"] != nil || r.fields["expired"] != nil) {
			return "inactive"
		}
	}
	return "active"
}

func (o oracle) holds(entity string, r oracleRow, e pql.Expr) truth {
	switch e := e.(type) {
	case pql.And:
		result := yes
		for _, t := range e.Terms {
			result = min(result, o.holds(entity, r, t))
		}
		return result
	case pql.Or:
		result := no
		for _, t := range e.Terms {
			result = max(result, o.holds(entity, r, t))
		}
		return result
	case pql.Not:
		return yes - o.holds(entity, r, e.Term)
	case pql.Compare:
		return o.compare(r, e)
	case pql.Null:
		return o.null(r, e)
	case pql.In:
		return o.in(r, e)
	case pql.Subquery:
		here, there := pql.Related(entity, e.Query.Entity)
		for _, other := range o.matching(e.Query, false) {
			same := true
			for i := range here {
				a, b := r.fields[here[i]], other.fields[there[i]]
				same = same && a != nil && sortable(a) == sortable(b)
			}
			if same {
				return yes
			}
		}
		for _, field := range here {
			if r.fields[field] == nil {
				return no
			}
		}
		return no
	}
	panic("no such condition")
}

func (o oracle) null(r oracleRow, e pql.Null) truth {
	v := r.value(e.Field)
	if j, ok := v.(jsonValue); ok {
		if len(e.Field.Path) > 0 || e.Field.Name == "value" {
			return of(j.there && (j.value == nil) == e.Is)
		}
		return of(!j.there == e.Is)
	}
	return of((v == nil) == e.Is)
}

func (o oracle) in(r oracleRow, e pql.In) truth {
	var rows [][]any
	if e.Query != nil {
		for _, found := range o.from(e.Query, false) {
			row := make([]any, len(e.Query.Columns))
			for i, c := range e.Query.Columns {
				row[i] = found[c.Name()]
			}
			rows = append(rows, row)
		}
		result := no
		for _, row := range rows {
			this := yes
			for i, f := range e.Fields {
				v := r.value(f)
				switch {
				case row[i] == nil:
					this = no
				case v == nil:
					this = min(this, unknown)
				default:
					this = min(this, of(sortable(v) == sortable(row[i])))
				}
			}
			result = max(result, this)
		}
		return result
	}
	result := no
	for _, v := range e.Values {
		items := []pql.Value{v}
		if len(e.Fields) > 1 {
			items = v.List
		}
		this := yes
		for i, f := range e.Fields {
			this = min(this, o.compare(r, pql.Compare{Op: "=", Field: f, Value: items[i]}))
		}
		result = max(result, this)
	}
	return result
}

func (o oracle) compare(r oracleRow, c pql.Compare) truth {
	if c.Field.Name == "node_state" {
		return of(c.Value.Text == "any" || o.state(r.node) == c.Value.Text)
	}
	if c.Field.Name == "type" && c.Value.Text == "any" && r.fields["puppet_version"] != nil {
		return yes // of a report
	}
	re, _ := pql.Regexp(c.Value.Text)
	if len(c.Field.Path) > 0 {
		root := r.fields[c.Field.Name].(jsonValue)
		for _, v := range follow(root.value, c.Field.Path) {
			if compareJSONValue(v, c) {
				return yes
			}
		}
		return no
	}
	number, _ := c.Value.Number()
	switch v := r.fields[c.Field.Name].(type) {
	case nil:
		return unknown
	case jsonValue:
		return of(v.there && compareJSONValue(v.value, c))
	case string:
		if c.Op == "~" {
			return of(re.MatchString(v))
		}
		return of(v == c.Value.Text)
	case bool:
		return of(v == (c.Value.Text == "true"))
	case float64:
		return of(ordered(c.Op, v-number))
	case time.Time:
		at, _ := pql.Time(c.Value.Text)
		return of(ordered(c.Op, float64(v.Sub(at))))
	case []string:
		return of(slices.ContainsFunc(v, func(s string) bool {
			if c.Op == "~" {
				return re.MatchString(s)
			}
			return s == c.Value.Text || c.Field.Name == "tag" && s == strings.ToLower(c.Value.Text)
		}))
	case []any:
		return of(comparePathValue(v, c, number))
	}
	panic(fmt.Sprintf("%v of %s", r.fields[c.Field.Name], c.Field))
}

func comparePathValue(path []any, c pql.Compare, number float64) bool {
	if c.Field.Name == "depth" {
		return ordered(c.Op, float64(len(path)-1)-number)
	}
	if len(path) != len(c.Value.List) {
		return false
	}
	for i, want := range c.Value.List {
		text := fmt.Sprint(path[i])
		_, isIndex := path[i].(int64)
		if want.Kind == pql.Integer || c.Op == "=" {
			if text != want.Text || isIndex != (want.Kind == pql.Integer) {
				return false
			}
			continue
		}
		if re, _ := pql.Regexp(want.Text); !re.MatchString(text) {
			return false
		}
	}
	return true
}

func ordered(op string, difference float64) bool {
	switch op {
	case "=":
		return difference == 0
	case ">":
		return difference > 0
	case "<":
		return difference < 0
	case ">=":
		return difference >= 0
	}
	return difference <= 0
}

func compareJSONValue(v any, c pql.Compare) bool {
	switch c.Op {
	case "~":
		re, _ := pql.Regexp(c.Value.Text)
		switch v.(type) {
		case string, bool, float64:
			return re.MatchString(fmt.Sprint(v))
		}
		return false
	case "=":
		if c.Value.Kind == pql.String {
			return v == any(c.Value.Text)
		}
		if c.Value.Kind == pql.Boolean {
			return v == any(c.Value.Text == "true")
		}
	}
	n, isNumber := v.(float64)
	want, ok := c.Value.Number()
	return isNumber && ok && ordered(c.Op, n-want)
}

// plainValue is a value as an answer has it.
func plainValue(v any) any {
	switch v := v.(type) {
	case jsonValue:
		return v.value
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return v
}

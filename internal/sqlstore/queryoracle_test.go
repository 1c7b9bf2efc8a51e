package sqlstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// oracle answers queries naively, row by row, from what the fleet was made of. It
// shares no code with the translation.
type oracle struct {
	rows map[string][]oracleRow
}

type oracleRow struct {
	node   string
	fields map[string]any // nil, string, bool, float64, time.Time, []string, []any (path), jsonValue
}

// jsonValue is a value that can be anything, and whether it is there at all.
type jsonValue struct {
	value any
	there bool
}

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

func (o oracle) answer(q *pql.Query) []map[string]any {
	return o.from(q, !speaksOfState(q.Where))
}

// from answers a query, or only from nodes that are there.
func (o oracle) from(q *pql.Query, active bool) []map[string]any {
	rows := o.matching(q, active)
	columns := q.Columns
	if len(columns) == 0 {
		columns = allColumns(q.Entity)
	}
	var out []answerRow
	if len(q.GroupBy) > 0 || slices.ContainsFunc(columns, pql.Column.Aggregates) {
		out = group(rows, columns, q.GroupBy)
	} else {
		for _, r := range rows {
			a := answerRow{shown: map[string]any{}, source: r}
			for _, c := range columns {
				a.shown[c.Name()] = single(r, c)
			}
			out = append(out, a)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return before(out[i], out[j], q.OrderBy) })
	return page(out, q)
}

type answerRow struct {
	shown  map[string]any
	source oracleRow
}

func page(rows []answerRow, q *pql.Query) []map[string]any {
	from, to := 0, len(rows)
	if q.Offset != nil {
		from = min(int(*q.Offset), len(rows))
	}
	if q.Limit != nil {
		to = min(from+int(*q.Limit), len(rows))
	}
	list := []map[string]any{}
	for _, r := range rows[from:to] {
		list = append(list, r.shown)
	}
	return list
}

func before(a, b answerRow, order []pql.Order) bool {
	for _, o := range order {
		name := o.Field.Name()
		x, y := a.shown[name], b.shown[name]
		if _, shown := a.shown[name]; !shown {
			x, y = single(a.source, o.Field), single(b.source, o.Field)
		}
		c := compareAny(x, y)
		if o.Descending {
			c = -c
		}
		if c != 0 {
			return c < 0
		}
	}
	return false
}

// compareAny orders as PostgreSQL does: nothing comes last, JSON by type first.
func compareAny(x, y any) int {
	rank := func(v any) int {
		if j, ok := v.(jsonValue); ok {
			if !j.there {
				return 9
			}
			switch j.value.(type) {
			case nil:
				return 0
			case string:
				return 1
			case float64:
				return 2
			case bool:
				return 3
			default:
				return 4
			}
		}
		if v == nil {
			return 9
		}
		return 1
	}
	if a, b := rank(x), rank(y); a != b {
		return a - b
	}
	return strings.Compare(sortable(x), sortable(y))
}

func sortable(v any) string {
	switch v := v.(type) {
	case jsonValue:
		return sortable(v.value)
	case float64:
		return fmt.Sprintf("%020.6f", v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []any:
		return inventory.PathText(v...)
	}
	return fmt.Sprint(v)
}

func group(rows []oracleRow, columns, by []pql.Column) []answerRow {
	buckets := map[string][]oracleRow{}
	for _, r := range rows {
		var key strings.Builder
		for _, c := range by {
			text, _ := json.Marshal(plainValue(single(r, c)))
			fmt.Fprintf(&key, "%s;", text)
		}
		buckets[key.String()] = append(buckets[key.String()], r)
	}
	if len(by) == 0 && len(rows) == 0 {
		buckets[""] = nil
	}
	var out []answerRow
	for _, key := range sortedKeys(buckets) {
		a := answerRow{shown: map[string]any{}}
		for _, c := range columns {
			if c.Aggregates() {
				a.shown[c.Name()] = aggregate(buckets[key], c)
			} else {
				a.shown[c.Name()] = single(buckets[key][0], c)
			}
		}
		out = append(out, a)
	}
	return out
}

func aggregate(rows []oracleRow, c pql.Column) any {
	var values []any
	for _, r := range rows {
		if c.Field.Name == "" {
			values = append(values, true)
			continue
		}
		v := single(r, pql.Column{Field: c.Field})
		if j, ok := v.(jsonValue); ok {
			if !j.there {
				continue
			}
			if v = j.value; c.Function != "count" {
				if _, isNumber := v.(float64); !isNumber {
					continue
				}
			}
		} else if v == nil {
			continue
		}
		values = append(values, v)
	}
	switch c.Function {
	case "count":
		return float64(len(values))
	case "min", "max":
		sort.Slice(values, func(i, j int) bool { return sortable(values[i]) < sortable(values[j]) })
		switch {
		case len(values) == 0:
			return nil
		case c.Function == "min":
			return values[0]
		}
		return values[len(values)-1]
	}
	if len(values) == 0 {
		return nil
	}
	total := 0.0
	for _, v := range values {
		total += v.(float64)
	}
	if c.Function == "avg" {
		return total / float64(len(values))
	}
	return total
}

func single(r oracleRow, c pql.Column) any {
	v := r.value(c.Field)
	switch c.Function {
	case "to_string":
		at, ok := v.(time.Time)
		if !ok {
			return nil
		}
		return at.Format(strings.NewReplacer("YYYY", "2006", "MM", "01", "DD", "02", "HH24", "15", "MI", "04").Replace(c.Mask))
	case "jsonb_typeof":
		j := v.(jsonValue)
		if !j.there {
			return nil
		}
		switch j.value.(type) {
		case nil:
			return "null"
		case string:
			return "string"
		case float64:
			return "number"
		case bool:
			return "boolean"
		case []any:
			return "array"
		}
		return "object"
	}
	return v
}

// value looks a field up, and what a path leads to.
func (r oracleRow) value(f pql.Field) any {
	v := r.fields[f.Name]
	if len(f.Path) == 0 {
		return v
	}
	found := follow(v.(jsonValue).value, f.Path)
	if len(found) == 0 {
		return jsonValue{}
	}
	return jsonValue{found[0], true}
}

// follow finds all that a path leads to: match() can lead to many.
func follow(v any, path []pql.Step) []any {
	if len(path) == 0 {
		return []any{v}
	}
	var out []any
	switch x := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(x) {
			re, _ := pql.Regexp(path[0].Text)
			if path[0].Kind == pql.Key && key == path[0].Text || path[0].Kind == pql.Match && re.MatchString(key) {
				out = append(out, follow(x[key], path[1:])...)
			}
		}
	case []any:
		if path[0].Kind == pql.Index && int(path[0].Index) < len(x) {
			out = append(out, follow(x[path[0].Index], path[1:])...)
		}
	}
	return out
}

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

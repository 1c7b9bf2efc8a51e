package sql

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/store/sql/query"
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

func (o oracle) answer(q *pql.Query) []map[string]any {
	return o.from(q, !speaksOfState(q.Where))
}

// from answers a query, or only from nodes that are there.
func (o oracle) from(q *pql.Query, active bool) []map[string]any {
	rows := o.matching(q, active)
	columns := q.Columns
	if len(columns) == 0 {
		columns = query.AllColumns(q.Entity)
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
		return facts.PathText(v...)
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
	for _, key := range slices.Sorted(maps.Keys(buckets)) {
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
		for _, key := range slices.Sorted(maps.Keys(x)) {
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

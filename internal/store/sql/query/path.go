package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/pql"
)

func (s scope) comparePath(f sqlField, c pql.Compare) string {
	if c.Field.Name == "depth" {
		want, _ := c.Value.Number()
		return s.pathIDs(f.raw, func(steps []any) bool {
			n := float64(len(steps) - 1) // a fact itself is at 0
			return map[string]bool{"=": n == want, ">": n > want, "<": n < want, ">=": n >= want, "<=": n <= want}[c.Op]
		})
	}
	if c.Op == "~>" {
		return s.pathIDs(f.raw, pathMatcher(c.Value.List))
	}
	return "(" + f.expr + " = " + s.arg(Clean(pathText(c.Value))) + ")"
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
	return facts.PathText(steps...)
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
	for _, p := range s.Paths {
		if keep(p.Steps) {
			ids = append(ids, fmt.Sprint(p.ID))
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
	return Clean(facts.PathText(steps...))
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

package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/pql"
)

// translation turns one checked query into one statement. Values only ever become
// arguments.
type translation struct {
	words  queryWords
	args   []any
	marks  map[argument]string
	uses   int
	paths  []factPath // every fact path there is; read when a query needs them
	gone   bool       // nodes that are deactivated or expired count too
	failed error
}

type factPath struct {
	id    int64
	steps []any
}

// argument is what placeholders are told apart by. Equal values share one, so that
// equal expressions have equal texts.
type argument struct {
	value any
	path  bool // read as a path into JSON
}

// arg is the placeholder of a value.
func (t *translation) arg(v any) string { return t.argument(argument{value: v}) }

func (t *translation) argument(a argument) string {
	if known, ok := t.marks[a]; ok {
		return known
	}
	if t.marks == nil {
		t.marks = map[argument]string{}
	}
	t.args = append(t.args, a.value)
	t.marks[a] = t.words.mark(len(t.args))
	return t.marks[a]
}

// scope is one use of an entity in a query.
type scope struct {
	source
	*translation
	entity string
}

func (t *translation) scope(entity string, known narrowed) scope {
	t.uses++
	number := fmt.Sprint(t.uses)
	s := t.words.source(entity, known)
	s.from, s.where, s.node = strings.ReplaceAll(s.from, "@", number), strings.ReplaceAll(s.where, "@", number), strings.ReplaceAll(s.node, "@", number)
	for name, f := range s.fields {
		f.expr, f.kind = strings.ReplaceAll(f.expr, "@", number), strings.ReplaceAll(f.kind, "@", number)
		f.number, f.raw = strings.ReplaceAll(f.number, "@", number), strings.ReplaceAll(f.raw, "@", number)
		s.fields[name] = f
	}
	return scope{source: s, translation: t, entity: entity}
}

// open makes the scope of a query and its FROM and WHERE.
func (t *translation) open(q *pql.Query) (scope, string) {
	kept, known := q.Where, narrowed{paths: slices.ContainsFunc(conjuncts(q.Where), namesPaths)}
	if q.Entity == "facts" {
		kept, known.hoisted = t.hoist(q.Where)
	}
	outermost := t.uses == 0
	s := t.scope(q.Entity, known)
	var where []string
	if s.where != "" {
		where = append(where, s.where)
	}
	if outermost && s.node != "" && !t.gone && !mentionsState(q.Where) {
		where = append(where, s.active())
	}
	if kept != nil {
		where = append(where, s.expr(kept))
	}
	text := " FROM " + s.from
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	return s, text
}

// active holds for rows of nodes that are neither deactivated nor expired.
func (s scope) active() string {
	n := "n" + s.number()
	return "(" + n + ".deactivated_at = 0 AND " + n + ".expired_at = 0)"
}

// number is the use that the scope's aliases carry.
func (s scope) number() string {
	i := strings.LastIndexAny(s.node[:strings.IndexByte(s.node, '.')], "abcdefghijklmnopqrstuvwxyz")
	return s.node[i+1 : strings.IndexByte(s.node, '.')]
}

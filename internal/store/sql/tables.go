package sql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/store/backup"
)

// described is how a dialect is asked for its tables; each statement gives the columns that
// its name says.
type described struct {
	tables   string // name; without the one of moves, which says something of the database itself, and the index of facts, which is made of others
	has      string // whether there is a table $1
	columns  string // name, type of the table ?
	parents  string // names of tables that the table ? refers to
	added    string // statements that drop and make an index or a trigger; without those of constraints
	numbered string // names of tables that number their rows, and the column
	sequence string // the last number of table $1, column $2
	setAt    string // sets the last number of table $1 to $2, column $3
	unsetAt  string // goes before it; may be empty
}

// schemaTable is one table of the schema.
type schemaTable struct {
	backup.Table
	kinds   []columnKind
	parents []string
}

// kindOf knows the types of both databases.
func kindOf(word string) (columnKind, error) {
	switch strings.ToLower(word) {
	case "integer", "bigint":
		return ints, nil
	case "text":
		return texts, nil
	case "blob", "bytea":
		return blobs, nil
	case "real", "double precision":
		return floats, nil
	}
	return 0, fmt.Errorf("a column has the type %q, which the other database does not have", word)
}

// readTables lists every table but those of the migrations' tool and of moves; one that refers to another
// comes behind it.
func readTables(ctx context.Context, q querier, d dialect) ([]schemaTable, error) {
	names, err := collect(ctx, q, one[string], d.described.tables)
	if err != nil {
		return nil, err
	}
	tables := map[string]schemaTable{}
	for _, name := range names {
		t, err := readTable(ctx, q, d, name)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		tables[name] = t
	}
	return inOrder(names, tables)
}

func readTable(ctx context.Context, q querier, d dialect, name string) (t schemaTable, err error) {
	t.Name = name
	type column struct{ name, kind string }
	columns, err := collect(ctx, q, func(row scanner) (c column, err error) { return c, row.Scan(&c.name, &c.kind) }, d.described.columns, name)
	if err != nil {
		return t, err
	}
	for _, c := range columns {
		kind, err := kindOf(c.kind)
		if err != nil {
			return t, fmt.Errorf("column %s: %w", c.name, err)
		}
		t.Columns, t.kinds = append(t.Columns, c.name), append(t.kinds, kind)
	}
	t.parents, err = collect(ctx, q, one[string], d.described.parents, name)
	return t, err
}

// inOrder puts parents before their children, and keeps the order of names otherwise.
func inOrder(names []string, tables map[string]schemaTable) ([]schemaTable, error) {
	var out []schemaTable
	done := map[string]bool{}
	for len(out) < len(names) {
		before := len(out)
		for _, name := range names {
			t := tables[name]
			ready := !slices.ContainsFunc(t.parents, func(p string) bool { return p != name && !done[p] })
			if !done[name] && ready {
				out, done[name] = append(out, t), true
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("tables refer to each other in a circle: %v", names)
		}
	}
	return out, nil
}

// identifier is a name of the schema in a statement.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func identifiers(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = identifier(name)
	}
	return strings.Join(quoted, ", ")
}

func names(tables []schemaTable) []string {
	list := make([]string, len(tables))
	for i, t := range tables {
		list[i] = t.Name
	}
	return list
}

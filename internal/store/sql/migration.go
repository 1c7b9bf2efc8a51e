package sql

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Kind is what a migration means for servers of the version before it that still run on the same records.
type Kind string

// The kinds. A change of the records that would be a contract is made in three versions: the first expands, the second writes
// both and migrates, the third contracts, when nobody runs the first any more.
const (
	Expand   Kind = "expand"   // adds what older programs do not look at, or what has a default for their rows
	Migrate  Kind = "migrate"  // changes rows, and older programs understand what it makes of them
	Contract Kind = "contract" // takes away or changes what older programs use: they must be stopped before
)

// Migration is one step from a schema to the next.
type Migration struct {
	Number int64
	Name   string
	Kind   Kind
	Why    string // older servers may go on, or may not: a sentence

	text string
}

// firstLine is how each migration begins: its kind, and why it is that.
var firstLine = regexp.MustCompile(`^-- (expand|migrate|contract): ([^\n]+)\n`)

// readMigrations reads the numbered files, in order.
func readMigrations() ([]Migration, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	list := make([]Migration, 0, len(files))
	for _, file := range files {
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		m := Migration{Name: strings.ReplaceAll(name, "_", " "), text: string(text)}
		if m.Number, err = strconv.ParseInt(number, 10, 64); err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", file, err)
		}
		said := firstLine.FindStringSubmatch(m.text)
		if said == nil {
			return nil, fmt.Errorf("migration %s does not begin with its kind: expand, migrate or contract, and why", file)
		}
		m.Kind, m.Why = Kind(said[1]), said[2]
		list = append(list, m)
	}
	return list, nil
}

// following picks those that a schema has not got.
func following(schema int64, list []Migration) (pending []Migration) {
	for _, m := range list {
		if m.Number > schema {
			pending = append(pending, m)
		}
	}
	return pending
}

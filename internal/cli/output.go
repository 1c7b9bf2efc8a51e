package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) checkOutput() error {
	switch a.output {
	case "table", "json", "jsonl", "csv", "name":
		return nil
	}
	return usageError{fault.New(fault.Invalid, "--output %q is none of table, json, jsonl, csv, name", a.output)}
}

// table describes how a list of T is shown.
type table[T any] struct {
	columns []string
	row     func(T) []string
	name    func(T) string // for -o name
	empty   string         // said, as a hint, when there is nothing
	bare    bool           // as JSON it is an array, not an object with items
}

// printList prints items as the --output flag says.
func printList[T any](a *app, items []T, t table[T]) error {
	l := newListing(a, t)
	for _, item := range items {
		if err := l.add(item); err != nil {
			return err
		}
	}
	return l.end()
}

// listing prints a list while it comes. Only the table holds rows back, the first
// ones, to see how wide its columns must be.
type listing[T any] struct {
	table[T]
	app   *app // not embedded: its hundreds of methods would be made for each T
	count int
	held  [][]string
	grid  *grid
	csv   *csv.Writer
}

// heldRows is how many rows decide about the width of columns.
const heldRows = 1000

func newListing[T any](a *app, t table[T]) *listing[T] {
	return &listing[T]{table: t, app: a, csv: csv.NewWriter(a.system.Out)}
}

func (l *listing[T]) add(item T) error {
	l.count++
	switch l.app.output {
	case "json":
		return l.addJSON(item)
	case "jsonl":
		return encodeJSON(l.app.system.Out, item)
	case "csv":
		return l.addCSV(item)
	case "name":
		_, err := fmt.Fprintln(l.app.system.Out, l.name(item))
		return err
	}
	if l.grid != nil {
		return l.grid.print(l.row(item))
	}
	if l.held = append(l.held, l.row(item)); len(l.held) < heldRows {
		return nil
	}
	return l.release()
}

// release prints what was held back.
func (l *listing[T]) release() error {
	var rows [][]string
	rows, l.held = l.held, nil
	l.grid = newGrid(l.app, l.columns, rows)
	return l.grid.printAll(l.columns, rows)
}

// end prints what a list ends with.
func (l *listing[T]) end() error {
	switch l.app.output {
	case "json":
		return l.endJSON()
	case "jsonl", "name":
		return nil
	case "csv":
		if l.count == 0 {
			_ = l.csv.Write(l.columns)
		}
		l.csv.Flush()
		return l.csv.Error()
	}
	if l.count == 0 {
		l.app.hint("%s", l.empty)
		return nil
	}
	if l.grid != nil {
		return nil
	}
	return l.release()
}

func (l *listing[T]) addCSV(item T) error {
	if l.count == 1 {
		_ = l.csv.Write(l.columns)
	}
	return l.csv.Write(l.row(item))
}

// addJSON writes one element as it stands in an indented document.
func (l *listing[T]) addJSON(item T) error {
	text, err := marshal(item)
	if err != nil {
		return err
	}
	head, prefix := ",", "    "
	if l.bare {
		prefix = "  "
	}
	if l.count == 1 {
		head = l.headJSON()
	}
	var b bytes.Buffer
	b.WriteString(head + "\n" + prefix)
	if err := json.Indent(&b, text, prefix, "  "); err != nil {
		return err
	}
	_, err = b.WriteTo(l.app.system.Out)
	return err
}

func (l *listing[T]) headJSON() string {
	if l.bare {
		return "["
	}
	return "{\n  \"items\": ["
}

func (l *listing[T]) endJSON() error {
	end := "\n  ]\n}\n"
	switch {
	case l.count == 0 && l.bare:
		end = "[]\n"
	case l.count == 0:
		end = l.headJSON() + "]\n}\n"
	case l.bare:
		end = "\n]\n"
	}
	_, err := io.WriteString(l.app.system.Out, end)
	return err
}

// printRows prints aligned columns under upper-case headings.
func (a *app) printRows(columns []string, rows [][]string) error {
	return newGrid(a, columns, rows).printAll(columns, rows)
}

func (a *app) printJSON(value any) error {
	text, err := marshal(value)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = b.WriteTo(a.system.Out)
	return err
}

func encodeJSON(to io.Writer, value any) error {
	text, err := marshal(value)
	if err == nil {
		_, err = to.Write(append(text, '\n'))
	}
	return err
}

// marshal writes value on one line, and < > & as they are.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// asJSON says whether a single thing is printed for programs.
func (a *app) asJSON() bool { return a.output == "json" || a.output == "jsonl" }

// ago is a time for people: how long it is past.
func ago(t time.Time, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	switch {
	case d < 0:
		return t.UTC().Format(time.RFC3339)
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

// agoOf is ago for times that may be missing.
func agoOf(t *time.Time, now time.Time) string {
	if t == nil {
		return "never"
	}
	return ago(*t, now)
}

// bytesText is a size for people.
func bytesText(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	value, unit := float64(n), 0
	for value >= 1000 && unit < len(units)-1 {
		value /= 1000
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

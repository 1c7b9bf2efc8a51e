// Package print prints results of commands: for people as a table, for programs as json, jsonl, csv, or just
// names. Every command that shows something prints it by this package, so that the formats mean the same everywhere.
package print

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Formats are the ways to print a list; a single thing has the first three.
func Formats() []string { return []string{"table", "json", "jsonl", "csv", "name"} }

// Printer prints results in one of the Formats.
type Printer struct {
	Out    io.Writer
	Format string
	Width  int                              // of the terminal that Out is; 0: it is none
	Hint   func(format string, args ...any) // says advice that is no result
}

// Table describes how a list of T is shown.
type Table[T any] struct {
	Columns []string
	Row     func(T) []string
	Name    func(T) string // for -o name
	Empty   string         // said, as a hint, when there is nothing
	Bare    bool           // as JSON it is an array, not an object with items
}

// List prints items as the --output flag says.
func List[T any](to Printer, items []T, t Table[T]) error {
	l := NewListing(to, t)
	for _, item := range items {
		if err := l.Add(item); err != nil {
			return err
		}
	}
	return l.End()
}

// Listing prints a list while it comes. Only the table holds rows back, the first
// ones, to see how wide its columns must be.
type Listing[T any] struct {
	Table[T]
	to    Printer
	Count int // of what was printed
	held  [][]string
	grid  *grid
	csv   *csv.Writer
}

// heldRows is how many rows decide about the width of columns.
const heldRows = 1000

// NewListing begins a list.
func NewListing[T any](to Printer, t Table[T]) *Listing[T] {
	return &Listing[T]{Table: t, to: to, csv: csv.NewWriter(to.Out)}
}

// Add prints one more item, or holds it back.
func (l *Listing[T]) Add(item T) error {
	l.Count++
	switch l.to.Format {
	case "json":
		return l.addJSON(item)
	case "jsonl":
		return Line(l.to.Out, item)
	case "csv":
		return l.addCSV(item)
	case "name":
		_, err := fmt.Fprintln(l.to.Out, l.Name(item))
		return err
	}
	if l.grid != nil {
		return l.grid.print(l.Row(item))
	}
	if l.held = append(l.held, l.Row(item)); len(l.held) < heldRows {
		return nil
	}
	return l.release()
}

// release prints what was held back.
func (l *Listing[T]) release() error {
	var rows [][]string
	rows, l.held = l.held, nil
	l.grid = newGrid(l.to, l.Columns, rows)
	return l.grid.printAll(l.Columns, rows)
}

// End prints what a list ends with.
func (l *Listing[T]) End() error {
	switch l.to.Format {
	case "json":
		return l.endJSON()
	case "jsonl", "name":
		return nil
	case "csv":
		if l.Count == 0 {
			_ = l.csv.Write(l.Columns)
		}
		l.csv.Flush()
		return l.csv.Error()
	}
	if l.Count == 0 {
		l.to.Hint("%s", l.Empty)
		return nil
	}
	if l.grid != nil {
		return nil
	}
	return l.release()
}

func (l *Listing[T]) addCSV(item T) error {
	if l.Count == 1 {
		_ = l.csv.Write(l.Columns)
	}
	return l.csv.Write(l.Row(item))
}

// addJSON writes one element as it stands in an indented document.
func (l *Listing[T]) addJSON(item T) error {
	text, err := Marshal(item)
	if err != nil {
		return err
	}
	head, prefix := ",", "    "
	if l.Bare {
		prefix = "  "
	}
	if l.Count == 1 {
		head = l.headJSON()
	}
	var b bytes.Buffer
	b.WriteString(head + "\n" + prefix)
	if err := json.Indent(&b, text, prefix, "  "); err != nil {
		return err
	}
	_, err = b.WriteTo(l.to.Out)
	return err
}

func (l *Listing[T]) headJSON() string {
	if l.Bare {
		return "["
	}
	return "{\n  \"items\": ["
}

func (l *Listing[T]) endJSON() error {
	end := "\n  ]\n}\n"
	switch {
	case l.Count == 0 && l.Bare:
		end = "[]\n"
	case l.Count == 0:
		end = l.headJSON() + "]\n}\n"
	case l.Bare:
		end = "\n]\n"
	}
	_, err := io.WriteString(l.to.Out, end)
	return err
}

// Rows prints aligned columns under upper-case headings.
func (p Printer) Rows(columns []string, rows [][]string) error {
	return newGrid(p, columns, rows).printAll(columns, rows)
}

// JSON prints one thing.
func (p Printer) JSON(value any) error {
	text, err := Marshal(value)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = b.WriteTo(p.Out)
	return err
}

// Line writes value on a line of its own.
func Line(to io.Writer, value any) error {
	text, err := Marshal(value)
	if err == nil {
		_, err = to.Write(append(text, '\n'))
	}
	return err
}

// Marshal writes value on one line, and < > & as they are.
func Marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// AsJSON says whether a single thing is printed for programs.
func (p Printer) AsJSON() bool { return p.Format == "json" || p.Format == "jsonl" }

// Ago is a time for people: how long it is past.
func Ago(t time.Time, now time.Time) string {
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

// AgoOf is Ago for times that may be missing.
func AgoOf(t *time.Time, now time.Time) string {
	if t == nil {
		return "never"
	}
	return Ago(*t, now)
}

// Bytes is a size for people.
func Bytes(n int64) string {
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

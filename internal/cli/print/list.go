package print

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/yamljson"
)

// Table describes how a list of T is shown.
type Table[T any] struct {
	Columns []string       // the first names the thing
	Row     func(T) []any  // a cell for each column, as cell.go says
	Spare   []string       // columns that a narrow terminal leaves out, the first of them first
	Wide    []string       // columns that only -o wide, CSV and --columns show
	Name    func(T) string // for -o name
	Empty   string         // said, as a hint, when there is nothing
	Bare    bool           // as JSON and YAML it is an array, not an object with items
}

// List prints items as the --output flag says.
func List[T any](to Printer, items []T, t Table[T]) error {
	l, err := NewListing(to, t)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := l.Add(item); err != nil {
			return err
		}
	}
	return l.End()
}

// Listing prints a list while it comes. Only the table holds rows back, the first ones, to see how wide its columns must
// be; and a list that is sorted is held until it is whole.
type Listing[T any] struct {
	Table[T]
	to      Printer
	Count   int   // of what was added
	shown   []int // which columns
	sort    int   // by which column; -1: as they come
	down    bool  // the largest first
	now     time.Time
	held    [][]any
	sorted  []sortable[T]
	grid    *grid
	csv     *csv.Writer
	written int
}

// sortable is an item, and what it is sorted by.
type sortable[T any] struct {
	item T
	key  any
}

// heldRows is how many rows decide about the width of columns.
const heldRows = 1000

// NewListing begins a list. It fails when the printer asks for columns that the table does not have.
func NewListing[T any](to Printer, t Table[T]) (*Listing[T], error) {
	l := &Listing[T]{Table: t, to: to, sort: -1, csv: csv.NewWriter(to.Out), now: time.Now()}
	for i, column := range t.Columns {
		if !slices.Contains(t.Wide, column) || to.Format == "wide" || to.Format == "csv" {
			l.shown = append(l.shown, i)
		}
	}
	if len(to.Columns) > 0 {
		l.shown = nil
	}
	for _, name := range to.Columns {
		i, err := l.column(name)
		if err != nil {
			return nil, err
		}
		l.shown = append(l.shown, i)
	}
	if to.Sort != "" {
		name, down := strings.CutPrefix(to.Sort, "-")
		i, err := l.column(name)
		if err != nil {
			return nil, err
		}
		l.sort, l.down = i, down
	}
	return l, nil
}

// column finds a column by its name; spaces may be written as _ or -.
func (l *Listing[T]) column(name string) (int, error) {
	keys := make([]string, len(l.Columns))
	for i, column := range l.Columns {
		keys[i] = Key(column)
	}
	if i := slices.Index(keys, Key(name)); i >= 0 {
		return i, nil
	}
	hint := fault.DidYouMean(Key(name), keys)
	if hint == "" {
		hint = "the columns are " + strings.Join(keys, ", ")
	}
	return 0, &Unusable{fault.New(fault.Invalid, "there is no column %.80q; %s", name, hint)}
}

// Key is the name of a column for programs.
func Key(column string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(column)))
}

// Unusable is a wish of the command line that what is printed cannot fulfil.
type Unusable struct{ error }

func (e *Unusable) Unwrap() error { return e.error }

// Add prints one more item, or holds it back.
func (l *Listing[T]) Add(item T) error {
	l.Count++
	if l.sort >= 0 {
		l.sorted = append(l.sorted, sortable[T]{item, l.Row(item)[l.sort]})
		return nil
	}
	return l.write(item)
}

func (l *Listing[T]) write(item T) error {
	l.written++
	switch l.to.Format {
	case "json":
		return l.addJSON(item)
	case "yaml":
		return l.addYAML(item)
	case "jsonl":
		return Line(l.to.Out, item)
	case "csv":
		return l.addCSV(item)
	case "name":
		_, err := fmt.Fprintln(l.to.Out, l.Name(item))
		return err
	}
	row := l.Row(item)
	if l.grid != nil {
		return l.printRow(row)
	}
	if l.held = append(l.held, row); len(l.held) < heldRows {
		return nil
	}
	return l.release()
}

// release prints what was held back.
func (l *Listing[T]) release() error {
	names, spare := make([]string, len(l.shown)), make([]int, 0, len(l.Spare))
	for i, column := range l.shown {
		names[i] = l.Columns[column]
	}
	if len(l.to.Columns) == 0 {
		for _, name := range l.Spare {
			if i := slices.Index(names, name); i > 0 {
				spare = append(spare, i)
			}
		}
	}
	texts := make([][]string, len(l.held))
	for i, row := range l.held {
		texts[i] = l.texts(row)
	}
	to := l.to
	if to.Format == "wide" {
		to.Width = 0
	}
	l.grid = newGrid(to, headingsOf(names), texts, spare)
	if err := l.grid.print(headingsOf(names), nil); err != nil {
		return err
	}
	for _, row := range l.held {
		if err := l.printRow(row); err != nil {
			return err
		}
	}
	l.held = nil
	return nil
}

// texts are the cells that are shown, for people.
func (l *Listing[T]) texts(row []any) []string {
	texts := make([]string, len(l.shown))
	for i, column := range l.shown {
		texts[i] = forPeople(row[column], l.now, l.to.Format == "wide")
	}
	return texts
}

func (l *Listing[T]) printRow(row []any) error {
	var colours []string
	if l.to.Colours {
		colours = make([]string, len(l.shown))
		for i, column := range l.shown {
			if state, ok := row[column].(State); ok {
				colours[i] = colourOf(string(state))
			}
		}
	}
	return l.grid.print(l.texts(row), colours)
}

// End prints what a list ends with.
func (l *Listing[T]) End() error {
	slices.SortStableFunc(l.sorted, func(a, b sortable[T]) int {
		if l.down {
			a, b = b, a
		}
		return compareCells(a.key, b.key)
	})
	for _, s := range l.sorted {
		if err := l.write(s.item); err != nil {
			return err
		}
	}
	switch l.to.Format {
	case "json":
		return l.endJSON()
	case "yaml":
		return l.endYAML()
	case "jsonl", "name":
		return nil
	case "csv":
		if l.written == 0 {
			_ = l.csv.Write(l.keys())
		}
		l.csv.Flush()
		return l.csv.Error()
	}
	if l.written == 0 {
		l.to.Hint("%s", l.Empty)
		return nil
	}
	if l.grid == nil {
		if err := l.release(); err != nil {
			return err
		}
	}
	if left := l.left(); len(left) > 0 {
		l.to.Hint("Not shown for want of room: %s (-o wide shows all)", strings.Join(left, ", "))
	}
	return nil
}

// left says which columns were left out.
func (l *Listing[T]) left() []string {
	names := make([]string, len(l.shown))
	for i, column := range l.shown {
		names[i] = l.Columns[column]
	}
	return l.grid.left(names)
}

func (l *Listing[T]) keys() []string {
	keys := make([]string, len(l.shown))
	for i, column := range l.shown {
		keys[i] = Key(l.Columns[column])
	}
	return keys
}

func (l *Listing[T]) addCSV(item T) error {
	if l.written == 1 {
		_ = l.csv.Write(l.keys())
	}
	row, cells := l.Row(item), make([]string, len(l.shown))
	for i, column := range l.shown {
		cells[i] = forPrograms(row[column])
	}
	return l.csv.Write(cells)
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
	if l.written == 1 {
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
	case l.written == 0 && l.Bare:
		end = "[]\n"
	case l.written == 0:
		end = l.headJSON() + "]\n}\n"
	case l.Bare:
		end = "\n]\n"
	}
	_, err := io.WriteString(l.to.Out, end)
	return err
}

// addYAML writes one element of a sequence.
func (l *Listing[T]) addYAML(item T) error {
	text, err := Marshal([]T{item})
	if err == nil {
		text, err = yamljson.FromJSON(text)
	}
	if err != nil {
		return err
	}
	head := ""
	if l.written == 1 && !l.Bare {
		head = "items:\n"
	}
	_, err = io.WriteString(l.to.Out, head+string(text))
	return err
}

func (l *Listing[T]) endYAML() error {
	if l.written > 0 {
		return nil
	}
	end := "items: []\n"
	if l.Bare {
		end = "[]\n"
	}
	_, err := io.WriteString(l.to.Out, end)
	return err
}

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
type Listing[T any] struct{ all *listing }

// NewListing begins a list. It fails when the printer asks for columns that the table does not have.
func NewListing[T any](to Printer, t Table[T]) (*Listing[T], error) {
	l, err := newListing(to, table{
		columns: t.Columns, spare: t.Spare, wide: t.Wide, empty: t.Empty, bare: t.Bare,
		row:  func(item any) []any { return t.Row(item.(T)) },   //nolint:forcetypeassert // Add takes nothing else
		name: func(item any) string { return t.Name(item.(T)) }, //nolint:forcetypeassert // Add takes nothing else
	})
	if err != nil {
		return nil, err
	}
	return &Listing[T]{l}, nil
}

// Add prints one more item, or holds it back.
func (l *Listing[T]) Add(item T) error { return l.all.add(item) }

// Count is how many items were added.
func (l *Listing[T]) Count() int { return l.all.count }

// End prints what a list ends with.
func (l *Listing[T]) End() error { return l.all.end() }

// table is a Table of items of any type: what prints them is compiled once, not for each of a hundred types.
type table struct {
	columns, spare, wide []string
	empty                string
	bare                 bool
	row                  func(item any) []any
	name                 func(item any) string
}

// listing is what a Listing is, whatever its items are.
type listing struct {
	table
	to      Printer
	count   int   // of what was added
	shown   []int // which columns
	sort    int   // by which column; -1: as they come
	down    bool  // the largest first
	now     time.Time
	held    [][]any
	sorted  []sortable
	grid    *grid
	csv     *csv.Writer
	written int
}

// sortable is an item, and what it is sorted by.
type sortable struct{ item, key any }

// heldRows is how many rows decide about the width of columns.
const heldRows = 1000

func newListing(to Printer, t table) (*listing, error) {
	l := &listing{table: t, to: to, sort: -1, csv: csv.NewWriter(to.Out), now: time.Now()}
	for i, column := range t.columns {
		if !slices.Contains(t.wide, column) || to.Format == "wide" || to.Format == "csv" {
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
func (l *listing) column(name string) (int, error) {
	keys := make([]string, len(l.columns))
	for i, column := range l.columns {
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

func (l *listing) add(item any) error {
	l.count++
	if l.sort >= 0 {
		l.sorted = append(l.sorted, sortable{item, l.row(item)[l.sort]})
		return nil
	}
	return l.write(item)
}

func (l *listing) write(item any) error {
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
		_, err := fmt.Fprintln(l.to.Out, l.name(item))
		return err
	}
	row := l.row(item)
	if l.grid != nil {
		return l.printRow(row)
	}
	if l.held = append(l.held, row); len(l.held) < heldRows {
		return nil
	}
	return l.release()
}

// release prints what was held back.
func (l *listing) release() error {
	names, spare := make([]string, len(l.shown)), make([]int, 0, len(l.spare))
	for i, column := range l.shown {
		names[i] = l.columns[column]
	}
	if len(l.to.Columns) == 0 {
		for _, name := range l.spare {
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
func (l *listing) texts(row []any) []string {
	texts := make([]string, len(l.shown))
	for i, column := range l.shown {
		texts[i] = forPeople(row[column], l.now, l.to.Format == "wide")
	}
	return texts
}

func (l *listing) printRow(row []any) error {
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

func (l *listing) end() error {
	slices.SortStableFunc(l.sorted, func(a, b sortable) int {
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
		l.to.Hint("%s", l.empty)
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
func (l *listing) left() []string {
	names := make([]string, len(l.shown))
	for i, column := range l.shown {
		names[i] = l.columns[column]
	}
	return l.grid.left(names)
}

func (l *listing) keys() []string {
	keys := make([]string, len(l.shown))
	for i, column := range l.shown {
		keys[i] = Key(l.columns[column])
	}
	return keys
}

func (l *listing) addCSV(item any) error {
	if l.written == 1 {
		_ = l.csv.Write(l.keys())
	}
	row, cells := l.row(item), make([]string, len(l.shown))
	for i, column := range l.shown {
		cells[i] = forPrograms(row[column])
	}
	return l.csv.Write(cells)
}

// addJSON writes one element as it stands in an indented document.
func (l *listing) addJSON(item any) error {
	text, err := Marshal(item)
	if err != nil {
		return err
	}
	head, prefix := ",", "    "
	if l.bare {
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

func (l *listing) headJSON() string {
	if l.bare {
		return "["
	}
	return "{\n  \"items\": ["
}

func (l *listing) endJSON() error {
	end := "\n  ]\n}\n"
	switch {
	case l.written == 0 && l.bare:
		end = "[]\n"
	case l.written == 0:
		end = l.headJSON() + "]\n}\n"
	case l.bare:
		end = "\n]\n"
	}
	_, err := io.WriteString(l.to.Out, end)
	return err
}

// addYAML writes one element of a sequence.
func (l *listing) addYAML(item any) error {
	text, err := Marshal([]any{item})
	if err == nil {
		text, err = yamljson.FromJSON(text)
	}
	if err != nil {
		return err
	}
	head := ""
	if l.written == 1 && !l.bare {
		head = "items:\n"
	}
	_, err = io.WriteString(l.to.Out, head+string(text))
	return err
}

func (l *listing) endYAML() error {
	if l.written > 0 {
		return nil
	}
	end := "items: []\n"
	if l.bare {
		end = "[]\n"
	}
	_, err := io.WriteString(l.to.Out, end)
	return err
}

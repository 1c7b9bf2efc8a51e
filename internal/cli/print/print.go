// Package print prints results of commands: for people as a table, for programs as json, jsonl, yaml, csv, or just
// names. Every command that shows something prints it by this package, so that the formats mean the same everywhere.
package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/yamljson"
)

// Printer prints results in one of the formats.
type Printer struct {
	Out     io.Writer
	Format  string                           // table, wide, json, jsonl, yaml, csv or name
	Width   int                              // of the terminal that Out is; 0: it is none
	Colours bool                             // Out shows them
	Columns []string                         // of a list: only these, in this order
	Sort    string                           // of a list: by this column; with - before it, the largest first
	Hint    func(format string, args ...any) // says advice that is no result
}

// Rows prints aligned columns under upper-case headings.
func (p Printer) Rows(columns []string, rows [][]string) error {
	if len(columns) == 0 {
		return p.pairs(rows)
	}
	headings := headingsOf(columns)
	g := newGrid(p, headings, rows, nil)
	if err := g.print(headings, nil); err != nil {
		return err
	}
	for _, row := range rows {
		if err := g.print(row, nil); err != nil {
			return err
		}
	}
	return nil
}

// pairs prints names and values, each whole: on a terminal a long value goes on in the lines below, behind its name. What has no value is
// not there: it is left out.
func (p Printer) pairs(rows [][]string) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row []string) bool { return row[1] == "" })
	indent := 0
	for _, row := range rows {
		indent = max(indent, utf8.RuneCountInString(OneLine(row[0]))+gap)
	}
	for _, row := range rows {
		var value strings.Builder
		fill(&value, strings.Fields(OneLine(row[1])), indent, strings.Repeat(" ", indent), p.Width)
		text := strings.TrimSuffix(value.String(), "\n")
		if p.Width <= 0 {
			text = OneLine(row[1])
		}
		if err := p.Text(fmt.Sprintf("%-*s%s\n", indent, OneLine(row[0]), text)); err != nil {
			return err
		}
	}
	return nil
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

// ForPrograms says whether a single thing is printed for programs, as Thing does.
func (p Printer) ForPrograms() bool {
	return p.Format == "json" || p.Format == "jsonl" || p.Format == "yaml"
}

// Thing prints one thing for programs: as indented JSON, as JSON on one line, or as YAML.
func (p Printer) Thing(value any) error {
	switch p.Format {
	case "jsonl":
		return Line(p.Out, value)
	case "yaml":
		text, err := Marshal(value)
		if err == nil {
			text, err = yamljson.FromJSON(text)
		}
		if err != nil {
			return err
		}
		_, err = p.Out.Write(text)
		return err
	}
	return p.JSON(value)
}

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

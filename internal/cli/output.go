package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
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
}

// printList prints items as the --output flag says.
func printList[T any](a *app, items []T, t table[T]) error {
	switch a.output {
	case "json":
		return a.printJSON(map[string]any{"items": nonNil(items)})
	case "jsonl":
		encoder := json.NewEncoder(a.system.Out)
		for _, item := range items {
			if err := encoder.Encode(item); err != nil {
				return err
			}
		}
		return nil
	case "csv":
		return printCSV(a, items, t)
	case "name":
		for _, item := range items {
			if _, err := fmt.Fprintln(a.system.Out, t.name(item)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items) == 0 {
		a.hint("%s", t.empty)
		return nil
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		rows[i] = t.row(item)
	}
	return a.printRows(t.columns, rows)
}

func nonNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func printCSV[T any](a *app, items []T, t table[T]) error {
	writer := csv.NewWriter(a.system.Out)
	_ = writer.Write(t.columns)
	for _, item := range items {
		_ = writer.Write(t.row(item))
	}
	writer.Flush()
	return writer.Error()
}

// printRows prints aligned columns under upper-case headings.
func (a *app) printRows(columns []string, rows [][]string) error {
	writer := tabwriter.NewWriter(a.system.Out, 0, 0, 2, ' ', 0)
	if len(columns) > 0 {
		_, _ = fmt.Fprintln(writer, strings.ToUpper(strings.Join(columns, "\t")))
	}
	for _, row := range rows {
		for i := range row {
			row[i] = oneLine(row[i])
		}
		_, _ = fmt.Fprintln(writer, strings.Join(row, "\t"))
	}
	return writer.Flush()
}

// oneLine keeps text from breaking the table, and control characters from
// reaching the terminal: much of it comes from nodes.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, text)
	if text == "" {
		return "-"
	}
	return text
}

func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(a.system.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
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

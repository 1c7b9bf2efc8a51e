package measure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is one benchmark's outcome as it is printed and written to a file.
type Report struct {
	Name     string    `json:"name"`
	Time     time.Time `json:"time"`
	Machine  Machine   `json:"machine"`
	Settings any       `json:"settings"`
	Rows     []Row     `json:"rows"`
	Ratios   []Ratio   `json:"ratios"`
	Notes    []string  `json:"notes,omitempty"`
}

// Row is what one server did in one case.
type Row struct {
	Server  string             `json:"server"`
	Case    string             `json:"case"`
	Figures map[string]float64 `json:"figures"` // the name says the unit
}

// Ratio compares Tutti with a peer in one figure of one case.
type Ratio struct {
	Case   string  `json:"case"`
	Figure string  `json:"figure"`
	Peer   string  `json:"peer"`
	Tutti  float64 `json:"tutti"`
	Other  float64 `json:"other"`
	Ratio  float64 `json:"ratio"` // tutti / other
	Aim    string  `json:"aim,omitempty"`
	Met    *bool   `json:"met,omitempty"`
}

// Aim is a bound for one figure's ratio: at least Min or at most Max times the
// peer's. Zero means no bound on that side.
type Aim struct {
	Case, Figure, Peer string
	PeerCase           string // the peer's case to compare with; empty: the same
	Min, Max           float64
}

// Compare sets Tutti's rows beside the peers'. A figure that either side lacks
// is left out, so a run without one of the servers gives fewer ratios.
func Compare(rows []Row, tutti string, aims []Aim) []Ratio {
	var ratios []Ratio
	for _, aim := range aims {
		ours, ok1 := figure(rows, tutti, aim.Case, aim.Figure)
		theirs, ok2 := figure(rows, aim.Peer, cmp.Or(aim.PeerCase, aim.Case), aim.Figure)
		if !ok1 || !ok2 || theirs == 0 {
			continue
		}
		ratio := Ratio{Case: aim.Case, Figure: aim.Figure, Peer: aim.Peer, Tutti: ours, Other: theirs, Ratio: ours / theirs}
		if text, met, bound := aim.judge(ratio.Ratio); bound {
			ratio.Aim, ratio.Met = text, &met
		}
		ratios = append(ratios, ratio)
	}
	return ratios
}

func (a Aim) judge(ratio float64) (text string, met, bound bool) {
	switch {
	case a.Min > 0:
		return fmt.Sprintf(">= %g", a.Min), ratio >= a.Min, true
	case a.Max > 0:
		return fmt.Sprintf("<= %g", a.Max), ratio <= a.Max, true
	default:
		return "", false, false
	}
}

func figure(rows []Row, server, name, key string) (float64, bool) {
	for _, row := range rows {
		if row.Server == server && row.Case == name {
			v, ok := row.Figures[key]
			return v, ok
		}
	}
	return 0, false
}

// Run has rows measured, judged, printed and written below out: the report r, of which there is no more than its name and settings.
// judge says what they were to be; nil: nothing.
func Run(r Report, columns []string, out string, rows func() ([]Row, error), judge func([]Row) []string) (err error) {
	r.Time, r.Machine = time.Now().UTC(), ThisMachine()
	if r.Rows, err = rows(); err != nil {
		return r.Incomplete(os.Stdout, columns, err)
	}
	if judge != nil {
		r.Notes = judge(r.Rows)
	}
	return r.Finish(os.Stdout, columns, out)
}

// Print writes the report as two tables: figures, then ratios. columns gives
// the order of the figures.
func (r *Report) Print(w io.Writer, columns []string) error {
	put(w, "\n%s, %s\n%s\n\n", r.Name, r.Time.Format(time.DateTime), r.Machine)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	put(table, "case\tserver\t%s\t\n", strings.Join(columns, "\t"))
	for _, row := range r.Rows {
		put(table, "%s\t%s\t", row.Case, row.Server)
		for _, column := range columns {
			put(table, "%s\t", cell(row.Figures, column))
		}
		put(table, "\n")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(r.Ratios) > 0 {
		put(w, "\n")
		if err := r.printRatios(w); err != nil {
			return err
		}
	}
	for _, note := range r.Notes {
		put(w, "note: %s\n", note)
	}
	return nil
}

// Finish prints a complete report and stores it as dir/NAME.json.
func (r *Report) Finish(w io.Writer, columns []string, dir string) error {
	if err := r.Print(w, columns); err != nil {
		return err
	}
	return r.Write(dir)
}

// Incomplete prints what was measured before err stopped the benchmark, and
// returns err. Nothing is written to a file: half a report is not comparable.
func (r *Report) Incomplete(w io.Writer, columns []string, err error) error {
	if len(r.Rows) == 0 {
		return err
	}
	r.Ratios, r.Notes = nil, []string{"incomplete: " + err.Error()}
	return errors.Join(err, r.Print(w, columns))
}

func (r *Report) printRatios(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	put(table, "case\tfigure\tpeer\ttutti\tother\tratio\taim\tmet\t\n")
	for _, q := range r.Ratios {
		met := ""
		if q.Met != nil {
			met = map[bool]string{true: "yes", false: "NO"}[*q.Met]
		}
		put(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n",
			q.Case, q.Figure, q.Peer, number(q.Tutti), number(q.Other), number(q.Ratio), q.Aim, met)
	}
	return table.Flush()
}

// put writes and leaves an error to the flush at the end: what is lost here is a
// line on a terminal that is gone.
func put(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func cell(figures map[string]float64, column string) string {
	v, ok := figures[column]
	if !ok {
		return "-"
	}
	return number(v)
}

// number keeps three significant digits for small values and none past the
// point for large ones.
func number(v float64) string {
	switch {
	case v != 0 && v < 1 && v > -1:
		return fmt.Sprintf("%.3f", v)
	case v < 10 && v > -10:
		return fmt.Sprintf("%.2f", v)
	case v < 100 && v > -100:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// Write stores the report as dir/NAME.json.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	path := filepath.Join(dir, r.Name+".json")
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

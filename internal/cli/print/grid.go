package print

import (
	"io"
	"strings"
	"unicode/utf8"
)

// grid prints rows in aligned columns, two spaces apart. On a terminal the widest
// columns give way until a line fits; elsewhere nothing is cut.
type grid struct {
	out    io.Writer
	widths []int
	cut    bool
}

// narrowest is how far a column gives way.
const narrowest = 12

// newGrid measures rows; others that come later are cut or stand out.
func newGrid(to Printer, columns []string, rows [][]string) *grid {
	g := &grid{out: to.Out}
	g.measure(columns)
	for _, row := range rows {
		g.measure(row)
	}
	if limit := to.Width; limit > 0 && len(columns) > 0 { // without headings it is one thing, shown whole
		g.fit(limit)
	}
	return g
}

func (g *grid) measure(row []string) {
	for i, cell := range row {
		if i == len(g.widths) {
			g.widths = append(g.widths, 0)
		}
		g.widths[i] = max(g.widths[i], utf8.RuneCountInString(OneLine(cell)))
	}
}

// fit takes from the widest column, one by one.
func (g *grid) fit(limit int) {
	total := 2 * (len(g.widths) - 1)
	for _, width := range g.widths {
		total += width
	}
	for ; total > limit; total-- {
		widest := 0
		for i, width := range g.widths {
			if width > g.widths[widest] {
				widest = i
			}
		}
		if g.widths[widest] <= narrowest {
			return
		}
		g.widths[widest]--
		g.cut = true
	}
}

func (g *grid) printAll(columns []string, rows [][]string) error {
	if len(columns) > 0 {
		headings := make([]string, len(columns))
		for i, column := range columns {
			headings[i] = strings.ToUpper(column)
		}
		if err := g.print(headings); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if err := g.print(row); err != nil {
			return err
		}
	}
	return nil
}

func (g *grid) print(row []string) error {
	var line strings.Builder
	for i, cell := range row {
		cell = OneLine(cell)
		if g.cut {
			cell = Shortened(cell, g.widths[i])
		}
		line.WriteString(cell)
		if i < len(row)-1 {
			line.WriteString(strings.Repeat(" ", max(0, g.widths[i]-utf8.RuneCountInString(cell))+2))
		}
	}
	line.WriteByte('\n')
	_, err := io.WriteString(g.out, line.String())
	return err
}

// Shortened cuts a text that would spoil a table.
func Shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// OneLine keeps text from breaking the table, and control characters from
// reaching the terminal: much of it comes from nodes.
func OneLine(text string) string {
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

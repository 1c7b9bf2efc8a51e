package print

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// grid prints rows in aligned columns, two spaces apart. On a terminal every line fits: texts give way first, then whole
// columns, then everything else, and the first column, which names the thing, at last. Elsewhere nothing is cut.
type grid struct {
	out    io.Writer
	widths []int
	hidden []bool
	limit  int // of a line; 0: there is none
	cut    bool
}

// How far columns give way: texts to a comfortable width before any column is left out, then to a narrow one; then the name,
// and at last everything as far as it can.
const (
	comfortable = 24
	narrow      = 12
	narrowest   = 6
	gap         = 2
)

// newGrid measures rows; others that come later are cut or stand out. spare are the columns that may be left out, the
// first of them first.
func newGrid(to Printer, headings []string, rows [][]string, spare []int) *grid {
	g := &grid{out: to.Out, hidden: make([]bool, len(headings))}
	g.measure(headings)
	for _, row := range rows {
		g.measure(row)
	}
	if to.Width > 0 && len(headings) > 0 { // without headings it is one thing, shown whole
		g.limit = to.Width
		g.fit(spare)
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

// fit takes from the widest columns, and leaves out those that can be spared.
func (g *grid) fit(spare []int) {
	g.shrink(comfortable, 1)
	for _, i := range spare {
		if g.total() <= g.limit {
			break
		}
		g.hidden[i] = true
	}
	g.shrink(narrow, 1)
	g.shrink(comfortable, 0)
	g.shrink(narrowest, 0)
}

// total is the width of a line.
func (g *grid) total() int {
	total := -gap
	for i, width := range g.widths {
		if !g.hidden[i] {
			total += width + gap
		}
	}
	return total
}

// shrink takes from the widest column, one by one, until a line fits or none is wider than least. Columns before from
// keep their width.
func (g *grid) shrink(least, from int) {
	for total := g.total(); total > g.limit; total-- {
		widest := -1
		for i := from; i < len(g.widths); i++ {
			if !g.hidden[i] && g.widths[i] > least && (widest < 0 || g.widths[i] > g.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		g.widths[widest]--
		g.cut = true
	}
}

// left says which columns were left out.
func (g *grid) left(names []string) []string {
	var left []string
	for i, name := range names {
		if g.hidden[i] {
			left = append(left, name)
		}
	}
	return left
}

// print writes one line. colours, where given, are those of the cells.
func (g *grid) print(row, colours []string) error {
	var line strings.Builder
	used, last := 0, len(row)-1
	for last > 0 && last < len(g.hidden) && g.hidden[last] {
		last--
	}
	for i, cell := range row[:last+1] {
		if i < len(g.hidden) && g.hidden[i] {
			continue
		}
		cell = OneLine(cell)
		if g.cut {
			cell = Shortened(cell, g.widths[i])
		}
		if g.limit > 0 {
			if used >= g.limit {
				break
			}
			cell = Shortened(cell, g.limit-used)
		}
		width := utf8.RuneCountInString(cell)
		padding := 0
		if i < last {
			padding = max(0, g.widths[i]-width) + gap
		}
		used += width + padding
		if i < len(colours) {
			cell = painted(cell, colours[i])
		}
		line.WriteString(cell)
		line.WriteString(strings.Repeat(" ", padding))
	}
	_, err := io.WriteString(g.out, strings.TrimRight(line.String(), " ")+"\n")
	return err
}

// Shortened cuts a text that would spoil a table.
func Shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:max(limit-1, 0)]) + "…"
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

// headingsOf are the names of columns as people see them.
func headingsOf(names []string) []string {
	headings := slices.Clone(names)
	for i, name := range headings {
		headings[i] = strings.ToUpper(name)
	}
	return headings
}

package diff

import (
	"fmt"
	"io"
	"strings"

	"github.com/tutti-project/tutti/api"
)

// WriteMarkdown prints a difference for a merge request.
func WriteMarkdown(w io.Writer, d api.CatalogDifference, order bool) error {
	p := &printer{w: w}
	p.line("**%s → %s**: %s", code(sideText(d.Old)), code(sideText(d.New)), total(d, order))
	if d.Old.Environment != d.New.Environment {
		p.line("\n- ~ environment %s → %s", code(d.Old.Environment), code(d.New.Environment))
	}
	for _, r := range d.Resources {
		if order || !r.OrderOnly {
			p.fold(nameText(r.Type, r.Title, r.Exported), signs[r.Change], "", r, order)
		}
	}
	if d.NotListed > 0 {
		p.line("\n… and %s", countOf(d.NotListed, "more resource", "more resources"))
	}
	return p.err
}

// WriteFleetMarkdown prints how nodes differ for a merge request: a table, and below
// it how the first node of each group has the change.
func WriteFleetMarkdown(w io.Writer, f api.FleetDifference, order bool) error {
	p := &printer{w: w}
	p.line("%s", fleetTotal(f, order))
	all := families(f.Groups, order)
	if len(all) > 0 {
		p.line("\n| change | nodes | |\n|---|--:|---|")
	}
	for _, line := range all {
		p.line("| %s | %d | %s |", cell(familyText(line)), line.nodes, cell(familyNote(line)))
	}
	for _, g := range f.Groups {
		if g.Example == nil || g.OrderOnly && !order {
			continue
		}
		p.fold(nameText(g.Type, g.Title, g.Exported), signs[g.Change], ", "+countOf(g.Nodes, "node", "nodes"), *g.Example, order)
	}
	if f.NotListed > 0 {
		p.line("\n… and %s of nodes in smaller groups", countOf(f.NotListed, "more change", "more changes"))
	}
	return p.err
}

// fold prints one resource as a section that is opened when somebody wants it.
func (p *printer) fold(name, sign, note string, r api.ResourceDifference, order bool) {
	var b strings.Builder
	inner := &printer{w: &b}
	inner.resource(r, order)
	fence := "```"
	for strings.Contains(b.String(), fence) {
		fence += "`"
	}
	p.line("\n<details><summary>%s <code>%s</code>%s</summary>\n\n%sdiff\n%s%s\n\n</details>", sign, escape(name), note, fence, unindent(b.String()), fence)
}

// unindent brings the lines of diffs to the front, where they are coloured.
func unindent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(line, "      "))
	}
	return b.String()
}

// code is text as code, whatever is in it.
func code(text string) string { return "<code>" + escape(clean(text)) + "</code>" }

// cell is text as code in a table.
func cell(text string) string {
	if text == "" {
		return ""
	}
	return "<code>" + strings.ReplaceAll(escape(text), "|", "&#124;") + "</code>"
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape makes text harmless in HTML. Markdown reads inside of <code> too, so its
// own signs are written as numbers.
func escape(text string) string {
	text = escapes.Replace(text)
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("`*_[]~\\$@!", r) {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

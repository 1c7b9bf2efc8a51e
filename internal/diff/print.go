package diff

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// WriteText prints a difference for people. Without order, what differs in order
// only is a number.
func WriteText(w io.Writer, d api.CatalogDifference, order bool) error {
	p := &printer{w: w}
	p.line("--- %s", sideText(d.Old))
	p.line("+++ %s", sideText(d.New))
	if d.Old.Environment != d.New.Environment {
		p.line("~ environment %s → %s", clean(d.Old.Environment), clean(d.New.Environment))
	}
	if added, removed := loose(d); len(added)+len(removed) > 0 {
		p.line("~ classes %s", setText(added, removed))
	}
	for _, r := range d.Resources {
		if order || !r.OrderOnly {
			p.resource(r, order)
		}
	}
	if d.NotListed > 0 {
		p.line("… and %s", countOf(d.NotListed, "more resource", "more resources"))
	}
	if order {
		p.order(d.Order)
	}
	p.line("%s", total(d, order))
	return p.err
}

// sideText names one side.
func sideText(s api.CatalogSide) string {
	words := []string{s.Name, s.Environment, short(s.Digest)}
	return clean(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "  "))
}

func short(digest string) string { return cutText(digest, 12) }

// total sums a difference up.
func total(d api.CatalogDifference, order bool) string {
	text := "no difference"
	if !d.Same {
		text = fmt.Sprintf("%d added, %d removed, %d changed", d.Added, d.Removed, d.Changed)
	}
	if n := d.Order.Resources + d.Order.EdgeCount + d.Order.Moved; n > 0 {
		text += fmt.Sprintf("   (order only%s: %s, %s, %d moved)", map[bool]string{false: ", hidden"}[order],
			countOf(d.Order.Resources, "resource", "resources"), countOf(d.Order.EdgeCount, "edge", "edges"), d.Order.Moved)
	}
	if d.NotCompared {
		text += "   (secrets were not compared)"
	}
	return text
}

// printer prints lines until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// signs of what happened to a resource.
var signs = map[string]string{
	"added": "+", "removed": "-", "changed": "~", "error": "!", "node": "~", "edge": "~", "reordered": "~",
	"lost-all": "!", "lost-most": "!",
}

func (p *printer) resource(r api.ResourceDifference, order bool) {
	where := ""
	if place := fleet.Place(r.File, r.Line); place != "" {
		where = "   " + clean(place)
	}
	shown := slices.DeleteFunc(slices.Clone(r.Parameters), func(q api.ParameterDifference) bool { return q.OrderOnly && !order })
	head := fmt.Sprintf("%s %s", signs[r.Change], nameText(r.Type, r.Title, r.Exported))
	if r.Change == "changed" && len(shown) == 1 && shown[0].Text == "" {
		p.line("%s %s%s", head, placeText(shown[0]), where)
		shown = nil
	} else {
		p.line("%s%s%s", head, remains(r.Change, r.Type, r.Exported), where)
	}
	for _, q := range shown {
		p.parameter(q, r.Change)
	}
	if r.NotListed > 0 {
		p.line("    … and %s", countOf(r.NotListed, "more place", "more places"))
	}
	if order {
		p.set("tags", r.TagsAdded, r.TagsRemoved)
	}
}

func nameText(kind, title string, exported bool) string {
	name := clean(kind + "[" + title + "]")
	if exported {
		return "@@" + name
	}
	return name
}

// remains says that what leaves a catalog is not undone on the node.
func remains(change, kind string, exported bool) string {
	if change != "removed" || exported || strings.Contains(kind, "::") {
		return ""
	}
	switch kind {
	case "Class", "Stage", "Notify", "Exec", "Schedule", "Filebucket", "Whit", "Anchor":
		return ""
	}
	return "   stays on disk"
}

func (p *printer) parameter(q api.ParameterDifference, of string) {
	sign := ""
	if of == "changed" {
		sign = signs[q.Change] + " "
	}
	p.line("    %s%s", sign, placeText(q))
	for text := range strings.Lines(q.Text) {
		p.line("      %s", clean(strings.TrimSuffix(text, "\n")))
	}
}

// placeText says in one line what differs: ensure "a" → "b".
func placeText(q api.ParameterDifference) string {
	name := clean(q.Name + q.Path)
	switch {
	case q.Hidden:
		name += " " + q.Change + " (hidden)"
	case q.Change == "reordered":
		name += " in another order"
	case q.Old != nil || q.New != nil:
		name += " " + arrow(valueText(q.Old), valueText(q.New))
	case q.Text == "" && q.OldDigest+q.NewDigest != "":
		name += " " + arrow(digestText(q.OldDigest), digestText(q.NewDigest))
	}
	if q.Binary {
		name += " (binary)"
	}
	if q.Note != "" {
		name += " (" + q.Note + ")"
	}
	if len(q.EngineNoise) > 0 {
		name += "   " + engineText(q.EngineNoise)
	}
	return name
}

// engineText says that a difference is the engine's doing, and in which forms it is.
func engineText(forms []string) string { return "noise of the engine: " + strings.Join(forms, ", ") }

// digestText is a checksum, short.
func digestText(sum string) string { return cutText(sum, len("{sha256}")+12) }

func arrow(old, fresh string) string {
	switch {
	case old == "":
		return fresh
	case fresh == "":
		return old
	default:
		return old + " → " + fresh
	}
}

func valueText(raw json.RawMessage) string { return clean(string(raw)) }

func (p *printer) order(o api.OrderDifference) {
	for _, e := range o.Edges {
		p.line("%s %s contains %s", signs[e.Change], clean(e.Source), clean(e.Target))
	}
	if more := o.EdgeCount - len(o.Edges); more > 0 {
		p.line("… and %s", countOf(more, "more edge", "more edges"))
	}
	p.set("tags of the catalog", o.TagsAdded, o.TagsRemoved)
}

func (p *printer) set(name string, added, removed []string) {
	if len(added)+len(removed) > 0 {
		p.line("    ~ %s %s", name, setText(added, removed))
	}
}

func setText(added, removed []string) string {
	var words []string
	for _, word := range removed {
		words = append(words, "-"+word)
	}
	for _, word := range added {
		words = append(words, "+"+word)
	}
	return clean(strings.Join(words, " "))
}

// loose are the classes that came or went without a resource of their name.
func loose(d api.CatalogDifference) (added, removed []string) {
	known := map[string]bool{}
	for _, r := range d.Resources {
		if r.Type == "Class" || r.Type == "Node" {
			known[strings.ToLower(r.Title)] = true
		}
	}
	named := func(class string) bool { return known[strings.ToLower(class)] }
	return slices.DeleteFunc(slices.Clone(d.ClassesAdded), named), slices.DeleteFunc(slices.Clone(d.ClassesRemoved), named)
}

// clean makes what a terminal would act on visible: what is printed comes from
// manifests and data, and must not move the cursor. A tab is left alone.
func clean(text string) string {
	if !strings.ContainsFunc(text, acts) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if acts(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// acts tells control characters, and those that change the direction of writing.
func acts(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

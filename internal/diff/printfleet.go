package diff

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// family is one line of a summary: groups that change the same thing in different
// ways are its variants.
type family struct {
	api.ChangeGroup // of the largest variant
	nodes, variants int
	keys            []string // of the variants
}

// families puts groups together, errors first, then by number of nodes, noise of the engine behind; those of
// order only are left out unless they are asked for.
func families(groups []api.ChangeGroup, order bool) []family {
	place := map[string]int{}
	var all []family
	for _, g := range groups {
		if g.OrderOnly && !order {
			continue
		}
		name := fmt.Sprintf("%q %q %q %v %v %q %q %q %q", g.Change, g.Type, g.Title, g.Exported, g.OrderOnly, g.EngineNoise, g.Parameters, g.Message, g.File)
		i, there := place[name]
		if !there {
			i = len(all)
			place[name] = i
			all = append(all, family{ChangeGroup: g})
		}
		all[i].nodes += g.Nodes
		all[i].variants++
		all[i].keys = append(all[i].keys, g.Key)
	}
	slices.SortStableFunc(all, func(a, b family) int {
		return cmp.Or(-compareBool(a.Change == "error", b.Change == "error"), compareBool(a.OrderOnly, b.OrderOnly),
			compareBool(len(a.EngineNoise) > 0, len(b.EngineNoise) > 0), cmp.Compare(b.nodes, a.nodes))
	})
	return all
}

// WriteFleetText prints how nodes differ, one line for each change.
func WriteFleetText(w io.Writer, f api.FleetDifference, order bool) error {
	p := &printer{w: w}
	p.line("  %s", fleetTotal(f, order))
	all := families(f.Groups, order)
	width := 0
	for _, line := range all {
		width = max(width, utf8.RuneCountInString(familyText(line)))
	}
	for _, line := range all {
		text := familyText(line)
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(text))
		p.line("%s", strings.TrimRight(fmt.Sprintf("  %s%s  %9s  %s", text, pad, countOf(line.nodes, "node", "nodes"), familyNote(line)), " "))
	}
	if f.NotListed > 0 {
		p.line("  … and %s of nodes in smaller groups", countOf(f.NotListed, "more change", "more changes"))
	}
	return p.err
}

// Kind is groups that change the same thing, in different ways: its variants.
type Kind struct {
	Keys        []string // of the variants, the largest first
	Nodes       int
	OrderOnly   bool
	EngineNoise bool // nothing but forms of values differs, and that is the engine's doing
	family      family
}

// Kinds puts groups together: errors first, then what is more than order, noise of the engine behind, then by number of nodes.
func Kinds(groups []api.ChangeGroup) []Kind {
	all := families(groups, true)
	kinds := make([]Kind, len(all))
	for i, f := range all {
		kinds[i] = Kind{Keys: f.keys, Nodes: f.nodes, OrderOnly: f.OrderOnly, EngineNoise: len(f.EngineNoise) > 0, family: f}
	}
	return kinds
}

// Text says what changes, in a line.
func (k Kind) Text() string { return familyText(k.family) }

// WriteText prints a kind of change in a line behind its label, with a note at the end; with detail, also how the
// first node has it.
func (k Kind) WriteText(w io.Writer, label, note string, detail bool) error {
	p := &printer{w: w}
	text := fmt.Sprintf("%s  %s   %s   %s", label, familyText(k.family), countOf(k.Nodes, "node", "nodes"), familyNote(k.family))
	p.line("%s", strings.TrimRight(strings.TrimRight(text, " ")+"   "+clean(note), " "))
	if !detail || k.family.Example == nil || onlyPlace(k.family) != "" {
		return p.err
	}
	var b strings.Builder
	inner := &printer{w: &b}
	inner.resource(*k.family.Example, k.OrderOnly)
	_, body, _ := strings.Cut(b.String(), "\n")
	for text := range strings.Lines(body) {
		p.line("%s", "  "+strings.TrimSuffix(text, "\n"))
	}
	return p.err
}

func fleetTotal(f api.FleetDifference, order bool) string {
	text := fmt.Sprintf("%d change   %s   %d same", f.Changed, countOf(f.Errors, "error", "errors"), f.Same)
	if f.OrderOnly > 0 {
		text += fmt.Sprintf("   (%d order-only%s)", f.OrderOnly, map[bool]string{false: " hidden"}[order])
	}
	return text
}

// familyText says what changes: ~ Package[openssl] ensure "3.0.15" → "3.0.17".
func familyText(f family) string {
	text := signs[f.Change] + " "
	switch {
	case f.Change == "error":
		return text + firstLine(f.Message)
	case strings.HasPrefix(f.Change, "lost-"):
		text += f.Change + ": " + clean(f.Title)
	case f.Type != "":
		text += nameText(f.Type, f.Title, f.Exported)
	default:
		text += clean(f.Title)
	}
	if f.Message != "" {
		text += " " + firstLine(f.Message)
	}
	if p := onlyPlace(f); p != "" {
		return text + " " + p
	}
	if len(f.Parameters) > 0 {
		text += " " + clean(strings.Join(f.Parameters, ", "))
	}
	return text
}

// onlyPlace is the one place that differs, if there is one and it is short.
func onlyPlace(f family) string {
	if f.variants > 1 || f.Change != "changed" || f.Example == nil || f.Example.NotListed > 0 {
		return ""
	}
	shown := slices.DeleteFunc(slices.Clone(f.Example.Parameters), func(p api.ParameterDifference) bool { return p.OrderOnly && !f.OrderOnly })
	if len(shown) != 1 || shown[0].Text != "" {
		return ""
	}
	shown[0].EngineNoise = nil // the note says it
	if text := placeText(shown[0]); utf8.RuneCountInString(text) <= 60 {
		return text
	}
	return ""
}

// familyNote is what stands behind the number of nodes.
func familyNote(f family) string {
	switch {
	case f.Change == "error" && f.File != "":
		return clean(fleet.Place(f.File, f.Line))
	case len(f.EngineNoise) > 0 && f.variants > 1:
		return countOf(f.variants, "variant", "variants") + "   " + engineText(f.EngineNoise)
	case len(f.EngineNoise) > 0:
		return engineText(f.EngineNoise)
	case f.variants > 1:
		return countOf(f.variants, "variant", "variants")
	default:
		return strings.TrimSpace(remains(f.Change, f.Type, f.Exported))
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return clean(cutText(line, 300))
}

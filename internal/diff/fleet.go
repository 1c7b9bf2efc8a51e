package diff

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
)

// exampleNodes is how many nodes of a group are named.
const exampleNodes = 5

// Fleet is what was added so far: at most limit groups, the first ones. nameOf gives
// the names of nodes back.
func (g *Grouper) Fleet(limit int, nameOf func(number uint32) string) (api.FleetDifference, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := api.FleetDifference{
		Nodes: g.nodes.size, Changed: g.changed.size, Errors: g.failed.size, OrderOnly: g.order.size,
		Same: g.nodes.size - g.changed.size - g.failed.size, Groups: []api.ChangeGroup{}, NotListed: g.lost,
	}
	for i, of := range g.sorted() {
		if i >= limit {
			out.NotListed += of.nodes.size
			continue
		}
		shown, err := of.show(nameOf)
		if err != nil {
			return out, err
		}
		out.Groups = append(out.Groups, shown)
	}
	return out, nil
}

// Nodes lists the numbers of a group's nodes, in order.
func (g *Grouper) Nodes(k Key) []uint32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if of := g.groups[k]; of != nil {
		return slices.Collect(of.nodes.all())
	}
	return nil
}

// Whole is a group with the numbers of all of its nodes, in order.
type Whole struct {
	api.ChangeGroup
	Numbers []uint32
}

// All is every group, in the order of Fleet, one after the other: all of them together may be much. Nothing may be added
// meanwhile.
func (g *Grouper) All(nameOf func(number uint32) string) iter.Seq2[Whole, error] {
	return func(yield func(Whole, error) bool) {
		g.mu.Lock()
		all := g.sorted()
		g.mu.Unlock()
		for _, of := range all {
			shown, err := of.show(nameOf)
			if !yield(Whole{shown, slices.Collect(of.nodes.all())}, err) || err != nil {
				return
			}
		}
	}
}

func (g *Grouper) sorted() []*group {
	all := make([]*group, 0, len(g.groups))
	for _, of := range g.groups {
		all = append(all, of)
	}
	slices.SortFunc(all, larger)
	return all
}

// larger orders groups: errors, then what is lost, then what is more than order, noise of the engine last, then by nodes.
func larger(a, b *group) int {
	return cmp.Or(
		-compareBool(a.change == "error", b.change == "error"),
		-compareBool(strings.HasPrefix(a.change, "lost-"), strings.HasPrefix(b.change, "lost-")),
		compareBool(a.order, b.order),
		compareBool(len(a.engine) > 0, len(b.engine) > 0),
		cmp.Compare(b.nodes.size, a.nodes.size), cmp.Compare(a.typ, b.typ), cmp.Compare(a.title, b.title),
		cmp.Compare(a.change, b.change), bytes.Compare(a.key[:], b.key[:]),
	)
}

func (of *group) show(nameOf func(uint32) string) (api.ChangeGroup, error) {
	out := api.ChangeGroup{
		Key: hex.EncodeToString(of.key[:]), Change: of.change, Type: of.typ, Title: of.title, Exported: of.exported, OrderOnly: of.order,
		Parameters: of.parameters, EngineNoise: of.engine, Message: of.message, File: of.file, Line: of.line, Nodes: of.nodes.size, Examples: []string{},
	}
	for n := range of.nodes.all() {
		if len(out.Examples) == exampleNodes {
			break
		}
		out.Examples = append(out.Examples, nameOf(n))
	}
	if of.example == nil {
		return out, nil
	}
	out.Example = &api.ResourceDifference{}
	return out, json.Unmarshal(of.example, out.Example)
}

// Package variants compares resources of many nodes: which sets of parameters there are, how many nodes have each, and in what they differ. The same is
// done for what catalogs say and for what nodes say of themselves; Drift compares these two for one resource.
//
// Errors: Invalid for more than can be held, Internal for parameters that are no object.
//
// Concurrency: a Comparer belongs to one goroutine; functions are without state.
//
// Sources: parameters as PuppetDB's resources and `puppet resource` have them.
package variants

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Comparison is one resource and the sets of parameters that nodes have it with.
type Comparison struct {
	Title     string
	Nodes     int
	Differing []string  // parameters that are not the same in all variants, sorted
	Variants  []Variant // the one that most nodes have first
}

// Variant is one set of parameters.
type Variant struct {
	Nodes      int
	Examples   []fleet.Certname // the first ones by name
	Parameters json.RawMessage  // an object
}

// The bounds of a Comparer.
const (
	maxExamples     = 5
	maxVariantBytes = 64 << 20
	variantOverhead = 200 // of one that is held, besides its text
)

// Comparer gathers the resources of one type, node by node. It holds each variant
// once, and refuses more than 64 MB of them. The zero Comparer is ready.
type Comparer struct {
	titles map[string]map[string]*Variant // by title and parameters
	bytes  int
}

// Add takes in one resource of a node. Of parameters, the spelling counts: who
// calls it has one for each value, as the inventory has.
func (c *Comparer) Add(node fleet.Certname, title string, parameters json.RawMessage) error {
	if c.titles == nil {
		c.titles = map[string]map[string]*Variant{}
	}
	variants := c.titles[title]
	if variants == nil {
		variants = map[string]*Variant{}
		c.titles[title] = variants
		c.bytes += len(title) + variantOverhead
	}
	v := variants[string(parameters)]
	if v == nil {
		v = &Variant{Parameters: slices.Clone(parameters)}
		variants[string(parameters)] = v
		c.bytes += 2*len(parameters) + variantOverhead
	}
	if c.bytes > maxVariantBytes {
		return fault.New(fault.Invalid, "these resources differ in more ways than can be held at once; name a title, or narrow the nodes")
	}
	v.add(node)
	return nil
}

func (v *Variant) add(node fleet.Certname) {
	v.Nodes++
	if len(v.Examples) == maxExamples && node > v.Examples[maxExamples-1] {
		return
	}
	at, _ := slices.BinarySearch(v.Examples, node)
	v.Examples = slices.Insert(v.Examples, at, node)
	v.Examples = v.Examples[:min(len(v.Examples), maxExamples)]
}

// Comparisons lists what was added: the resource with most variants first.
func (c *Comparer) Comparisons() ([]Comparison, error) {
	var out []Comparison
	for title, variants := range c.titles {
		one := Comparison{Title: title}
		for _, v := range variants {
			one.Nodes += v.Nodes
			one.Variants = append(one.Variants, *v)
		}
		slices.SortFunc(one.Variants, func(a, b Variant) int {
			return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), bytes.Compare(a.Parameters, b.Parameters))
		})
		var err error
		if one.Differing, err = differing(one.Variants); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Comparison) int {
		return cmp.Or(cmp.Compare(len(b.Variants), len(a.Variants)), cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Title, b.Title))
	})
	return out, nil
}

// differing names the parameters that some variant has otherwise than the first one,
// or lacks.
func differing(variants []Variant) ([]string, error) {
	names := map[string]bool{}
	var first map[string]json.RawMessage
	for i, v := range variants {
		var values map[string]json.RawMessage
		if err := json.Unmarshal(v.Parameters, &values); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "parameters of a resource")
		}
		if i == 0 {
			first = values
			continue
		}
		for name, value := range values {
			if other, ok := first[name]; !ok || !bytes.Equal(other, value) {
				names[name] = true
			}
		}
		for name := range first {
			if _, ok := values[name]; !ok {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// ForAPI is a comparison of resources of a type as the API tells it, with the parameters of each variant or without.
func (c Comparison) ForAPI(kind string, parameters bool) api.ResourceComparison {
	out := api.ResourceComparison{Type: kind, Title: c.Title, Nodes: c.Nodes, Differing: append([]string{}, c.Differing...)}
	for _, v := range c.Variants {
		variant := api.ResourceVariant{Nodes: v.Nodes}
		for _, node := range v.Examples {
			variant.Examples = append(variant.Examples, string(node))
		}
		if parameters {
			variant.Parameters = v.Parameters
		}
		out.Variants = append(out.Variants, variant)
	}
	return out
}

package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
)

// MaxDifferences is how many differences of two catalogs are kept.
const MaxDifferences = 20

// Difference is one place where a catalog is not what plain Puppet gives.
type Difference struct {
	Resource string `json:"resource,omitempty"` // Type[title]; @@Type[title] for an exported one; empty: the catalog itself
	What     string `json:"what"`               // parameter NAME, tags, edge, order of resources ...
	Tutti    string `json:"tutti,omitempty"`    // what the catalog has; hidden where it is sensitive
	Plain    string `json:"plain,omitempty"`    // what plain Puppet gives
}

func (d Difference) String() string { return strings.TrimSpace(d.Resource + " " + d.What) }

// hidden stands for what is sensitive.
const hidden = "[sensitive]"

// CompareOpinion compares a stored document with what plain Puppet gives: resources with their parameters, tags and all else, edges,
// classes and exported resources, in their order. Parameters, tags and classes are compared by name, as agents and stored documents
// know no order of them; values with the order of their keys and every digit. What belongs to one compilation or to files (version, code_id, catalog_uuid,
// metadata, recursive_metadata) is left out. It returns at most MaxDifferences, and how many there are. Invalid for what is no catalog.
func CompareOpinion(document []byte, plain Opinion) (found []Difference, count int, err error) {
	stored, err := readJSON(document)
	if err != nil {
		return nil, 0, fault.Wrap(fault.Invalid, err, "the stored catalog is not JSON")
	}
	whole, _ := stored.(*jsonObject)
	fresh, err := readJSON(plain.Catalog)
	if err != nil {
		return nil, 0, fault.Wrap(fault.Invalid, err, "plain Puppet's catalog is not JSON")
	}
	exported, err := readJSON(catalog.OrEmpty(plain.Exported))
	if err != nil {
		return nil, 0, fault.Wrap(fault.Invalid, err, "plain Puppet's exported resources are not JSON")
	}
	ours := whole.object("catalog")
	theirs, _ := fresh.(*jsonObject)
	if ours == nil || theirs == nil {
		return nil, 0, fault.New(fault.Invalid, "one of the catalogs is no JSON object")
	}
	more, _ := exported.([]any)
	var c comparison
	c.catalogs(ours, theirs)
	c.resources("", ours.list("resources"), theirs.list("resources"))
	c.resources("@@", whole.list("exported"), more)
	c.edges(ours.list("edges"), theirs.list("edges"))
	return c.found, c.count, nil
}

// comparison collects differences.
type comparison struct {
	found []Difference
	count int
}

func (c *comparison) add(d Difference) {
	if c.count++; len(c.found) < MaxDifferences {
		c.found = append(c.found, d)
	}
}

// catalogs compares what catalogs have besides resources and edges.
func (c *comparison) catalogs(ours, theirs *jsonObject) {
	for _, key := range allKeys(ours, theirs) {
		switch key {
		case "version", "code_id", "catalog_uuid", "metadata", "recursive_metadata", "resources", "edges":
			continue
		}
		a, b := ours.get(key), theirs.get(key)
		if key == "classes" || key == "tags" {
			if !sameSet(a, b) {
				c.add(setDifference("", key, a, b))
			}
		} else if !sameValue(a, b) {
			c.add(Difference{What: key, Tutti: shownValue(a), Plain: shownValue(b)})
		}
	}
}

// resources compares two lists: what is missing on one side, what differs, and the order.
func (c *comparison) resources(prefix string, ours, theirs []any) {
	mine, myNames := byName(prefix, ours)
	other, otherNames := byName(prefix, theirs)
	complete := len(myNames) == len(otherNames)
	for _, name := range myNames {
		if other[name] == nil {
			complete = false
			c.add(Difference{Resource: name, What: "only Tutti has it"})
			continue
		}
		c.resource(name, mine[name], other[name])
	}
	for _, name := range otherNames {
		if mine[name] == nil {
			complete = false
			c.add(Difference{Resource: name, What: "only plain Puppet has it"})
		}
	}
	if !complete {
		return
	}
	for i, name := range myNames {
		if otherNames[i] != name {
			what := "order of resources"
			if prefix != "" {
				what = "order of exported resources"
			}
			c.add(Difference{What: what, Tutti: fmt.Sprintf("%d: %s", i, name), Plain: fmt.Sprintf("%d: %s", i, otherNames[i])})
			return
		}
	}
}

// byName finds resources by their references. A list that has one twice gives it two names.
func byName(prefix string, list []any) (map[string]*jsonObject, []string) {
	found, names := map[string]*jsonObject{}, make([]string, 0, len(list))
	for _, item := range list {
		resource, _ := item.(*jsonObject)
		if resource == nil {
			resource = &jsonObject{}
		}
		name := prefix + resource.text("type") + "[" + resource.text("title") + "]"
		for found[name] != nil {
			name += " again"
		}
		found[name] = resource
		names = append(names, name)
	}
	return found, names
}

func (c *comparison) resource(name string, ours, theirs *jsonObject) {
	for _, key := range allKeys(ours, theirs) {
		a, b := ours.get(key), theirs.get(key)
		switch key {
		case "parameters":
			c.parameters(name, ours, theirs)
		case "tags":
			if !sameSet(a, b) {
				c.add(setDifference(name, key, a, b))
			}
		default:
			if !sameValue(a, b) {
				c.add(Difference{Resource: name, What: key, Tutti: shownValue(a), Plain: shownValue(b)})
			}
		}
	}
}

func (c *comparison) parameters(name string, ours, theirs *jsonObject) {
	a, b := ours.object("parameters"), theirs.object("parameters")
	for _, key := range allKeys(a, b) {
		x, inA := memberOf(a, key)
		y, inB := memberOf(b, key)
		if inA == inB && sameValue(x, y) {
			continue
		}
		d := Difference{Resource: name, What: "parameter " + key}
		if inA {
			d.Tutti = shownParameter(ours, key, x)
		}
		if inB {
			d.Plain = shownParameter(theirs, key, y)
		}
		if d.Tutti == hidden || d.Plain == hidden {
			d.Tutti, d.Plain = hiddenOr(d.Tutti), hiddenOr(d.Plain)
		}
		if d.Tutti == d.Plain && d.Tutti != hidden {
			d.What += ", past what is shown"
		}
		c.add(d)
	}
}

// memberOf is a member, and whether it is there.
func memberOf(o *jsonObject, key string) (value any, ok bool) {
	if o == nil {
		return nil, false
	}
	value, ok = o.values[key]
	return value, ok
}

// hiddenOr hides a value, unless there is none.
func hiddenOr(text string) string {
	if text == "" {
		return ""
	}
	return hidden
}

// shownParameter hides what is marked as sensitive, and what a resource changes whose differences are not for eyes.
func shownParameter(resource *jsonObject, key string, value any) string {
	silent, said := memberOf(resource.object("parameters"), "show_diff")
	if said && key != "show_diff" && (silent == false || silent == "false") ||
		slices.Contains(resource.list("sensitive_parameters"), any(key)) || holdsSensitive(value) {
		return hidden
	}
	return shownValue(value)
}

func holdsSensitive(value any) bool {
	switch v := value.(type) {
	case *jsonObject:
		return v.text("__ptype") == "Sensitive" || slices.ContainsFunc(v.keys, func(key string) bool { return holdsSensitive(v.values[key]) })
	case []any:
		return slices.ContainsFunc(v, holdsSensitive)
	}
	return false
}

// edges compares two lists of edges.
func (c *comparison) edges(ours, theirs []any) {
	mine, other := edgeNames(ours), edgeNames(theirs)
	before := c.count
	c.missing(mine, other, "edge that only Tutti has")
	c.missing(other, mine, "edge that only plain Puppet has")
	if c.count > before || slices.Equal(mine, other) {
		return
	}
	for i := range min(len(mine), len(other)) {
		if mine[i] != other[i] {
			c.add(Difference{What: "order of edges", Tutti: fmt.Sprintf("%d: %s", i, mine[i]), Plain: fmt.Sprintf("%d: %s", i, other[i])})
			return
		}
	}
	c.add(Difference{What: "edges", Tutti: fmt.Sprint(len(mine)), Plain: fmt.Sprint(len(other))})
}

func (c *comparison) missing(has, lacks []string, what string) {
	there := map[string]bool{}
	for _, edge := range lacks {
		there[edge] = true
	}
	for _, edge := range has {
		if !there[edge] {
			c.add(Difference{Resource: edge, What: what})
		}
	}
}

func edgeNames(list []any) []string {
	names := make([]string, len(list))
	for i, item := range list {
		edge, _ := item.(*jsonObject)
		names[i] = edge.text("source") + " -> " + edge.text("target")
	}
	return names
}

// setDifference shows what each side has more.
func setDifference(resource, what string, ours, theirs any) Difference {
	less := func(a, b any) string {
		has, lacks := asTexts(a), asTexts(b)
		return cut(strings.Join(slices.DeleteFunc(has, func(text string) bool { return slices.Contains(lacks, text) }), ", "))
	}
	return Difference{Resource: resource, What: what, Tutti: less(ours, theirs), Plain: less(theirs, ours)}
}

func asTexts(value any) []string {
	list, _ := value.([]any)
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = fmt.Sprint(item)
	}
	return texts
}

// allKeys is the keys of both, each once, in order.
func allKeys(a, b *jsonObject) []string {
	var keys []string
	for _, o := range []*jsonObject{a, b} {
		if o != nil {
			keys = append(keys, o.keys...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// CompareErrors compares how a worker's compilation and plain Puppet failed; nil says that one gave a catalog.
func CompareErrors(ours, plain *Error) []Difference {
	words := func(e *Error) string {
		if e == nil {
			return "compiles"
		}
		return cut(e.Message)
	}
	switch {
	case ours == nil && plain == nil, ours != nil && plain != nil && ours.Message == plain.Message:
		return nil
	case ours != nil && plain != nil:
		return []Difference{{What: "error", Tutti: words(ours), Plain: words(plain)}}
	}
	return []Difference{{What: "only one of both compiles", Tutti: words(ours), Plain: words(plain)}}
}

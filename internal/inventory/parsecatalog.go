package inventory

import (
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
)

// Bounds of a catalog.
const (
	MaxCatalogBytes = 256 << 20
	maxCatalogRows  = 500_000 // resources, and edges
)

// ParseCatalog reads the resources and edges of a catalog in Puppet's wire
// format. Values of sensitive parameters are removed. To the edges of
// containment come those that require, before, notify and subscribe make
// explicit, in the direction of time: the source is managed first, as PuppetDB
// has them. A relation to a resource that the catalog does not hold is left out
// (Puppet refuses such a catalog itself).
func ParseCatalog(doc []byte) ([]Resource, []Edge, error) {
	s, err := scan.New("catalog", doc, MaxCatalogBytes)
	if err != nil {
		return nil, nil, err
	}
	p := catalogParser{Scanner: s, known: map[string]string{}}
	err = p.Object(func(key string) error {
		switch key {
		case "resources":
			return p.List(key, p.resource)
		case "edges":
			return p.List(key, p.edge)
		default:
			return p.Skip()
		}
	})
	if err == nil {
		err = p.End()
	}
	if err != nil {
		return nil, nil, err
	}
	p.resolve()
	return p.resources, p.edges, nil
}

type catalogParser struct {
	*scan.Scanner
	resources []Resource
	edges     []Edge
	known     map[string]string // reference or alias, normalised, to reference
	relations []relation
}

// relation is a relationship metaparameter that waits for all resources to be
// known.
type relation struct {
	ref, parameter, other string
}

// ref writes the name of a resource.
func ref(kind, title string) string { return kind + "[" + title + "]" }

func (p *catalogParser) resource() error {
	if len(p.resources) >= maxCatalogRows {
		return p.Fail("it holds more than %d resources", maxCatalogRows)
	}
	var r Resource
	var parameters string
	var sensitive, aliases []string
	err := p.Object(func(key string) (err error) {
		switch key {
		case "type":
			return p.Text(&r.Type, key)
		case "title":
			return p.Text(&r.Title, key)
		case "tags":
			return p.Texts(&r.Tags, key)
		case "exported":
			return p.Boolean(&r.Exported, key)
		case "file":
			return p.Text(&r.File, key)
		case "line":
			return p.Integer(&r.Line, key)
		case "sensitive_parameters":
			return p.Texts(&sensitive, key)
		case "aliases":
			return p.Texts(&aliases, key)
		case "parameters":
			if !p.IsNull() {
				parameters, err = p.Raw()
			}
			return err
		default:
			return p.Skip()
		}
	})
	if err != nil {
		return err
	}
	if r.Type == "" {
		return p.Fail("resource %.80q has no type", r.Title)
	}
	if err := p.parameters(&r, parameters, sensitive, aliases); err != nil {
		return err
	}
	p.resources = append(p.resources, r)
	return nil
}

func (p *catalogParser) parameters(r *Resource, text string, sensitive, aliases []string) error {
	name := ref(r.Type, r.Title)
	p.known[normalRef(name)] = name
	for _, alias := range aliases {
		p.alias(r.Type, alias, name)
	}
	if text == "" {
		return nil
	}
	out := append(make([]byte, 0, len(text)), '{')
	s := scan.Scanner{What: "catalog", Src: text}
	err := s.Object(func(key string) error {
		raw, err := s.Raw()
		if err != nil {
			return err
		}
		switch key {
		case "require", "before", "notify", "subscribe":
			p.relate(name, key, raw)
		case "alias":
			for _, alias := range refsIn(raw) {
				p.alias(r.Type, alias, name)
			}
		}
		if namevars[key] {
			for _, value := range refsIn(raw) {
				p.alias(r.Type, strings.TrimRight(value, "/"), name)
			}
		}
		if slices.Contains(sensitive, key) || isSensitive(raw) {
			return nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(scan.AppendQuoted(out, key), ':'), compact(raw)...)
		return nil
	})
	r.Parameters = append(out, '}')
	return err
}

// namevars are the parameters by whose values relations may name a resource
// instead of by its title.
var namevars = map[string]bool{"path": true, "name": true, "command": true}

// alias makes a resource known under another title, unless a resource has that
// title itself.
func (p *catalogParser) alias(kind, title, name string) {
	if key := normalRef(ref(kind, title)); p.known[key] == "" {
		p.known[key] = name
	}
}

// isSensitive tells rich data of the type Sensitive, wherever it stands.
func isSensitive(raw string) bool {
	if !strings.Contains(raw, "__ptype") {
		return false
	}
	return strings.Contains(compact(raw), `"__ptype":"Sensitive"`)
}

// compact writes a checked value without white space, its members in the order in which they came: who
// collects a resource sees it. It is only called for values that passed the scanner.
func compact(raw string) string {
	if !strings.ContainsAny(raw, " \n\t\r\\") {
		return raw
	}
	c := scan.Canonical{Scanner: &scan.Scanner{What: "catalog", Src: raw}, Limit: maxCatalogRows, AsWritten: true}
	if c.Value() != nil {
		return "null"
	}
	return string(c.Out)
}

func (p *catalogParser) relate(name, parameter, raw string) {
	for _, other := range refsIn(raw) {
		p.relations = append(p.relations, relation{name, parameter, other})
	}
}

// refsIn lists the strings of a string or of a list, however nested.
func refsIn(raw string) []string {
	var out []string
	s := scan.Scanner{Src: raw}
	var walk func() error
	walk = func() error {
		switch s.Peek() {
		case '"':
			text, err := s.String()
			out = append(out, text)
			return err
		case '[':
			return s.Array(walk)
		default:
			return s.Skip()
		}
	}
	if walk() != nil {
		return nil
	}
	return out
}

func (p *catalogParser) edge() error {
	if len(p.edges) >= maxCatalogRows {
		return p.Fail("it holds more than %d edges", maxCatalogRows)
	}
	e := Edge{Relationship: "contains"}
	err := p.Object(func(key string) error {
		switch key {
		case "source":
			return p.endpoint(&e.Source, key)
		case "target":
			return p.endpoint(&e.Target, key)
		case "relationship":
			return p.Text(&e.Relationship, key)
		default:
			return p.Skip()
		}
	})
	if err != nil {
		return err
	}
	if e.Source == "" || e.Target == "" {
		return fault.New(fault.Invalid, "the catalog cannot be read: an edge lacks its source or target")
	}
	p.edges = append(p.edges, e)
	return nil
}

// endpoint reads one end of an edge: "Type[title]", or {"type", "title"}.
func (p *catalogParser) endpoint(to *string, field string) error {
	if p.Peek() != '{' {
		return p.Text(to, field)
	}
	var kind, title string
	err := p.Object(func(key string) error {
		switch key {
		case "type":
			return p.Text(&kind, key)
		case "title":
			return p.Text(&title, key)
		default:
			return p.Skip()
		}
	})
	*to = ref(kind, title)
	return err
}

// resolve turns relationship metaparameters into edges.
func (p *catalogParser) resolve() {
	for _, r := range p.relations {
		other, ok := p.known[normalRef(r.other)]
		if !ok {
			continue
		}
		switch r.parameter {
		case "before":
			p.edges = append(p.edges, Edge{r.ref, other, "before"})
		case "notify":
			p.edges = append(p.edges, Edge{r.ref, other, "notifies"})
		case "require":
			p.edges = append(p.edges, Edge{other, r.ref, "required-by"})
		case "subscribe":
			p.edges = append(p.edges, Edge{other, r.ref, "subscription-of"})
		}
	}
}

// normalRef makes references comparable: types in lower case, class titles
// without a leading "::" and in lower case, file titles without a closing slash.
func normalRef(text string) string {
	kind, title := splitRef(text)
	kind = strings.ToLower(strings.TrimPrefix(kind, "::"))
	switch kind {
	case "class":
		title = strings.ToLower(strings.TrimPrefix(title, "::"))
	case "file":
		if len(title) > 1 {
			title = strings.TrimRight(title, "/")
		}
	}
	return kind + "[" + title + "]"
}

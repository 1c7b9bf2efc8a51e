package inventory

import (
	"slices"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// relationships are the words that edges may use.
var relationships = [...]string{"contains", "before", "required-by", "notifies", "subscription-of"}

// ParseWireCatalog reads the payload of replace_catalog, versions 6 to 9. Edges are
// taken as they come: the sender has made all relations explicit. Each must be
// between resources of the catalog. The digest names the content. CompiledAt is left
// to the caller.
func ParseWireCatalog[T string | []byte](body T) (Catalog, error) {
	s, err := scan.New("catalog", body, MaxCatalogBytes)
	if err != nil {
		return Catalog{}, err
	}
	p := wireCatalog{catalogParser: catalogParser{Scanner: s, known: map[string]string{}}}
	err = p.Object(p.field)
	if err == nil {
		err = p.End()
	}
	if err != nil {
		return Catalog{}, err
	}
	return p.finish()
}

type wireCatalog struct {
	catalogParser
	envelope envelope
	catalog  Catalog
	listed   bool // there is a list of resources, though it may be empty
}

func (p *wireCatalog) field(key string) error {
	if known, err := p.envelope.field(p.Scanner, key); known {
		return err
	}
	c := &p.catalog
	switch key {
	case "version":
		return p.Text(&c.ConfigVersion, key)
	case "transaction_uuid":
		return p.Text(&c.Transaction, key)
	case "catalog_uuid":
		return p.Text(&c.UUID, key)
	case "code_id":
		return p.Text(&c.CodeID, key)
	case "job_id":
		return p.Text(&c.JobID, key)
	case "resources":
		p.listed = p.Peek() == '['
		return p.List(key, p.resource)
	case "edges":
		return p.List(key, p.edge)
	default:
		return p.Skip()
	}
}

func (p *wireCatalog) finish() (Catalog, error) {
	c := p.catalog
	var err error
	if c.Certname, c.Environment, err = p.envelope.check("catalog"); err != nil {
		return Catalog{}, err
	}
	for name, text := range map[string]string{"version": c.ConfigVersion, "catalog_uuid": c.UUID, "transaction_uuid": c.Transaction} {
		if len(text) > maxWord {
			return Catalog{}, fault.New(fault.Invalid, "the catalog's %q has more than %d bytes", name, maxWord)
		}
	}
	if !p.listed {
		return Catalog{}, fault.New(fault.Invalid, "the catalog has no \"resources\"; it is a list of objects with type and title")
	}
	if c.UUID == "" {
		c.UUID = c.Transaction // formats before 8 know only this one
	}
	c.Received, c.Origin = true, p.envelope.origin
	c.Resources, c.Edges = Distinct(p.resources, p.edges)
	if err := checkEdges(c.Resources, c.Edges); err != nil {
		return Catalog{}, err
	}
	c.Digest = contentDigest(&c)
	return c, nil
}

// maxWord bounds texts that are only kept and shown.
const maxWord = 1024

func checkEdges(resources []Resource, edges []Edge) error {
	names := make(map[string]bool, len(resources))
	for i := range resources {
		names[ref(resources[i].Type, resources[i].Title)] = true
	}
	for _, e := range edges {
		if !slices.Contains(relationships[:], e.Relationship) {
			return fault.New(fault.Invalid, "the catalog cannot be read: the \"relationship\" of an edge is %.40q, not one of %v", e.Relationship, relationships)
		}
		for _, end := range [...]string{e.Source, e.Target} {
			if !names[end] {
				return fault.New(fault.Invalid, "the catalog cannot be read: an edge names %.200q, which is none of its resources", end)
			}
		}
	}
	return nil
}

// contentDigest tells catalogs apart by what they hold, not by which compilation
// they are.
func contentDigest(c *Catalog) fleet.Digest {
	d := newDigester("tutti received catalog 1")
	d.number(int64(len(c.Resources)))
	for i := range c.Resources {
		r := &c.Resources[i]
		d.texts(r.Type, r.Title, r.File, string(r.Parameters))
		d.list(r.Tags)
		d.number(int64(r.Line))
		d.flags(r.Exported)
	}
	for _, e := range c.Edges {
		d.texts(e.Source, e.Target, e.Relationship)
	}
	return d.sum()
}

package diff

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// The bounds of a catalog.
const (
	MaxCatalogBytes = 256 << 20
	maxRows         = 500_000 // resources, and edges
)

// Catalog is a catalog that can be compared. It refers to the document that it was
// read from.
type Catalog struct {
	name, environment string
	classes, tags     []string // sorted, each once
	resources         []resource
	edges             []edge
	files             map[string]map[string]file // of static catalogs: by title of the File and path below it
	sent              bool                       // by who asks; nothing that it says is known to be true
}

// Name is the node that the catalog was compiled for.
func (c *Catalog) Name() string { return c.name }

// Environment is the environment that it was compiled in.
func (c *Catalog) Environment() string { return c.environment }

// identity names a resource. A node may export a resource and have it itself, too;
// what counts is the list that it stands in, not what it says of itself.
type identity struct {
	typ, title string
	exported   bool
}

// resource is one resource as it stands in its document.
type resource struct {
	identity
	raw jsontext.Value
}

// edge says that one resource contains another, each "Type[title]".
type edge struct{ source, target string }

// Parse reads a catalog: a stored document (its catalog, and what it exports), or a
// catalog as agents get it. Invalid for anything else; the error quotes nothing of it.
func Parse(document []byte) (*Catalog, error) {
	if len(document) > MaxCatalogBytes {
		return nil, fault.New(fault.Invalid, "the catalog has %d bytes, at most %d are read", len(document), MaxCatalogBytes)
	}
	c := &Catalog{}
	p := parser{text: document, dec: newDecoder(document), Catalog: c, seen: map[identity]bool{}}
	if err := p.document(); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "this is no catalog: it cannot be read at byte %d", p.dec.InputOffset())
	}
	if !p.found {
		return nil, fault.New(fault.Invalid, "this is no catalog: a JSON object with a list of resources is expected")
	}
	c.classes, c.tags = setOf(c.classes), setOf(c.tags)
	return c, nil
}

// ParseSent is Parse for a catalog that does not come from our own store but from who
// asks for a difference. It can be the new side only. No blob that it names is read,
// and it cannot be used to guess what a stored catalog hides.
func ParseSent(document []byte) (*Catalog, error) {
	c, err := Parse(document)
	if err != nil {
		return nil, err
	}
	c.sent = true
	return c, nil
}

func setOf(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// parser cuts a document into resources and edges.
type parser struct {
	*Catalog
	text  []byte
	dec   *jsontext.Decoder
	seen  map[identity]bool // Puppet has each once; if not, the first one counts
	found bool              // resources were there
}

var errShape = errors.New("another kind of value is expected here")

func (p *parser) document() error {
	if err := p.object(func(key string) error {
		switch key {
		case "catalog":
			return p.object(p.field)
		case "exported":
			return p.list(func() error { return p.resource(true) })
		default:
			return p.field(key)
		}
	}); err != nil {
		return err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.Join(errShape, err)
	}
	return nil
}

func (p *parser) field(key string) error {
	switch key {
	case "name":
		return p.word(&p.name)
	case "environment":
		return p.word(&p.environment)
	case "classes":
		return p.words(&p.classes)
	case "tags":
		return p.words(&p.tags)
	case "resources":
		p.found = true
		return p.list(func() error { return p.resource(false) })
	case "edges":
		return p.list(p.edge)
	case "metadata":
		return p.metadata()
	case "recursive_metadata":
		return p.recursiveMetadata()
	default:
		return p.dec.SkipValue()
	}
}

// resource notes one resource: its text, and what names it.
func (p *parser) resource(exported bool) error {
	if len(p.resources) >= maxRows {
		return errors.New("it holds too many resources")
	}
	r := resource{identity: identity{exported: exported}}
	start := p.dec.InputOffset()
	err := p.object(func(key string) error {
		switch key {
		case "type":
			return p.word(&r.typ)
		case "title":
			return p.word(&r.title)
		}
		return p.dec.SkipValue()
	})
	if err != nil {
		return err
	}
	if r.typ == "" {
		return errors.New("a resource has no type")
	}
	r.raw = bytes.TrimLeft(p.text[start:p.dec.InputOffset()], ", \t\r\n")
	if !p.seen[r.identity] {
		p.seen[r.identity] = true
		p.resources = append(p.resources, r)
	}
	return nil
}

func (p *parser) edge() error {
	if len(p.edges) >= maxRows {
		return errors.New("it holds too many edges")
	}
	var e edge
	err := p.object(func(key string) error {
		switch key {
		case "source":
			return p.reference(&e.source)
		case "target":
			return p.reference(&e.target)
		default:
			return p.dec.SkipValue()
		}
	})
	p.edges = append(p.edges, e)
	return err
}

// reference reads "Type[title]", or an object with type and title.
func (p *parser) reference(to *string) error {
	if p.dec.PeekKind() != '{' {
		return p.word(to)
	}
	var kind, title string
	err := p.object(func(key string) error {
		switch key {
		case "type":
			return p.word(&kind)
		case "title":
			return p.word(&title)
		default:
			return p.dec.SkipValue()
		}
	})
	*to = kind + "[" + title + "]"
	return err
}

// object calls member for every key of an object; member reads the value.
func (p *parser) object(member func(key string) error) error {
	if token, err := p.dec.ReadToken(); err != nil || token.Kind() != '{' {
		return errors.Join(errShape, err)
	}
	for p.dec.PeekKind() != '}' {
		token, err := p.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := member(token.String()); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

// list calls item for every element of a list; null is an empty one.
func (p *parser) list(item func() error) error {
	switch p.dec.PeekKind() {
	case 'n':
		return p.dec.SkipValue()
	case '[':
	default:
		return errShape
	}
	_, _ = p.dec.ReadToken() // it was peeked
	for p.dec.PeekKind() != ']' {
		if err := item(); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

// word reads a string; null is an empty one.
func (p *parser) word(to *string) error {
	token, err := p.dec.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case '"':
		*to = token.String()
	case 'n':
	default:
		return errShape
	}
	return nil
}

func (p *parser) words(to *[]string) error {
	return p.list(func() error {
		var word string
		err := p.word(&word)
		*to = append(*to, word)
		return err
	})
}

// cut reads a value and returns the part of the text that it is, as the decoder's
// own slice is only lent.
func (p *parser) cut() (jsontext.Value, error) {
	value, err := p.dec.ReadValue()
	end := p.dec.InputOffset()
	return bytes.TrimSpace(p.text[end-int64(len(value)) : end]), err
}

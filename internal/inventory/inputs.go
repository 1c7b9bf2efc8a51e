package inventory

import (
	"context"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// CatalogInputs is what another server looked up while it compiled a node's catalog.
// Puppet Server tells it with every catalog that asked Hiera for a key.
type CatalogInputs struct {
	Origin
	Certname fleet.Certname
	UUID     string // catalog_uuid
	Inputs   []CatalogInput
}

// CatalogInput is one of them.
type CatalogInput struct {
	Type string // hiera
	Name string // the key
}

// InputStore keeps the newest inputs of each node.
type InputStore interface {
	// SaveCatalogInputs replaces a node's inputs, unless newer ones are stored, and
	// creates the node if need be. When it returns they survive a crash.
	SaveCatalogInputs(ctx context.Context, in CatalogInputs) error
	// CatalogInputs returns a node's inputs in the order they were sent in; NotFound
	// if it has none.
	CatalogInputs(ctx context.Context, node fleet.Certname) (CatalogInputs, error)
}

const (
	maxInputBytes = 8 << 20 // of the payload
	maxInputs     = 100_000
)

// ParseWireInputs reads the payload of replace_catalog_inputs: {"certname",
// "catalog_uuid", "producer_timestamp", "inputs": [["hiera", "key"], ...]}.
func ParseWireInputs[T string | []byte](body T) (CatalogInputs, error) {
	s, err := scan.New("catalog inputs", body, maxInputBytes)
	if err != nil {
		return CatalogInputs{}, err
	}
	in, told := CatalogInputs{}, false
	var e envelope
	err = s.Object(func(key string) error {
		if known, err := e.field(s, key); known {
			return err
		}
		switch key {
		case "catalog_uuid":
			return s.Text(&in.UUID, key)
		case "inputs":
			if told = !s.IsNull(); !told {
				return nil
			}
			return s.List(key, func() error { return inputRow(s, &in.Inputs) })
		default:
			return s.Skip()
		}
	})
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return CatalogInputs{}, err
	}
	if !told {
		return CatalogInputs{}, fault.New(fault.Invalid, "the catalog inputs have no \"inputs\" like [[\"hiera\", \"key\"]]")
	}
	in.Certname, _, err = e.check("catalog input")
	in.Origin = e.origin
	return in, err
}

// inputRow reads [type, name].
func inputRow(s *scan.Scanner, to *[]CatalogInput) error {
	if len(*to) >= maxInputs {
		return s.Fail("it lists more than %d inputs", maxInputs)
	}
	if s.Peek() != '[' {
		return s.Unexpected("an input like [\"hiera\", \"key\"]")
	}
	var texts []string
	if err := s.Texts(&texts, "inputs"); err != nil {
		return err
	}
	if len(texts) != 2 {
		return s.Fail("an input has %d texts, not a type and a name", len(texts))
	}
	*to = append(*to, CatalogInput{texts[0], texts[1]})
	return nil
}

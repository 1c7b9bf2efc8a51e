package pxp

import (
	"regexp"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// Catalog and its action Changed are Tutti's own: a server tells a node that it may have another catalog. It
// is a blocking request, whose answer comes before the node has done anything about it.
const (
	Catalog = "catalog"
	Changed = "changed"
)

// When a node applies a catalog that it was told of.
const (
	ApplyScheduled = "scheduled" // when its schedule says so
	ApplyNow       = "now"
)

// CatalogPointer says which catalog a node may have, and what that is stamped with.
type CatalogPointer struct {
	Mode        string    `json:"mode"`    // live, released
	Catalog     string    `json:"catalog"` // SHA-256 of the stored document
	Environment string    `json:"environment"`
	Version     string    `json:"version"` // of the code
	Generation  int64     `json:"generation,omitzero"`
	UUID        string    `json:"uuid"` // catalog_uuid
	CompiledAt  time.Time `json:"compiled_at,omitzero"`
	FactsRead   string    `json:"facts_read,omitzero"` // digest of the list of facts that it read
}

// CatalogChange are the parameters of catalog changed.
type CatalogChange struct {
	CatalogPointer
	Apply string `json:"apply,omitzero"`
}

var environmentForm = regexp.MustCompile(`\A[A-Za-z0-9_]{1,200}\z`)

// ParseCatalogPointer reads what a server says of a node's catalog.
func ParseCatalogPointer(text jsontext.Value) (CatalogPointer, error) {
	var p CatalogPointer
	if err := parse(text, &p); err != nil {
		return p, err
	}
	return p, p.check()
}

// ParseCatalogChange reads the parameters of catalog changed. Without apply it is as scheduled.
func ParseCatalogChange(params jsontext.Value) (CatalogChange, error) {
	var c CatalogChange
	if err := parse(params, &c); err != nil {
		return c, err
	}
	switch c.Apply {
	case "":
		c.Apply = ApplyScheduled
	case ApplyScheduled, ApplyNow:
	default:
		return c, fault.New(fault.Invalid, "field apply: %.80q is none of scheduled and now", c.Apply)
	}
	return c, c.check()
}

func (p CatalogPointer) check() error {
	switch {
	case !sha256Form.MatchString(p.Catalog):
		return fault.New(fault.Invalid, "field catalog: it must be 64 hexadecimal digits in lower case")
	case !environmentForm.MatchString(p.Environment):
		return fault.New(fault.Invalid, "field environment: it must be letters, digits and _")
	case p.Generation < 0:
		return fault.New(fault.Invalid, "field generation: it must not be negative")
	}
	for field, text := range map[string]string{"mode": p.Mode, "version": p.Version, "uuid": p.UUID, "facts_read": p.FactsRead} {
		if err := bounded(field, text, MaxNameBytes); err != nil {
			return err
		}
	}
	if p.UUID == "" {
		return missing("uuid", "the catalog's own")
	}
	return nil
}

// PuppetCatalog is a catalog that a Puppet run applies instead of asking for one. Only the node's own
// agent says so.
type PuppetCatalog struct {
	Document    string `json:"document"` // path of the stored document
	Digest      string `json:"digest"`   // its SHA-256
	Node        string `json:"node"`     // whose it is
	Environment string `json:"environment"`
	Version     string `json:"version"`
	UUID        string `json:"uuid"`
}

// More error types of a Puppet run.
const (
	CatalogDamaged = "catalog_damaged"       // the document is not what its digest says; Puppet was not run
	CatalogForeign = "catalog_of_other_node" // Puppet is configured for another certname; it was not run
	OtherCatalog   = "other_catalog"         // the report is not of the catalog that was to be applied
)

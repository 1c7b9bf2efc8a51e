package deliver

import (
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Mode is how a node comes to its catalogs.
type Mode string

// The modes.
const (
	Live     Mode = "live"     // the newest catalog, at once
	Released Mode = "released" // only what was released
)

// ParseMode reads a mode.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case Live, Released:
		return m, nil
	}
	return "", fault.New(fault.Invalid, "a mode is %s or %s, not %.40q", Live, Released, text)
}

// Catalog is a stored catalog and what it is stamped with.
type Catalog struct {
	Digest      fleet.Digest // of the document
	Environment fleet.Environment
	Version     fleet.Digest // of the code
	UUID        string       // catalog_uuid: reports name it
	Compilation int64        // whose row gave it
	CompiledAt  time.Time
}

// Generation is the n-th catalog that was released to a node.
type Generation struct {
	Node   fleet.Certname
	Number int64 // 1, 2, 3, ... for each node
	Catalog
	Release  int64 // of which release; 0: of none
	At       time.Time
	By       string // who released it
	Why      string
	Promoted bool // the inventory shows it
}

// Pin keeps a node at its generation.
type Pin struct {
	At  time.Time // zero: it is not pinned
	By  string
	Why string
}

// Standing is what is stored of a node's delivery.
type Standing struct {
	Node   fleet.Certname
	Own    Mode        // set for this node; empty: it is not
	Force  Mode        // in force since somebody last asked; Live of a node that nobody asked about
	Newest *Catalog    // that was compiled here and is not staged; nil: none
	Head   *Generation // the newest generation; nil: none
	Pin    Pin
}

// base is the number of the newest generation.
func (s Standing) base() int64 {
	if s.Head == nil {
		return 0
	}
	return s.Head.Number
}

// Held is the version of code that the catalog is of which a node may have.
type Held struct {
	Node     fleet.Certname
	Version  fleet.Digest
	Released bool // it is in released mode
}

// Pointer is what a node may have now, as it is told.
type Pointer struct {
	Mode        Mode              `json:"mode"`
	Catalog     fleet.Digest      `json:"catalog"`
	Environment fleet.Environment `json:"environment"`
	Version     fleet.Digest      `json:"version"`
	Generation  int64             `json:"generation,omitempty"`
	UUID        string            `json:"uuid"`
	CompiledAt  time.Time         `json:"compiled_at"`
	// FactsRead names the list of facts that the catalog read.
	FactsRead fleet.Digest `json:"facts_read,omitempty"`
}

// pointer is what s gives; ok is false when that is nothing.
func (s Standing) pointer() (p Pointer, ok bool) {
	p.Mode = s.Force
	c := s.Newest
	if s.Force == Released {
		c = nil
		if s.Head != nil {
			c, p.Generation = &s.Head.Catalog, s.Head.Number
		}
	}
	if c == nil {
		return p, false
	}
	p.Catalog, p.Environment, p.Version, p.UUID, p.CompiledAt = c.Digest, c.Environment, c.Version, c.UUID, c.CompiledAt.UTC()
	return p, true
}

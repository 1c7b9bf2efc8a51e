package appgraph

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Store knows what the newest catalogs of active nodes hold. Its methods may be called concurrently.
type Store interface {
	// Declared is the resources that declare applications and components, by node, type and title;
	// at most MaxDeclared: Invalid if there are more.
	Declared(ctx context.Context) ([]Declared, error)
	// Collections is who collected what type of resource from which other node, by collector,
	// exporter and type; at most MaxCollections: Invalid if there are more. Exporters may be gone.
	Collections(ctx context.Context) ([]Collection, error)
}

// The bounds of a fleet's graph.
const (
	MaxDeclared    = 100_000
	MaxCollections = 1_000_000
)

// The types of the resources that declare.
const (
	ApplicationType = "Tutti::Application"
	ComponentType   = "Tutti::Component"
)

// Declared is one resource of a node's catalog that declares an application or a component.
type Declared struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Type        string
	Title       string
	Parameters  json.RawMessage // object
}

// Collection is what one node collected from another one of one type.
type Collection struct {
	Collector, Exporter fleet.Certname
	Type                string
	Title               string // the first one
	Count               int
}

package puppet

import (
	"context"
	"crypto/x509"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Ask is one request of a node for its catalog.
type Ask struct {
	Node fleet.Certname
	// Environment is the one that the node gets; Requested is the one it named.
	Environment fleet.Environment
	Requested   fleet.Environment
	Transaction string // transaction_uuid; empty when the agent sent none
	JobID       string // empty for a run that no job started
	// Stays is set when the agent cannot be told to come back: see ComesBack. It
	// has to be kept on the line until its catalog is there.
	Stays bool
	// CheckEnvironment is set when the agent would rather have an empty catalog
	// than one of another environment. When the two environments above differ,
	// such a request was answered already and never becomes an Ask.
	CheckEnvironment bool
	// Packed is set when the agent takes gzip.
	Packed bool
	// Static is set when the agent takes file metadata inside the catalog, with
	// one of ChecksumTypes, best first.
	Static        bool
	ChecksumTypes []string
	// Facts say which facts came with the request, as they were stored; their values
	// are left out, since many may wait for catalogs at once. Nil when none came.
	Facts *inventory.FactSet
	// Trusted is the node's $trusted, one JSON object.
	Trusted json.RawMessage
	// Certificate is the node's own; nil when an administrator asks for the node.
	Certificate *x509.Certificate
}

// Answer is a catalog as it goes to the node.
type Answer struct {
	Document    json.RawMessage // the whole catalog in Puppet's wire format
	Packed      bool            // Document is in gzip's format; only for who takes it
	Rich        bool            // the document holds values that plain JSON has no types for
	Environment fleet.Environment
	CodeID      string
}

// Catalogs gives nodes their catalogs. Catalog may be called concurrently and
// may wait a moment for a compilation. It returns Unavailable (with RetryAfter)
// when the catalog is not ready yet, *compile.Error when the node's code or
// facts give no catalog, NotFound for an environment without code. The caller
// may not change the document.
type Catalogs interface {
	Catalog(ctx context.Context, ask Ask) (Answer, error)
}

// Environments decides which environment a node gets.
type Environments interface {
	// NodeEnvironment returns the environment of a node that asked for requested.
	// An empty requested stands for a node that did not ask. NotFound when
	// requested does not exist.
	NodeEnvironment(ctx context.Context, node fleet.Certname, requested fleet.Environment) (fleet.Environment, error)
	// ListEnvironments lists all environments with their settings.
	ListEnvironments(ctx context.Context) ([]EnvironmentSettings, error)
}

// EnvironmentSettings is what other programs may know of an environment.
type EnvironmentSettings struct {
	Name          fleet.Environment
	ModulePath    []string
	Manifest      string // empty: not known
	ConfigVersion string
}

// Trees finds trees; *code.Library is one. Both methods may be called
// concurrently, and return NotFound for an environment or version that does not
// exist. Tree may know versions that were never deployed.
type Trees interface {
	Current(ctx context.Context, env fleet.Environment) (*code.Tree, error)
	Tree(ctx context.Context, env fleet.Environment, id code.VersionID) (*code.Tree, error)
}

// Releases knows which nodes are not given the current files.
type Releases interface {
	// Released says which files a node is given, whatever is deployed: those that its
	// catalog was made of. ok is false for a node that is given the current ones.
	Released(ctx context.Context, node fleet.Certname) (r Release, ok bool, err error)
}

// Release is the code that a node is held at.
type Release struct {
	Environment fleet.Environment
	Version     code.VersionID
}

// Versions lists what was deployed; a code.Store is one.
type Versions interface {
	Versions(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error)
}

// Truster makes a node's $trusted, one JSON object, out of its certificate. With
// a nil certificate it takes the one that was issued to the node.
type Truster interface {
	Trusted(ctx context.Context, node fleet.Certname, certificate *x509.Certificate) (json.RawMessage, error)
}

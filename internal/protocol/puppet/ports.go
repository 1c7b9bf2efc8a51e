package puppet

import (
	"context"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Checkin is the flow of a node that asks for its catalog; a checkin.Service is one. All methods may be called
// concurrently.
type Checkin interface {
	// Resolve finds out everything about a request, and stores its facts. NotFound for an environment that does not exist.
	Resolve(ctx context.Context, r checkin.Request) (checkin.Visit, error)
	// Elsewhere says whether an agent is only to be told that its environment is another one.
	Elsewhere(ctx context.Context, v checkin.Visit) (bool, error)
	// Catalog may wait a moment for a compilation. It returns Unavailable (with RetryAfter) when the catalog is not ready
	// yet, *compile.Error when the node's code or facts give no catalog, NotFound for an environment without code. The
	// caller may not change the document.
	Catalog(ctx context.Context, v checkin.Visit) (checkin.Answer, error)
	// SaveFacts stores facts that come apart from a catalog request.
	SaveFacts(ctx context.Context, r checkin.Request) error
	// HeldAt says which files a node is given, whatever is deployed; ok is false for a node that is given the current ones.
	HeldAt(ctx context.Context, node fleet.Certname) (c checkin.Code, ok bool, err error)
}

// Places decides which environment a node gets; checkin.Environments is one.
type Places interface {
	// Of is the place of a node that asked for requested. An empty requested stands for a node that did not ask. NotFound
	// when requested does not exist.
	Of(ctx context.Context, node fleet.Certname, requested fleet.Environment) (checkin.Place, error)
}

// Environments lists all environments with their settings.
type Environments interface {
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

// Versions lists what was deployed; a code.Store is one.
type Versions interface {
	Versions(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error)
}

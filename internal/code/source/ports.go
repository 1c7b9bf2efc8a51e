package source

import (
	"context"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Row is a source as it is stored.
type Row struct {
	Source
	Sealed []byte // its secrets
}

// Store keeps sources and what is known of their branches. Methods may be called concurrently; each is one transaction. Times are kept to the
// microsecond.
type Store interface {
	// Sources lists the sources by name.
	Sources(ctx context.Context) ([]Row, error)
	// SaveSource keeps a source instead of the one of its name, if there is one.
	SaveSource(ctx context.Context, r Row) error
	// RemoveSource forgets a source and its branches; NotFound if there is none.
	RemoveSource(ctx context.Context, name string) error
	// Branches lists the branches of all sources by environment.
	Branches(ctx context.Context) ([]Branch, error)
	// SaveBranch keeps a branch instead of what is known of its environment.
	SaveBranch(ctx context.Context, b Branch) error
	// RemoveBranch forgets what is known of an environment; that nothing is known of it is no error.
	RemoveBranch(ctx context.Context, env fleet.Environment) error
}

// Repository is a repository that is fetched from.
type Repository interface {
	// Branches asks for the newest commit of each branch. It may be called while a Checkout runs.
	Branches(ctx context.Context) (map[string]string, error)
	// Checkout makes a directory, which is empty or the work tree of another Checkout, a work tree of a branch and returns the commit; NotFound
	// without such a branch.
	Checkout(ctx context.Context, branch, dir string) (commit string, err error)
}

// Repositories opens the repositories of sources.
type Repositories interface {
	// Check refuses a URL that cannot be used, and returns it without a password.
	Check(url string) (shown string, err error)
	Open(s Source) Repository
	// Forget removes what is kept of a source's repository.
	Forget(name string) error
}

// Modules resolves Puppetfiles.
type Modules interface {
	// Install adds the modules of a work tree's Puppetfile to it, if it has one.
	Install(ctx context.Context, dir string) error
}

// Deployer makes versions of environments: after the check that every deploy has.
type Deployer interface {
	Deploy(ctx context.Context, d code.Deployment) (code.Version, error)
	// Remove deletes an environment.
	Remove(ctx context.Context, env fleet.Environment) error
}

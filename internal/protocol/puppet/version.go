package puppet

import (
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	// recentVersions is how far back agents may ask for content: those that run
	// from a cached catalog can be behind.
	recentVersions = 1000
	// rememberedVersions bounds what is known without asking the rows.
	rememberedVersions = 4096
)

type deployment struct {
	env fleet.Environment
	id  code.VersionID
}

// deployedVersions remembers which versions an environment had; that never
// becomes untrue while it matters.
type deployedVersions struct {
	mu    sync.Mutex
	known map[deployment]struct{}
}

// version finds a tree by its version, which must have been deployed to the
// environment. A manifest alone proves nothing: it is a blob like those that
// every node may store in the file bucket, and could name any other blob.
func (fs *files) version(c *call, id code.VersionID) (*code.Tree, error) {
	if !fs.deployed.has(deployment{c.env, id}) {
		versions, err := fs.versions.Versions(c.ctx(), c.env, recentVersions)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(versions, func(v code.Version) bool { return v.ID == id }) {
			return nil, fault.New(fault.NotFound, "version %s was not deployed to %s", id.Short(), c.env)
		}
		fs.deployed.add(deployment{c.env, id})
	}
	return fs.trees.Tree(c.ctx(), c.env, id)
}

func (d *deployedVersions) has(one deployment) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.known[one]
	return ok
}

func (d *deployedVersions) add(one deployment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= rememberedVersions {
		clear(d.known)
	}
	d.known[one] = struct{}{}
}

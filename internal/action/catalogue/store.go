package catalogue

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Agent is what a node's agent says of itself.
type Agent struct {
	Node    fleet.Certname
	Set     fleet.Digest // of its modules
	Version string
	OS      string // as Go calls it
	Arch    string
	Told    time.Time // since when it says so
}

// Described is the metadata of a module in short.
type Described struct {
	Digest      fleet.Digest
	Name        string
	Version     string
	Provider    action.Provider
	Description string
	Known       time.Time // since when
	Bytes       int64     // of the metadata
}

// Metadata is what a module says of itself, as action.Module.Text has it.
type Metadata struct {
	Described
	Text []byte
}

// Known is everything that is stored, but texts.
type Known struct {
	Agents  []Agent
	Sets    map[fleet.Digest]action.Set
	Modules []Described
}

// Change is what is written together.
type Change struct {
	ForgetSets    []fleet.Digest
	ForgetModules []fleet.Digest
	Sets          map[fleet.Digest]action.Set
	Modules       []Metadata
	Agents        []Agent
}

func (c Change) empty() bool {
	return len(c.ForgetSets)+len(c.ForgetModules)+len(c.Sets)+len(c.Modules)+len(c.Agents) == 0
}

// Store keeps the catalogue. Its methods may be called concurrently. A row of an agent ends when its node is purged.
type Store interface {
	// Catalogue is what is stored, at one moment.
	Catalogue(ctx context.Context) (Known, error)
	// SaveCatalogue makes a change, in one transaction. First an agent takes the place of what was known of its node; then it forgets, but no set that an
	// agent has, and no module that is in a set; then it adds: a set or a module that is there already stays as it is. It keeps nothing of c.
	SaveCatalogue(ctx context.Context, c Change) error
	// Stamp is another one whenever something else is stored.
	Stamp(ctx context.Context) (string, error)
	// Metadata is the text of a module's description. NotFound: there is none.
	Metadata(ctx context.Context, digest fleet.Digest) ([]byte, error)
}

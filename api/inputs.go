package api

import "time"

// CatalogInputs is what a node's newest catalog was made of.
type CatalogInputs struct {
	Name        string          `json:"name"`
	Environment string          `json:"environment"`
	Version     string          `json:"version"` // of the code that the catalog is given for
	Catalog     string          `json:"catalog"` // its digest
	CompiledAt  time.Time       `json:"compiled_at"`
	Digest      string          `json:"digest"`        // of the inputs
	Engine      string          `json:"engine"`        // the compiler
	Stands      bool            `json:"stands"`        // a node that asks now is given this catalog, without a compilation
	Why         string          `json:"why,omitempty"` // it does not
	Volatile    []string        `json:"volatile,omitempty"`
	Values      []InputValue    `json:"values"`
	Questions   []InputQuestion `json:"questions"`
	Sources     InputSources    `json:"sources"`
	Stops       []ReuseStop     `json:"stops"`
	Follows     *CatalogFollows `json:"follows,omitempty"` // the catalog came of what others export, or of an answer
}

// CatalogFollows says that a node is compiled because of others.
type CatalogFollows struct {
	Rounds    int        `json:"rounds"` // compilations in a row without another cause
	Because   string     `json:"because"`
	StoppedAt *time.Time `json:"stopped_at,omitempty"` // it did not settle, and is not compiled ahead any more until something else changes
}

// InputValue is a fact, or a value of trusted data or server facts, that was read.
type InputValue struct {
	Pointer string `json:"pointer"`        // a JSON pointer (RFC 6901)
	Seen    bool   `json:"seen,omitempty"` // only its presence counts; with a slash at the end, only the names of its members
	There   bool   `json:"there"`
}

// InputQuestion is one that the code asked of the inventory.
type InputQuestion struct {
	Kind string `json:"kind"` // collect or query
	Text string `json:"text"`
	Rows int    `json:"rows"`
	// Refused says that the question had no answer; the code may have gone on without one.
	Refused bool `json:"refused,omitempty"`
}

// InputSources is what was read of the environment's files, by how it was read.
// Paths are below the environment.
type InputSources struct {
	Files    []string `json:"files"`    // read, or looked for and not there
	Lists    []string `json:"lists"`    // directories whose names were listed
	Names    []string `json:"names"`    // directories with all names below
	Trees    []string `json:"trees"`    // files and directories with all content below
	Modules  []string `json:"modules"`  // names of modules that were looked for
	Anywhere []string `json:"anywhere"` // paths that were looked for in all modules
}

// ReuseStop is a catalog that was used again and should not have been.
type ReuseStop struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	Reused  string    `json:"reused"` // the digest of the catalog that was used again
	Fresh   string    `json:"fresh"`  // of what a compilation gave
	Differs []string  `json:"differs"`
	Inputs  string    `json:"inputs"` // the digest of the inputs that were taken to hold
}

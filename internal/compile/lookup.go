package compile

import (
	"context"
	"encoding/json"
)

// Lookup is a question to Hiera.
type Lookup struct {
	Keys    []string // the first that is found counts
	Merge   *Merge   // nil: as the data's lookup_options say
	Default *string  // when nothing is found
	Explain bool     // say where each value is from
	Compile bool     // compile the node's catalog before, so that variables of manifests have values
}

// Merge says how values of several layers become one.
type Merge struct {
	Strategy         string // first, unique, hash, deep
	KnockoutPrefix   string // the rest of them is of deep
	SortMergedArrays bool
	MergeHashArrays  bool
}

// Looked is the answer to a Lookup.
type Looked struct {
	Found       bool            // a value, or the default
	Value       json.RawMessage // nil if nothing was found
	Hidden      bool            // some of it is not shown: it is Sensitive, or eyaml decrypted it
	Explanation string          // in Puppet's words
	Problem     string          // the mistake in the data because of which there is no value, of an explanation; empty: the key was not found
	Logs        []Log
}

// Looker asks Hiera. It may be called concurrently; the faults are those of Compiler.Compile.
type Looker interface {
	Lookup(ctx context.Context, order Order, l Lookup) (Looked, error)
}

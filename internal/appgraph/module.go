package appgraph

import (
	"embed"
	"io/fs"
)

//go:embed module
var module embed.FS

// Module is the directory tutti: the Puppet module with whose defined types catalogs declare
// applications. Defined types are containers: nothing of them reaches a node's providers.
func Module() fs.FS {
	sub, err := fs.Sub(module, "module")
	if err != nil {
		panic(err) // a mistake in this file
	}
	return sub
}

package task

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
)

// File is a file of a module.
type File struct {
	Module string
	Kind   string // the directory of the module: tasks, files, lib, scripts, types
	Path   string // below it
	Digest fleet.Digest
	Bytes  int64
}

// Name is how metadata and nodes call the file: module/kind/path.
func (f File) Name() string { return f.Module + "/" + f.Kind + "/" + f.Path }

// Version is one version of an environment's code. Its methods may be called
// concurrently.
type Version interface {
	// Modules lists the modules that the environment sees, by name.
	Modules() []string
	// Files lists all files below a directory of a module, by path; nil if there
	// is no such module or directory.
	Files(module, kind string) []File
	// Read reads a file whole. Files of more than limit bytes are Invalid.
	Read(ctx context.Context, f File, limit int64) ([]byte, error)
}

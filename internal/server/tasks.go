package server

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/task"
)

// codeTasks finds tasks in the code.
type codeTasks struct {
	library *code.Library
	blobs   cas.Store
}

// TaskVersion is rest.Tasks.
func (d codeTasks) TaskVersion(ctx context.Context, env fleet.Environment) (fleet.Digest, task.Version, error) {
	version, err := d.library.Refresh(ctx, env)
	if err != nil {
		return "", nil, err
	}
	tree, err := d.library.Tree(ctx, env, version.ID)
	return version.ID, taskVersion{tree, d.blobs}, err
}

// taskVersion is a tree as tasks see it.
type taskVersion struct {
	tree  *code.Tree
	blobs cas.Store
}

// Modules is task.Version.
func (v taskVersion) Modules() []string {
	var names []string
	for _, module := range v.tree.Modules() {
		names = append(names, module.Name)
	}
	slices.Sort(names)
	return names
}

// Files is task.Version.
func (v taskVersion) Files(module, kind string) []task.File {
	var files []task.File
	for _, f := range v.tree.ModuleFiles(module, kind) {
		files = append(files, task.File{Module: module, Kind: kind, Path: f.Path, Digest: f.File.Digest, Bytes: f.File.Size})
	}
	return files
}

// Read is task.Version.
func (v taskVersion) Read(ctx context.Context, f task.File, limit int64) ([]byte, error) {
	return cas.Bytes(ctx, v.blobs, f.Digest, limit)
}

// Package tasktest has a version of code in memory, for tests of tasks.
package tasktest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/task"
)

// Version is a task.Version: content by module/kind/path.
type Version map[string]string

var _ task.Version = Version{}

// Modules implements task.Version.
func (v Version) Modules() []string {
	var list []string
	for name := range v {
		module, _, _ := strings.Cut(name, "/")
		list = append(list, module)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Files implements task.Version.
func (v Version) Files(module, kind string) []task.File {
	var list []task.File
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if below, ok := strings.CutPrefix(name, module+"/"+kind+"/"); ok {
			list = append(list, task.File{Module: module, Kind: kind, Path: below, Digest: fleet.DigestOf([]byte(v[name])), Bytes: int64(len(v[name]))})
		}
	}
	return list
}

// Read implements task.Version.
func (v Version) Read(_ context.Context, f task.File, limit int64) ([]byte, error) {
	if f.Bytes > limit {
		return nil, fault.New(fault.Invalid, "%s has more than %d bytes", f.Name(), limit)
	}
	return []byte(v[f.Name()]), nil
}

package code

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
)

// Metadatas describes everything at and below a path of a mount, the root first
// (relative path "."), directories before what is in them, names in order.
//
// The mounts plugins, pluginfacts and locales join the directories of all
// modules, whatever the path says; what two of them hold is taken from the first
// on the module path. They always exist: when no module has such a directory,
// the answer is a root and nothing below.
//
// NotFound when nothing is at the path; Invalid for more results than opt allows.
func (t *Tree) Metadatas(ctx context.Context, mount, path string, opt SearchOptions) ([]Metadata, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	if kind, ok := unionMounts[mount]; ok {
		return t.union(ctx, kind, opt)
	}
	at, err := t.find(mount, path)
	if err != nil {
		return nil, err
	}
	s := search{tree: t, opt: opt}
	if err := s.add(ctx, at); err != nil {
		return nil, err
	}
	return s.found, nil
}

func (t *Tree) union(ctx context.Context, kind string, opt SearchOptions) ([]Metadata, error) {
	s := search{tree: t, opt: opt, seen: map[string]bool{}}
	for _, module := range t.modules {
		dir := module.Path + "/" + kind
		at := place{node: t.lookup(t.root, dir), path: dir}
		if t.follow(at.node) == nil {
			continue
		}
		if err := s.add(ctx, at); err != nil {
			return nil, err
		}
	}
	if len(s.found) == 0 {
		return t.emptyUnion(ctx, opt)
	}
	return s.found, nil
}

// emptyUnion is a root without anything below: the first directory of the
// module path that is there stands for it, or the directory of all code.
func (t *Tree) emptyUnion(ctx context.Context, opt SearchOptions) ([]Metadata, error) {
	root, virtual := t.root, virtualRoot
	for _, dir := range t.manifest.ModulePath {
		if n := t.lookup(t.root, dir); t.follow(n) != nil {
			root, virtual = n, t.virtual(dir)
			break
		}
	}
	dot := "."
	m, err := t.describe(ctx, root, virtual, &dot, opt.MetadataOptions)
	if err != nil {
		return nil, err
	}
	return []Metadata{m}, nil
}

// search collects what one request finds.
type search struct {
	tree  *Tree
	opt   SearchOptions
	seen  map[string]bool // relative paths, when several directories are joined
	found []Metadata

	base    string // the virtual path that results are relative to
	entries int    // below the root that is being searched
}

func (s *search) add(ctx context.Context, at place) error {
	s.base, s.entries = s.tree.virtual(at.path), 0
	if err := s.report(ctx, at.node, "."); err != nil {
		return err
	}
	if !s.opt.Recurse {
		return nil
	}
	if err := s.descend(ctx, at.node, "", 1); err != nil {
		return err
	}
	if s.opt.MaxFiles > 0 && s.entries > s.opt.MaxFiles {
		return fault.New(fault.Invalid, "the directory %q contains %s, which exceeds the limit of %d"+
			" that max_files sets for it", s.base, fault.Count(s.entries, "entry"), s.opt.MaxFiles)
	}
	return nil
}

// descend reports what is in a directory, to the depth that is asked for.
func (s *search) descend(ctx context.Context, dir *node, prefix string, depth int) error {
	if s.opt.RecurseLimit > 0 && depth > s.opt.RecurseLimit {
		return nil
	}
	if s.opt.Links == followLinks {
		dir = s.tree.follow(dir)
	}
	if dir == nil || !dir.isDir() {
		return nil
	}
	for _, child := range dir.children {
		if s.ignored(child.name) {
			continue
		}
		// A link followed to a directory above it would go on for ever.
		if s.entries++; s.entries > maxSearchResults || depth > maxDepth {
			return fault.New(fault.Invalid, "the search below %q finds no end: do links lead in a circle?", s.base)
		}
		if err := s.report(ctx, child, prefix+child.name); err != nil {
			return err
		}
		if err := s.descend(ctx, child, prefix+child.name+"/", depth+1); err != nil {
			return err
		}
	}
	return nil
}

// maxDepth is how deep a search goes; no path is longer.
const maxDepth = maxPathBytes / 2

func (s *search) ignored(name string) bool {
	return slices.ContainsFunc(s.opt.Ignore, func(pattern string) bool { return fnmatch(pattern, name) })
}

func (s *search) report(ctx context.Context, n *node, relative string) error {
	if s.seen != nil {
		if s.seen[relative] {
			return nil
		}
		s.seen[relative] = true
	}
	m, err := s.tree.describe(ctx, n, s.base, &relative, s.opt.MetadataOptions)
	if err != nil {
		return err
	}
	s.found = append(s.found, m)
	return nil
}

package code

import (
	"path"
	"slices"
	"strings"
)

// Changes is how two versions differ: each path under every way of reading files
// that notices it. Paths are below the root; the root itself is ".".
type Changes struct {
	All      bool            // all is different: nothing can be compared
	Files    map[string]bool // files with other content; files and directories that came or went
	Lists    map[string]bool // directories in which a name came or went
	Names    map[string]bool // directories below which one did
	Trees    map[string]bool // files that differ, and every directory above one
	Modules  map[string]bool // modules that are in another directory, came or went
	Anywhere map[string]bool // paths below modules at which a file differs
}

// Diff compares two versions. With another module path, or where there are symbolic
// links, a path may mean something else, and another engine may make something else of all: then all is different.
func Diff(from, to *Tree) Changes {
	c := Changes{
		Files: map[string]bool{}, Lists: map[string]bool{}, Names: map[string]bool{},
		Trees: map[string]bool{}, Modules: map[string]bool{}, Anywhere: map[string]bool{},
	}
	if from.hasLinks || to.hasLinks || from.manifest.Engine != to.manifest.Engine || !slices.Equal(from.manifest.ModulePath, to.manifest.ModulePath) {
		c.All = from.id != to.id
		return c
	}
	d := differ{changes: &c, modulePath: to.manifest.ModulePath}
	d.directories(from.root, to.root)
	for name, dir := range from.byName {
		c.Modules[name] = to.byName[name] == nil || to.byName[name].path != dir.path
	}
	for name := range to.byName {
		if from.byName[name] == nil {
			c.Modules[name] = true
		}
	}
	return c
}

type differ struct {
	changes    *Changes
	modulePath []string
}

// directories compares what two directories hold; one of them may be nil.
func (d differ) directories(from, to *node) {
	var older, newer []*node
	if from != nil {
		older = from.children
	}
	if to != nil {
		newer = to.children
	}
	for len(older) > 0 || len(newer) > 0 {
		switch {
		case len(newer) == 0 || len(older) > 0 && older[0].name < newer[0].name:
			d.pair(older[0], nil)
			older = older[1:]
		case len(older) == 0 || newer[0].name < older[0].name:
			d.pair(nil, newer[0])
			newer = newer[1:]
		default:
			d.pair(older[0], newer[0])
			older, newer = older[1:], newer[1:]
		}
	}
}

// pair compares two nodes of one path; one of them may be nil.
func (d differ) pair(from, to *node) {
	switch {
	case from == nil || to == nil || from.file.Kind != to.file.Kind:
		d.note(cmpNode(from, to), true)
	case from.file != to.file:
		d.note(to, false)
	}
	if from != nil && !from.isDir() {
		from = nil
	}
	if to != nil && !to.isDir() {
		to = nil
	}
	if from != nil || to != nil {
		d.directories(from, to)
	}
}

func cmpNode(from, to *node) *node {
	if to != nil {
		return to
	}
	return from
}

// note says that the node at a path differs; named, if it came, went or became of
// another kind.
func (d differ) note(n *node, named bool) {
	p := n.path
	d.changes.Files[p], d.changes.Trees[p] = true, true
	if named {
		d.changes.Lists[path.Dir(p)], d.changes.Names[p] = true, true
	}
	for up := path.Dir(p); ; up = path.Dir(up) {
		d.changes.Trees[up] = true
		if named {
			d.changes.Names[up] = true
		}
		if up == "." {
			break
		}
	}
	for _, dir := range d.modulePath {
		if below, ok := strings.CutPrefix(p, dir+"/"); ok {
			if _, rel, ok := strings.Cut(below, "/"); ok {
				d.changes.Anywhere[rel] = true
			}
		}
	}
}

package code

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Tree is one version of an environment, ready to be asked. It is never
// changed after it is made and may be used concurrently. Apart from checksums
// that a manifest does not hold, its answers need no I/O.
type Tree struct {
	id        VersionID
	env       fleet.Environment
	at        time.Time // when it was deployed; what mtime and ctime tell
	manifest  Manifest
	root      *node
	modules   []Module
	byName    map[string]*node // module directories
	checksums *checksums
	hasLinks  bool
}

// Module is a module that an environment sees.
type Module struct {
	Name string
	Path string // of its directory, below the environment's root
}

// node is a file or directory of a tree.
type node struct {
	name     string
	path     string // below the root; "" for the root
	file     File   // Kind Dir for every directory
	children []*node
	parent   *node
}

func newTree(id VersionID, env fleet.Environment, at time.Time, m Manifest, sums *checksums) *Tree {
	t := &Tree{id: id, env: env, at: at, manifest: m, root: grow(m.Files), byName: map[string]*node{}, checksums: sums}
	t.hasLinks = slices.ContainsFunc(m.Files, func(f File) bool { return f.Kind == Link })
	for _, dir := range m.ModulePath {
		t.addModules(dir)
	}
	return t
}

// grow makes nodes of a sorted list of files.
func grow(files []File) *node {
	root := &node{file: File{Kind: Dir}}
	dirs := map[string]*node{".": root, "": root}
	var dirOf func(p string) *node
	dirOf = func(p string) *node {
		if dir, ok := dirs[p]; ok {
			return dir
		}
		dir := dirOf(path.Dir(p)).add(File{Path: p, Kind: Dir})
		dirs[p] = dir
		return dir
	}
	for _, f := range files {
		if f.Kind == Dir {
			dirOf(f.Path)
			continue
		}
		dirOf(path.Dir(f.Path)).add(f)
	}
	for _, dir := range dirs {
		slices.SortFunc(dir.children, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	}
	return root
}

func (n *node) add(f File) *node {
	child := &node{name: path.Base(f.Path), path: f.Path, file: f, parent: n}
	n.children = append(n.children, child)
	return child
}

func (n *node) child(name string) *node {
	i, ok := slices.BinarySearchFunc(n.children, name, func(c *node, name string) int { return cmp.Compare(c.name, name) })
	if !ok {
		return nil
	}
	return n.children[i]
}

func (n *node) isDir() bool { return n.file.Kind == Dir }

// addModules adds the modules of a directory that are not there yet: the first
// one on the module path wins.
func (t *Tree) addModules(dir string) {
	base := t.resolve(t.root, dir)
	if base == nil {
		return
	}
	for _, child := range base.children {
		target := t.follow(child)
		if target == nil || !target.isDir() || !isModuleName(child.name) || t.byName[child.name] != nil {
			continue
		}
		t.byName[child.name] = target
		t.modules = append(t.modules, Module{Name: child.name, Path: dir + "/" + child.name})
	}
}

// isModuleName is Puppet's rule for directories on a module path.
func isModuleName(name string) bool {
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// ID is the version's name.
func (t *Tree) ID() VersionID { return t.id }

// Environment is the environment that the tree was asked for.
func (t *Tree) Environment() fleet.Environment { return t.env }

// DeployedAt is when the version became the environment's.
func (t *Tree) DeployedAt() time.Time { return t.at }

// Manifest is the list of all files. It is shared: nobody may change it.
func (t *Tree) Manifest() Manifest { return t.manifest }

// Modules lists the modules in the order of the module path, by name within
// each of its directories.
func (t *Tree) Modules() []Module { return slices.Clone(t.modules) }

// Lookup finds a file, link or directory by its path below the environment's
// root, without following a link that is its last part.
func (t *Tree) Lookup(p string) (File, bool) {
	n := t.lookup(t.root, p)
	if n == nil {
		return File{}, false
	}
	return n.file, true
}

// maxLinks is how many links one path may pass, as in the kernel.
const maxLinks = 40

// lookup walks down from a directory; links on the way are followed, one at the
// end is not. It returns nil for what is not there.
func (t *Tree) lookup(from *node, p string) *node {
	budget := maxLinks
	return t.walk(from, p, &budget)
}

// resolve is lookup that also follows a link at the end.
func (t *Tree) resolve(from *node, p string) *node { return t.follow(t.lookup(from, p)) }

// follow returns what a link leads to in the end; nil when that is not there.
func (t *Tree) follow(n *node) *node {
	budget := maxLinks
	return t.followWithin(n, &budget)
}

func (t *Tree) followWithin(n *node, budget *int) *node {
	for n != nil && n.file.Kind == Link {
		if *budget--; *budget < 0 {
			return nil
		}
		n = t.walk(n.parent, n.file.Target, budget)
	}
	return n
}

func (t *Tree) walk(n *node, p string, budget *int) *node {
	for name := range strings.SplitSeq(p, "/") {
		n = t.followWithin(n, budget)
		switch {
		case n == nil || !n.isDir():
			return nil
		case name == "" || name == ".":
		case name == "..":
			n = n.parent
		default:
			n = n.child(name)
		}
	}
	return n
}

// staticKinds are the directories of a module whose files may be fetched by
// version.
var staticKinds = []string{"files", "tasks", "scripts", "lib"}

// StaticContent finds a file by its path below the environment's root, as
// static catalogs name it. Denied for anything but the files, tasks, scripts
// and lib directories of modules; NotFound for what is not there.
func (t *Tree) StaticContent(p string) (File, error) {
	if err := CheckPath(p); err != nil {
		return File{}, err
	}
	if !t.isStatic(p) {
		return File{}, fault.New(fault.Denied,
			"%.200q is not below the files, tasks, scripts or lib directory of a module", p)
	}
	return t.contentOf(t.resolve(t.root, p), p)
}

func (t *Tree) isStatic(p string) bool {
	for _, dir := range t.manifest.ModulePath {
		below, ok := strings.CutPrefix(p, dir+"/")
		if !ok {
			continue
		}
		if parts := strings.SplitN(below, "/", 3); len(parts) == 3 && slices.Contains(staticKinds, parts[1]) {
			return true
		}
	}
	return false
}

func (t *Tree) contentOf(n *node, asked string) (File, error) {
	switch {
	case n == nil:
		return File{}, t.notFound(asked)
	case n.isDir():
		return File{}, fault.New(fault.Invalid, "%.200q is a directory", asked)
	}
	return n.file, nil
}

func (t *Tree) notFound(asked string) error {
	return fault.New(fault.NotFound, "could not find %.200q in environment %s", asked, t.env)
}

package groupcheck

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Input is manifests to read.
type Input struct {
	Environment fleet.Environment
	Version     fleet.Digest
	ModulePath  []string
	Files       []code.Source
	Open        func(ctx context.Context, f code.Source) ([]byte, error)
}

// Reader reads manifests as Puppet does. It runs none of what it reads.
type Reader interface {
	// Classes lists by path the classes that each file defines. A file that cannot be parsed is left out.
	Classes(ctx context.Context, in Input) (map[string][]code.Class, error)
}

// Code is versions and what is in them: code.Library.
type Code interface {
	Tree(ctx context.Context, env fleet.Environment, id code.VersionID) (*code.Tree, error)
	Autoload(ctx context.Context, t *code.Tree) (code.Autoload, error)
}

// Versions is what environments are now: code.Store.
type Versions interface {
	Environments(ctx context.Context) ([]code.Version, error)
}

// Facts is what nodes have.
type Facts interface {
	// HavePaths says which of the paths some node has a value at. Without any facts of any node it returns nil.
	HavePaths(ctx context.Context, paths []string) (map[string]bool, error)
}

// Nodes reads the known ones of the nodes, at most inventory.MaxNamed.
type Nodes interface {
	NodesNamed(ctx context.Context, names []fleet.Certname) ([]inventory.Node, error)
}

// Parts is what a Service works with.
type Parts struct {
	Code     Code
	Versions Versions
	Open     func(ctx context.Context, d fleet.Digest) ([]byte, error)
	Reader   Reader
	Facts    Facts
	Nodes    Nodes
}

// Service compares groups.
type Service struct {
	Parts

	mu    sync.Mutex
	files map[file][]code.Class // nil: it cannot be parsed
}

// file is content as one engine reads it.
type file struct {
	engine string
	digest fleet.Digest
}

// The bounds.
const (
	maxFiles        = 50_000           // remembered
	maxPins         = 20_000           // looked up for one answer
	maxEnvironments = 50               // looked through for a class of no certain environment
	maxReading      = 30 * time.Second // of manifests, for one answer
)

// New returns a service.
func New(parts Parts) *Service { return &Service{Parts: parts, files: map[file][]code.Class{}} }

// Doubts says of each of the groups what it names and nothing has; those without doubts are left out. all are all groups.
func (s *Service) Doubts(ctx context.Context, all, groups []classify.Group) (map[classify.ID][]string, error) {
	tree := classify.NewTree(all)
	wanted := map[string][]string{} // classes by environment
	paths := map[string]string{}
	var pins []fleet.Certname
	for _, g := range groups {
		if names := g.ClassNames(); len(names) > 0 {
			env := tree.EnvironmentOf(g.ID)
			wanted[env] = append(wanted[env], names...)
		}
		maps.Copy(paths, g.FactPaths())
		pins = append(pins, g.Pinned...)
	}
	var has classify.Possessions
	var err error
	if has.Facts, err = s.facts(ctx, paths); err != nil {
		return nil, err
	}
	if has.Nodes, err = s.nodes(ctx, pins); err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeout(ctx, maxReading)
	defer cancel()
	var unread error
	if has.Code, unread = s.classes(reading, wanted); unread != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		has.Code = nil
	}
	doubts := map[classify.ID][]string{}
	for _, g := range groups {
		said := g.Doubts(tree.EnvironmentOf(g.ID), has)
		if unread != nil && len(g.ClassNames()) > 0 {
			said = append(said, "whether its classes are in the code is not known: "+cmp.Or(fault.Detail(unread), "the code could not be read"))
		}
		if len(said) > 0 {
			doubts[g.ID] = said
		}
	}
	return doubts, nil
}

func (s *Service) facts(ctx context.Context, paths map[string]string) (map[string]bool, error) {
	if len(paths) == 0 {
		return nil, nil //nolint:nilnil // nobody looks
	}
	have, err := s.Facts.HavePaths(ctx, slices.Sorted(maps.Keys(paths)))
	if err != nil || have == nil {
		return nil, err
	}
	facts := map[string]bool{}
	for path := range have {
		facts[paths[path]] = true
	}
	return facts, nil
}

// nodes are the known ones of those that are pinned. Those that nobody looks for count as known.
func (s *Service) nodes(ctx context.Context, pins []fleet.Certname) (map[fleet.Certname]bool, error) {
	slices.Sort(pins)
	pins = slices.Compact(pins)
	known := map[fleet.Certname]bool{}
	for _, name := range pins[min(len(pins), maxPins):] {
		known[name] = true
	}
	for chunk := range slices.Chunk(pins[:min(len(pins), maxPins)], inventory.MaxNamed) {
		nodes, err := s.Nodes.NodesNamed(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			known[n.Certname] = true
		}
	}
	return known, nil
}

// classes is what environments have of classes.
func (s *Service) classes(ctx context.Context, wanted map[string][]string) (map[string]map[string]classify.ClassKnown, error) {
	if len(wanted) == 0 {
		return nil, nil //nolint:nilnil // nobody asks
	}
	deployed, err := s.Versions.Environments(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(deployed, func(a, b code.Version) int { return cmp.Compare(usual(b), usual(a)) })
	found := map[string]map[string]classify.ClassKnown{}
	for env, names := range wanted {
		slices.Sort(names)
		names = slices.Compact(names)
		if env == classify.AgentSpecified {
			if len(deployed) > maxEnvironments {
				continue // nobody knows
			}
			found[env], err = s.anywhere(ctx, deployed, names)
		} else {
			found[env] = nil
			if at := slices.IndexFunc(deployed, func(v code.Version) bool { return string(v.Environment) == env }); at >= 0 {
				found[env], err = s.in(ctx, deployed[at], names)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// usual is 1 for the environment that most nodes without another one get.
func usual(v code.Version) int {
	if v.Environment == "production" {
		return 1
	}
	return 0
}

// anywhere is what the environments have together: the parameters of a class are those of all.
func (s *Service) anywhere(ctx context.Context, deployed []code.Version, names []string) (map[string]classify.ClassKnown, error) {
	var all map[string]classify.ClassKnown
	for _, v := range deployed {
		has, err := s.in(ctx, v, names)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = has
			continue
		}
		for name, is := range has {
			was := all[name]
			if !was.Found && is.Found {
				was.Near = nil
			} else if was.Found && !is.Found {
				is.Near = nil
			}
			all[name] = classify.ClassKnown{
				Found: was.Found || is.Found, Unread: was.Unread || is.Unread,
				Parameters: slices.Concat(was.Parameters, is.Parameters), Near: slices.Concat(was.Near, is.Near),
			}
		}
	}
	return all, nil
}

// in is what a version has of classes.
func (s *Service) in(ctx context.Context, v code.Version, names []string) (map[string]classify.ClassKnown, error) {
	tree, err := s.Code.Tree(ctx, v.Environment, v.ID)
	if err != nil {
		return nil, err
	}
	autoload, err := s.Code.Autoload(ctx, tree)
	if err != nil {
		return nil, err
	}
	var files []code.Source
	near := map[string][]string{}
	for _, name := range names {
		files = append(files, autoload.For(name)...)
		if _, there := autoload.Named[name]; !there {
			near[name] = autoload.Near(name)
			for _, other := range near[name] {
				files = append(files, autoload.Named[other])
			}
		}
	}
	defines, err := s.read(ctx, v, tree.Manifest(), files)
	if err != nil {
		return nil, err
	}
	known := map[string]classify.ClassKnown{}
	for _, name := range names {
		is := classify.ClassKnown{Unread: autoload.Elsewhere}
		for _, source := range autoload.For(name) {
			is.Unread = is.Unread || defines[source.Path] == nil
			for _, class := range defines[source.Path] {
				if class.Name == name {
					is.Found, is.Parameters = true, class.Parameters
				}
			}
		}
		is.Unread = is.Unread && !is.Found
		for _, other := range near[name] { // a manifest may define a type of resources
			if slices.ContainsFunc(defines[autoload.Named[other].Path], func(c code.Class) bool { return c.Name == other }) {
				is.Near = append(is.Near, other)
			}
		}
		known[name] = is
	}
	return known, nil
}

// read says what files define, by path: of those that cannot be parsed that is nil.
func (s *Service) read(ctx context.Context, v code.Version, m code.Manifest, files []code.Source) (map[string][]code.Class, error) {
	slices.SortFunc(files, func(a, b code.Source) int { return cmp.Compare(a.Path, b.Path) })
	files = slices.Compact(files)
	defines := map[string][]code.Class{}
	var missing []code.Source
	s.mu.Lock()
	for _, f := range files {
		classes, known := s.files[file{m.Engine, f.Digest}]
		if defines[f.Path] = classes; !known {
			missing = append(missing, f)
		}
	}
	s.mu.Unlock()
	if len(missing) == 0 {
		return defines, nil
	}
	found, err := s.Reader.Classes(ctx, Input{
		Environment: v.Environment, Version: v.ID, ModulePath: m.ModulePath, Files: missing,
		Open: func(ctx context.Context, f code.Source) ([]byte, error) { return s.Open(ctx, f.Digest) },
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) > maxFiles {
		clear(s.files)
	}
	for _, f := range missing {
		s.files[file{m.Engine, f.Digest}] = found[f.Path]
		defines[f.Path] = found[f.Path]
	}
	return defines, nil
}

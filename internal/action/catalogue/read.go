package catalogue

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Module is a module that nodes have.
type Module struct {
	Name        string
	Description string    // the newest that is known
	Versions    []Version // the newest first
}

// Nodes is how many nodes have the module.
func (m Module) Nodes() int {
	total := 0
	for _, v := range m.Versions {
		total += v.Nodes
	}
	return total
}

// Version is one state of a module.
type Version struct {
	Version  string
	Digest   fleet.Digest // of its metadata
	Provider action.Provider
	Nodes    int  // that have it
	Known    bool // its metadata is
}

// Problem is a module of a node that cannot be used, or not all of it.
type Problem struct {
	Node fleet.Certname
	action.Listed
}

// May says whether somebody may know of a node.
type May func(fleet.Certname) bool

// Nodes is the nodes whose agents have told what they are, sorted.
func (s *Service) Nodes() []fleet.Certname {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.agents))
}

// OfNode is what a node's agent said of itself, and its modules; no modules: their list is not known yet. False: it said nothing.
func (s *Service) OfNode(node fleet.Certname) (Agent, action.Set, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, told := s.agents[node]
	if !told {
		return a, nil, false
	}
	return a, slices.Clone(s.sets[a.Set].list), true
}

// Having is the nodes that have a module which can be used, sorted.
func (s *Service) Having(module string) []fleet.Certname {
	s.mu.Lock()
	defer s.mu.Unlock()
	var having []fleet.Certname
	for _, one := range s.sets {
		if _, has := one.list.Find(module); has {
			having = slices.AppendSeq(having, maps.Keys(one.nodes))
		}
	}
	slices.Sort(having)
	return having
}

// Problems is what nodes cannot use, by node and name.
func (s *Service) Problems(may May) []Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []Problem
	for _, one := range s.sets {
		for _, l := range one.list {
			if l.Problem == "" {
				continue
			}
			for node := range one.nodes {
				if may(node) {
					problems = append(problems, Problem{node, l})
				}
			}
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Provider, b.Provider))
	})
	return problems
}

// Modules is the modules that nodes have, by name, as somebody may know of them.
func (s *Service) Modules(may May) []Module {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]map[fleet.Digest]*Version{}
	for _, one := range s.sets {
		nodes := 0
		for node := range one.nodes {
			if len(one.list) > 0 && may(node) {
				nodes++
			}
		}
		if nodes > 0 {
			s.count(found, one.list, nodes)
		}
	}
	modules := make([]Module, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		modules = append(modules, s.module(name, found[name]))
	}
	return modules
}

// count adds the nodes that have a set to the versions that are in it. The caller holds the lock.
func (s *Service) count(found map[string]map[fleet.Digest]*Version, list action.Set, nodes int) {
	for _, l := range list {
		d, described := s.modules[l.Digest]
		if l.Digest == "" || described && d.Name != l.Name { // a node says that the metadata of another module are this one's
			continue
		}
		if found[l.Name] == nil {
			found[l.Name] = map[fleet.Digest]*Version{}
		}
		v := found[l.Name][l.Digest]
		if v == nil {
			v = &Version{Version: l.Version, Digest: l.Digest, Provider: l.Provider, Known: described}
			if described {
				v.Version, v.Provider = d.Version, d.Provider
			}
			found[l.Name][l.Digest] = v
		}
		v.Nodes += nodes
	}
}

// module puts its versions in order. The caller holds the lock.
func (s *Service) module(name string, versions map[fleet.Digest]*Version) Module {
	m := Module{Name: name}
	for _, v := range versions {
		m.Versions = append(m.Versions, *v)
	}
	slices.SortFunc(m.Versions, func(a, b Version) int {
		return cmp.Or(action.CompareVersions(b.Version, a.Version), s.modules[b.Digest].Known.Compare(s.modules[a.Digest].Known), cmp.Compare(a.Digest, b.Digest))
	})
	if i := slices.IndexFunc(m.Versions, func(v Version) bool { return v.Known }); i >= 0 {
		m.Description = s.modules[m.Versions[i].Digest].Description
	}
	return m
}

// Module is one module, and the newest metadata of it that is known. NotFound: no node has it, as somebody may know. Unavailable: nodes have it, and
// none has told its metadata yet.
func (s *Service) Module(ctx context.Context, name string, may May) (Module, action.Module, error) {
	modules := s.Modules(may)
	i := slices.IndexFunc(modules, func(m Module) bool { return m.Name == name })
	if i < 0 {
		return Module{}, action.Module{}, fault.New(fault.NotFound, "no node has told of a module %.80q", name)
	}
	for _, v := range modules[i].Versions {
		if !v.Known {
			continue
		}
		text, err := s.text(ctx, v.Digest)
		if fault.Of(err) == fault.NotFound {
			continue // forgotten meanwhile
		}
		if err != nil {
			return Module{}, action.Module{}, err
		}
		metadata, err := action.Decode(name, text)
		return modules[i], metadata, err
	}
	return modules[i], action.Module{}, fault.New(fault.Unavailable, "no node has told yet what the module %s can do; try again in a moment", name)
}

// text is the metadata of a module: what is not written yet, or what is.
func (s *Service) text(ctx context.Context, digest fleet.Digest) ([]byte, error) {
	s.mu.Lock()
	fresh := s.freshModules[digest]
	s.mu.Unlock()
	if fresh != nil {
		return fresh, nil
	}
	return s.parts.Store.Metadata(ctx, digest)
}

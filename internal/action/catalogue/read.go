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
	Versions    []Version // that can be used, the newest first
	Problems    []Problem // that most nodes have first
}

// Nodes is how many nodes have the module and can use it.
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

// Problem is why nodes cannot use a module, or not all of it.
type Problem struct {
	Version  string
	Provider action.Provider
	Text     string
	Nodes    []fleet.Certname // sorted
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

// Modules is the modules that nodes have or cannot use, by name, as somebody may know of them.
func (s *Service) Modules(may May) []Module {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]*counted{}
	for _, one := range s.sets {
		var nodes []fleet.Certname
		for node := range one.nodes {
			if len(one.list) > 0 && may(node) {
				nodes = append(nodes, node)
			}
		}
		if len(nodes) > 0 {
			s.count(found, one.list, nodes)
		}
	}
	modules := make([]Module, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		modules = append(modules, s.module(name, found[name]))
	}
	return modules
}

// counted is a module while it is counted.
type counted struct {
	versions map[fleet.Digest]*Version
	problems map[action.Listed]*Problem
}

// count adds the nodes that have a set to the modules that are in it. The caller holds the lock.
func (s *Service) count(found map[string]*counted, list action.Set, nodes []fleet.Certname) {
	for _, l := range list {
		d, described := s.modules[l.Digest]
		if described && d.Name != l.Name {
			l.Digest, l.Problem = "", "its node tells the metadata of another module as those of this one"
		}
		m := found[l.Name]
		if m == nil {
			m = &counted{map[fleet.Digest]*Version{}, map[action.Listed]*Problem{}}
			found[l.Name] = m
		}
		if l.Problem != "" {
			if m.problems[l] == nil {
				m.problems[l] = &Problem{Version: l.Version, Provider: l.Provider, Text: l.Problem}
			}
			m.problems[l].Nodes = append(m.problems[l].Nodes, nodes...)
		}
		if l.Digest == "" {
			continue
		}
		v := m.versions[l.Digest]
		if v == nil {
			v = &Version{Version: l.Version, Digest: l.Digest, Provider: l.Provider, Known: described}
			if described {
				v.Version, v.Provider = d.Version, d.Provider
			}
			m.versions[l.Digest] = v
		}
		v.Nodes += len(nodes)
	}
}

// module puts versions and problems in order. The caller holds the lock.
func (s *Service) module(name string, c *counted) Module {
	m := Module{Name: name}
	for _, v := range c.versions {
		m.Versions = append(m.Versions, *v)
	}
	slices.SortFunc(m.Versions, func(a, b Version) int {
		return cmp.Or(action.CompareVersions(b.Version, a.Version), s.modules[b.Digest].Known.Compare(s.modules[a.Digest].Known), cmp.Compare(a.Digest, b.Digest))
	})
	if i := slices.IndexFunc(m.Versions, func(v Version) bool { return v.Known }); i >= 0 {
		m.Description = s.modules[m.Versions[i].Digest].Description
	}
	for _, p := range c.problems {
		slices.Sort(p.Nodes)
		m.Problems = append(m.Problems, *p)
	}
	slices.SortFunc(m.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Version, b.Version))
	})
	return m
}

// Newest is the newest metadata of a module that are known. Unavailable: nodes have it, and none has told its metadata yet, or it cannot be used.
func (s *Service) Newest(ctx context.Context, m Module) (action.Module, error) {
	for _, v := range m.Versions {
		if !v.Known {
			continue
		}
		text, err := s.text(ctx, v.Digest)
		if fault.Of(err) == fault.NotFound {
			continue // forgotten meanwhile
		}
		if err != nil {
			return action.Module{}, err
		}
		return action.Decode(m.Name, text)
	}
	if len(m.Versions) == 0 && len(m.Problems) > 0 {
		return action.Module{}, fault.New(fault.Unavailable, "no node can use the module %s: %s", m.Name, m.Problems[0].Text)
	}
	return action.Module{}, fault.New(fault.Unavailable, "no node has told yet what the module %s can do; try again in a moment", m.Name)
}

// Module is one module. NotFound: no node has it, as somebody may know.
func (s *Service) Module(name string, may May) (Module, error) {
	modules := s.Modules(may)
	if i := slices.IndexFunc(modules, func(m Module) bool { return m.Name == name }); i >= 0 {
		return modules[i], nil
	}
	return Module{}, fault.New(fault.NotFound, "no node has told of a module %.80q", name)
}

// Latest is the newest metadata of a module that has an action, whoever asks; the newest of all, if none has it. NotFound: no node has the
// module.
func (s *Service) Latest(ctx context.Context, name, having string) (action.Module, error) {
	m, err := s.Module(name, func(fleet.Certname) bool { return true })
	if err != nil {
		return action.Module{}, err
	}
	for _, v := range m.Versions {
		if !v.Known {
			continue
		}
		described, err := s.Described(ctx, name, v.Digest)
		if err != nil && !fault.Is(err, fault.NotFound) { // forgotten meanwhile
			return action.Module{}, err
		}
		if _, has := described.Find(having); has {
			return described, nil
		}
	}
	return s.Newest(ctx, m)
}

// Has is the digest of the metadata of a module that a node has. NotFound: it does not have it, or its agent does not tell which it has.
func (s *Service) Has(node fleet.Certname, module string) (fleet.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, told := s.agents[node]
	if !told {
		return "", fault.New(fault.NotFound, "its agent does not tell which modules it has")
	}
	for _, l := range s.sets[a.Set].list {
		if l.Name == module && l.Digest == "" {
			return "", fault.New(fault.NotFound, "it cannot use its module %s: %s", module, l.Problem)
		}
		if l.Name == module {
			return l.Digest, nil
		}
	}
	return "", fault.New(fault.NotFound, "it does not have the module %s", module)
}

// Described is the metadata with a digest. NotFound: it was not told.
func (s *Service) Described(ctx context.Context, module string, digest fleet.Digest) (action.Module, error) {
	text, err := s.text(ctx, digest)
	if err != nil {
		return action.Module{}, err
	}
	return action.Decode(module, text)
}

// Installed is the modules that nodes can use, with their versions, of those of the nodes that told it.
func (s *Service) Installed(_ context.Context, nodes []fleet.Certname) (map[fleet.Certname]map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	installed := map[fleet.Certname]map[string]string{}
	versions := map[fleet.Digest]map[string]string{} // of each set, made once
	for _, node := range nodes {
		a, told := s.agents[node]
		if !told {
			continue
		}
		if versions[a.Set] == nil {
			versions[a.Set] = map[string]string{}
			for _, l := range s.sets[a.Set].list {
				if l.Digest != "" {
					versions[a.Set][l.Name] = l.Version
				}
			}
		}
		installed[node] = versions[a.Set]
	}
	return installed, nil
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

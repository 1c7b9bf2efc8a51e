package code

import (
	"cmp"
	"context"
	"path"
	"slices"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fleet"
)

// SourceKind is how a file is read.
type SourceKind string

// The kinds of files that Puppet reads, or that are read for it.
const (
	PuppetSource SourceKind = "manifest"
	PlanSource   SourceKind = "plan"
	EPPSource    SourceKind = "epp"
	ERBSource    SourceKind = "erb"
	YAMLSource   SourceKind = "yaml"
	JSONSource   SourceKind = "json"
	ConfSource   SourceKind = "conf"
	// ClassesSource is a manifest that is only asked which classes it defines.
	ClassesSource SourceKind = "classes"
)

// Source is a file of a version that Puppet reads when it compiles.
type Source struct {
	Path   string
	Kind   SourceKind
	Digest fleet.Digest
	Size   int64
	// Loose says that nothing is known to read the file: data that no hiera.yaml names, plans. What is wrong with it is no reason to
	// refuse a version.
	Loose bool
}

// Compiled says whether compilations read files like it: metadata of modules and tasks, plans and environment.conf are read by others.
func (s Source) Compiled() bool {
	switch s.Kind {
	case PuppetSource, EPPSource, ERBSource, YAMLSource:
		return true
	case JSONSource:
		return path.Base(s.Path) != "metadata.json" && path.Base(path.Dir(s.Path)) != "tasks"
	case PlanSource, ConfSource, ClassesSource:
	}
	return false
}

// Sources lists the files of a version that Puppet reads, by path, each once: environment.conf; the start manifest; functions, types and
// plans of the environment and of its modules; manifests and templates of modules that it sees, with metadata.json and the metadata of
// tasks; each hiera.yaml and the data that it names. Everything else means nothing to Puppet, whatever it is called: files/, spec/,
// examples/, templates/ of other names, modules that another one of the same name hides. Links to files are followed. toJSON reads YAML.
func (l *Library) Sources(ctx context.Context, t *Tree, toJSON func([]byte) ([]byte, error)) ([]Source, error) {
	s := sourceList{tree: t, found: map[string]Source{}}
	s.file("environment.conf", ConfSource)
	start, err := l.StartManifest(ctx, t)
	if err != nil {
		return nil, err
	}
	if start != "" && !path.IsAbs(start) {
		s.file(start, PuppetSource)
		s.below(start, map[string]SourceKind{".pp": PuppetSource}, false)
	}
	if err := s.place(ctx, l.blobs, "", toJSON); err != nil {
		return nil, err
	}
	for _, m := range t.modules {
		s.below(m.Path+"/manifests", map[string]SourceKind{".pp": PuppetSource}, false)
		s.below(m.Path+"/templates", map[string]SourceKind{".epp": EPPSource, ".erb": ERBSource}, false)
		s.file(m.Path+"/metadata.json", JSONSource)
		s.tasks(m.Path + "/tasks")
		if err := s.place(ctx, l.blobs, m.Path, toJSON); err != nil {
			return nil, err
		}
	}
	list := make([]Source, 0, len(s.found))
	for _, source := range s.found {
		list = append(list, source)
	}
	slices.SortFunc(list, func(a, b Source) int { return cmp.Compare(a.Path, b.Path) })
	return list, nil
}

// sourceList collects sources. What is read for sure wins over what may be.
type sourceList struct {
	tree  *Tree
	found map[string]Source
}

func (s *sourceList) add(p string, f File, kind SourceKind, loose bool) {
	if known, there := s.found[p]; !there || known.Loose && !loose {
		s.found[p] = Source{Path: p, Kind: kind, Digest: f.Digest, Size: f.Size, Loose: loose}
	}
}

// file adds a regular file, if it is one.
func (s *sourceList) file(p string, kind SourceKind) {
	if n := s.tree.resolve(s.tree.root, p); n != nil && !n.isDir() {
		s.add(p, n.file, kind, false)
	}
}

// below adds the files below a directory by the ends of their names.
func (s *sourceList) below(dir string, kinds map[string]SourceKind, loose bool) {
	s.each(dir, func(p string, f File) {
		if kind := kinds[path.Ext(p)]; kind != "" {
			s.add(p, f, kind, loose)
		}
	})
}

// each visits the regular files below a directory. Links to files are followed, links to directories are not, as when Puppet globs for them.
func (s *sourceList) each(dir string, visit func(p string, f File)) {
	top := s.tree.resolve(s.tree.root, dir)
	if top == nil || !top.isDir() {
		return
	}
	var walk func(n *node, prefix string)
	walk = func(n *node, prefix string) {
		for _, child := range n.children {
			p := path.Join(prefix, child.name)
			if child.isDir() {
				walk(child, p)
			} else if target := s.tree.follow(child); target != nil && !target.isDir() {
				visit(p, target.file)
			}
		}
	}
	walk(top, dir)
}

// tasks adds the metadata of tasks: only what lies in the directory itself is a task's.
func (s *sourceList) tasks(dir string) {
	s.each(dir, func(p string, f File) {
		if path.Dir(p) == dir && path.Ext(p) == ".json" {
			s.add(p, f, JSONSource, false)
		}
	})
}

// place adds what the environment and a module have alike: functions, types, plans, and data with its hiera.yaml.
func (s *sourceList) place(ctx context.Context, blobs cas.Store, dir string, toJSON func([]byte) ([]byte, error)) error {
	for _, name := range []string{"functions", "types"} {
		s.below(path.Join(dir, name), map[string]SourceKind{".pp": PuppetSource}, false)
	}
	s.below(path.Join(dir, "plans"), map[string]SourceKind{".pp": PlanSource}, true)
	s.below(path.Join(dir, "data"), map[string]SourceKind{".yaml": YAMLSource, ".yml": YAMLSource, ".eyaml": YAMLSource, ".json": JSONSource}, true)
	config := path.Join(dir, "hiera.yaml")
	levels := defaultHiera
	if n := s.tree.resolve(s.tree.root, config); n != nil && !n.isDir() {
		s.add(config, n.file, YAMLSource, false)
		text, err := cas.Bytes(ctx, blobs, n.file.Digest, maxConfBytes)
		if err != nil {
			return err
		}
		levels = readHiera(text, toJSON)
	}
	for _, level := range levels {
		level.each(dir, func(top string, matches func(string) bool) {
			s.each(top, func(p string, f File) {
				if matches(p) {
					s.add(p, f, level.kind, false)
				}
			})
			if matches(top) { // it is a file
				s.file(top, level.kind)
			}
		})
	}
	return nil
}

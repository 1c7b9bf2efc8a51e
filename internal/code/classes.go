package code

import (
	"context"
	"path"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Class is a class that a manifest defines.
type Class struct {
	Name       string
	Parameters []string
}

// Autoload is where Puppet finds the classes of a version.
type Autoload struct {
	// Start is the manifests that every compilation reads.
	Start []Source
	// Elsewhere says that there may be others: which manifests every compilation reads is not known.
	Elsewhere bool
	// Named are the manifests of modules by the name that the file stands for, as apache::mod::ssl for apache/manifests/mod/ssl.pp.
	Named map[string]Source
}

// Autoload lists the manifests of a version by what they stand for.
func (l *Library) Autoload(ctx context.Context, t *Tree) (Autoload, error) {
	start, err := l.StartManifest(ctx, t)
	if err != nil {
		return Autoload{}, err
	}
	kinds := map[string]SourceKind{".pp": ClassesSource}
	main := sourceList{tree: t, found: map[string]Source{}}
	if start != "" && !path.IsAbs(start) {
		main.file(start, ClassesSource)
		main.below(start, kinds, false)
	}
	a := Autoload{Elsewhere: start == "", Named: map[string]Source{}}
	for _, source := range main.found {
		a.Start = append(a.Start, source)
	}
	for _, m := range t.modules {
		modules := sourceList{tree: t, found: map[string]Source{}}
		modules.below(m.Path+"/manifests", kinds, false)
		for p, source := range modules.found {
			name := strings.TrimSuffix(strings.TrimPrefix(p, m.Path+"/manifests/"), ".pp")
			if name = m.Name + "::" + strings.ReplaceAll(name, "/", "::"); name == m.Name+"::init" {
				name = m.Name
			}
			a.Named[name] = source
		}
	}
	return a, nil
}

// For lists the manifests that may define a class: those that every compilation reads, and, as Puppet tries them, those of the class and of the
// names that its name begins with.
func (a Autoload) For(class string) []Source {
	list := append([]Source{}, a.Start...)
	for name := class; name != ""; {
		if source, there := a.Named[name]; there {
			list = append(list, source)
		}
		at := strings.LastIndex(name, "::")
		name = name[:max(at, 0)]
	}
	return list
}

// Near lists the names of manifests that somebody who wrote class may have meant.
func (a Autoload) Near(class string) []string {
	names := make([]string, 0, len(a.Named))
	for name := range a.Named {
		names = append(names, name)
	}
	return fault.Near(class, names)
}

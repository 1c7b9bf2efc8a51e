package code_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
)

var diffPaths = []string{
	"environment.conf", "manifests/site.pp", "data/common.yaml", "data/nodes/a.yaml", "modules/a/manifests/init.pp", "modules/a/manifests/b.pp",
	"modules/a/lib/puppet/type/x.rb", "modules/b/lib/puppet/type/x.rb", "site/a/manifests/init.pp", "site/c/files/tree/one", "site/c/files/tree/sub/two",
}

// drawFiles draws a version: path to content.
func drawFiles(t *rapid.T, label string) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom(diffPaths), rapid.SampledFrom([]string{"1", "2"}), 0, len(diffPaths)).Draw(t, label)
}

func treeOf(t *rapid.T, files map[string]string) *code.Tree {
	m := code.Manifest{ModulePath: []string{"site", "modules"}}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		m.Files = append(m.Files, code.File{Path: p, Digest: fleet.DigestOf([]byte(files[p])), Size: 1})
	}
	tree, err := code.TreeOf("production", m)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// below is all paths of a version at and below dir, with or without content.
func below(files map[string]string, dir string, content bool) string {
	var found []string
	for p, text := range files {
		if dir == "." || p == dir || strings.HasPrefix(p, dir+"/") {
			if content {
				p += "=" + text
			}
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return fmt.Sprint(found)
}

// kindAt is what is at a path: nothing, a directory, or a file with its content.
func kindAt(files map[string]string, p string) string {
	if text, ok := files[p]; ok {
		return "file " + text
	}
	for other := range files {
		if strings.HasPrefix(other, p+"/") {
			return "directory"
		}
	}
	return "nothing"
}

func namesIn(files map[string]string, dir string) string {
	found := map[string]bool{}
	for p := range files {
		if rest, ok := strings.CutPrefix(p, dir+"/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			found[name] = true
		}
	}
	return fmt.Sprint(slices.Sorted(maps.Keys(found)))
}

// Whatever reads a version in one of the ways that Changes knows notices every
// difference that it could have seen.
func TestDiffMissesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := drawFiles(t, "from"), drawFiles(t, "to")
		c := code.Diff(treeOf(t, from), treeOf(t, to))
		var places []string
		for _, p := range diffPaths {
			for ; p != "."; p = path.Dir(p) {
				places = append(places, p)
			}
		}
		for _, p := range places {
			for _, check := range []struct {
				kind    string
				differs bool
				noticed bool
			}{
				{"file", kindAt(from, p) != kindAt(to, p), c.Files[p]},
				{"list", namesIn(from, p) != namesIn(to, p), c.Lists[p]},
				{"names", below(from, p, false) != below(to, p, false), c.Names[p]},
				{"tree", below(from, p, true) != below(to, p, true), c.Trees[p]},
			} {
				if check.differs && !check.noticed {
					t.Errorf("%s %s differs, and nothing is said", check.kind, p)
				}
				if check.kind == "file" && check.noticed && !check.differs {
					t.Errorf("file %s is the same, and is said to differ", p)
				}
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			if where(from, name) != where(to, name) && !c.Modules[name] {
				t.Errorf("module %s moved from %q to %q, and nothing is said", name, where(from, name), where(to, name))
			}
		}
		const anywhere = "lib/puppet/type/x.rb"
		for _, dir := range []string{"modules/a/", "modules/b/"} {
			if from[dir+anywhere] != to[dir+anywhere] && !c.Anywhere[anywhere] {
				t.Errorf("%s of a module differs, and nothing is said", anywhere)
			}
		}
	})
}

func where(files map[string]string, name string) string {
	for _, dir := range []string{"site/", "modules/"} {
		if kindAt(files, dir+name) == "directory" {
			return dir + name
		}
	}
	return ""
}

func TestDiffOfLinksAndOtherModulePaths(t *testing.T) {
	t.Parallel()
	plain := code.Manifest{ModulePath: []string{"modules"}, Files: []code.File{{Path: "a", Digest: fleet.DigestOf([]byte("1")), Size: 1}}}
	linked := plain
	linked.Files = append(slices.Clip(plain.Files), code.File{Path: "b", Kind: code.Link, Target: "a"})
	moved := plain
	moved.ModulePath = []string{"site", "modules"}
	tree := func(m code.Manifest) *code.Tree {
		made, err := code.TreeOf("production", m)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	if c := code.Diff(tree(plain), tree(plain)); c.All || len(c.Files)+len(c.Trees) != 0 {
		t.Errorf("a version differs from itself: %+v", c)
	}
	if c := code.Diff(tree(linked), tree(linked)); c.All {
		t.Error("a version with links differs from itself")
	}
	for name, other := range map[string]code.Manifest{"links": linked, "module path": moved} {
		if c := code.Diff(tree(plain), tree(other)); !c.All {
			t.Errorf("%s: got %+v, want all", name, c)
		}
	}
}

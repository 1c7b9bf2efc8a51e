package compile

import (
	"fmt"
	"slices"
	"strings"
)

// Now is what an input set is held against.
type Now struct {
	Engine  string     // of the compiler now; empty: not known yet
	Order   Order      // as it would be compiled now
	Changes *Changes   // from the version that was compiled to the one that is wanted; nil: the same
	Asked   []Question // what the questions are answered now; in the set's order
}

// Changes is how two versions differ, each path under every way of reading that
// notices it.
type Changes struct {
	All      bool            // all is different: nothing can be compared
	Files    map[string]bool // files with other content; files and directories that came or went
	Lists    map[string]bool // directories in which a name came or went
	Names    map[string]bool // directories below which one did
	Trees    map[string]bool // files that differ, and every directory above one
	Modules  map[string]bool // modules that are in another directory, came or went
	Anywhere map[string]bool // paths below modules at which a file differs
}

// Touch finds something of s that differs; ok when nothing does.
func (c *Changes) Touch(s *Sources) (what string, ok bool) {
	switch {
	case c == nil:
		return "", true
	case c.All:
		return "the versions cannot be compared, or another engine compiles", false
	}
	for _, kind := range []struct {
		word    string
		paths   []string
		changed map[string]bool
	}{
		{"file", s.Files, c.Files},
		{"files in", s.Lists, c.Lists},
		{"files below", s.Names, c.Names},
		{"content of", s.Trees, c.Trees},
		{"module", s.Modules, c.Modules},
		{"modules with", s.Anywhere, c.Anywhere},
	} {
		if len(kind.changed) == 0 {
			continue
		}
		if i := slices.IndexFunc(kind.paths, func(path string) bool { return kind.changed[path] }); i >= 0 {
			return fmt.Sprintf("%s %s changed", kind.word, kind.paths[i]), false
		}
	}
	return "", true
}

// Which lists the changed files of s that were read, each once: by themselves, or with a directory above them. What was only listed, or
// looked for by the name of a module, is not among them.
func (c *Changes) Which(s *Sources) []string {
	if c == nil || c.All {
		return nil
	}
	var files []string
	for _, file := range s.Files {
		if c.Files[file] {
			files = append(files, file)
		}
	}
	for _, tree := range s.Trees {
		if !c.Trees[tree] {
			continue
		}
		for file := range c.Files {
			if file == tree || strings.HasPrefix(file, tree+"/") {
				files = append(files, file)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Holds decides whether a catalog stands that was compiled with these inputs, and
// says why not. Volatile inputs are not its business: see Reuser.
func Holds(in *InputSet, now Now) (ok bool, why string) {
	switch {
	case now.Engine == "" || in.Engine != now.Engine:
		return false, "the compiler is another one"
	case in.Given != givenDigest(now.Order):
		return false, "the classification changed"
	case len(in.Asked) != len(now.Asked):
		return false, "not all questions were asked again"
	}
	if what, ok := now.Changes.Touch(&in.Sources); !ok {
		return false, what
	}
	have := newValues(now.Order)
	for _, was := range in.Values {
		if is := have.value(was.Pointer, was.Seen); is.Digest != was.Digest {
			return false, fmt.Sprintf("%s changed", shown(was.Pointer))
		}
	}
	for i, was := range in.Asked {
		if now.Asked[i] != was {
			return false, fmt.Sprintf("the answer to a %s changed: %.200s", was.Kind, was.Text)
		}
	}
	return true, ""
}

// shown is a pointer as people write paths of facts.
func shown(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

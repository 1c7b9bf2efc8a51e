package task

import (
	"slices"
	"strings"
)

// Needed is a file that a node needs, under the name by which the node looks for it.
type Needed struct {
	Filename string
	File     File
}

// Needed lists the files of an order to run the task. Agents look for the executable that they choose by the name which an
// implementation has, a plain one, and for all other files by module/directory/path. A file that is both comes twice.
func (t Task) Needed() []Needed {
	list := make([]Needed, len(t.Files))
	for i, f := range t.Files {
		list[i] = Needed{Filename: f.Name(), File: f}
		if i < t.runnable {
			list[i].Filename = f.Path
		}
	}
	return list
}

// Told is the metadata of an order to run the task. It is as it was written, except that no executable is among the files that it
// needs itself. Agents put the executable that they run into module/tasks beside those files anyway. pxp-agent 1.15 refuses to put
// it there a second time ("File exists"), and such a task would never run.
func (t Task) Told() Metadata {
	told := t.Metadata
	if len(told.Implementations) == 0 {
		told.Files = t.without(t.Files[0], told.Files)
		return told
	}
	told.Implementations = slices.Clone(told.Implementations)
	executables := t.Files[:t.runnable]
	// An executable is a file like any other to the other implementations: which are left out is then said for each of them.
	if slices.ContainsFunc(executables, func(own File) bool { return includes(told.Files, own) }) {
		for i := range told.Implementations {
			told.Implementations[i].Files = slices.Concat(told.Files, told.Implementations[i].Files)
		}
		told.Files = nil
	}
	for i, own := range executables {
		told.Implementations[i].Files = t.without(own, told.Implementations[i].Files)
	}
	return told
}

// without names the same files but one. Directories that it is in are replaced by what else is in them. If nothing else is named, the
// file itself is, by its plain name: a task that asks for files is given a directory of files.
func (t Task) without(own File, names []string) []string {
	if !includes(names, own) {
		return names
	}
	var left []string
	for _, f := range t.Files[t.runnable:] {
		if f.Name() != own.Name() && includes(names, f) {
			left = append(left, f.Name())
		}
	}
	if left == nil {
		return []string{own.Path}
	}
	return left
}

// includes says whether names have the file, or a directory that it is in.
func includes(names []string, f File) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == f.Name() || strings.HasSuffix(name, "/") && strings.HasPrefix(f.Name(), name)
	})
}

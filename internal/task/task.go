package task

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Task is a task of a version.
type Task struct {
	Name     string // module::name; only the module for its init
	Metadata Metadata
	// Files is what a node needs: first the executables that may be chosen, then
	// what metadata names besides.
	Files []File
	// runnable is how many of Files may be chosen to be run.
	runnable int
}

// maxFiles is how many files a task may need.
const maxFiles = 1000

// Summary is a task in a list.
type Summary struct {
	Name        string
	Description string
	Private     bool
	Err         error // why the task cannot be run; its name is all that is known
}

// List lists all tasks of a version by name, those that cannot be run too.
func List(ctx context.Context, v Version) ([]Summary, error) {
	var list []Summary
	for _, module := range v.Modules() {
		files := v.Files(module, "tasks")
		for _, name := range names(files) {
			t, err := read(ctx, v, module, name, files)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil && fault.Of(err) != fault.Invalid {
				return nil, err
			}
			list = append(list, Summary{Name: join(module, name), Description: t.Metadata.Description, Private: t.Metadata.Private, Err: err})
		}
	}
	slices.SortFunc(list, func(a, b Summary) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Find reads one task by its name.
func Find(ctx context.Context, v Version, name string) (Task, error) {
	module, short, ok := strings.Cut(name, "::")
	if !ok {
		short = "init"
	}
	if !isName(module) || !isName(short) {
		return Task{}, fault.New(fault.Invalid, "a task is called module or module::task, in lower case, not %.200q", name)
	}
	files := v.Files(module, "tasks")
	if !slices.Contains(names(files), short) {
		return Task{}, fault.New(fault.NotFound, "there is no task %s; see `tutti task list`", join(module, short))
	}
	return read(ctx, v, module, short, files)
}

func join(module, name string) string {
	if name == "init" {
		return module
	}
	return module + "::" + name
}

// names lists the tasks that a tasks directory holds.
func names(files []File) []string {
	var list []string
	for _, f := range files {
		if name, ok := taskOf(f); ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// taskOf is the task that a file of a tasks directory belongs to.
func taskOf(f File) (name string, ok bool) {
	extension := path.Ext(f.Path)
	name = strings.TrimSuffix(f.Path, extension)
	return name, isName(name) && extension != ".conf" && extension != ".md" // a subdirectory's name is no name
}

func isMetadata(f File) bool { return path.Ext(f.Path) == ".json" }

// read reads metadata and finds the files of one task.
func read(ctx context.Context, v Version, module, name string, files []File) (Task, error) {
	t := Task{Name: join(module, name)}
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == name+".json" })
	if i >= 0 {
		source, err := v.Read(ctx, files[i], maxMetadata)
		if err != nil {
			return t, err
		}
		if t.Metadata, err = ParseMetadata(source); err != nil {
			return t, within(err, files[i].Name())
		}
	}
	executables, err := t.executables(name, files)
	if err != nil {
		return t, err
	}
	extra, err := t.extraFiles(v)
	t.Files, t.runnable = append(executables, extra...), len(executables)
	return t, err
}

// within says which file an error is about.
func within(err error, file string) error {
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return fault.Wrap(known.Kind, known.Err, "%s: %s", file, known.Detail)
	}
	return err
}

// executables finds what metadata names as implementations; without any, there
// must be exactly one file with the task's name.
func (t Task) executables(name string, files []File) ([]File, error) {
	var found []File
	for _, implementation := range t.Metadata.Implementations {
		i := slices.IndexFunc(files, func(f File) bool { return f.Path == implementation.Name && !isMetadata(f) })
		if i < 0 {
			return nil,
				fault.New(fault.Invalid, "the task %s names the implementation %.200q, which is not in its module's tasks directory", t.Name, implementation.Name)
		}
		found = append(found, files[i])
	}
	if t.Metadata.Implementations != nil {
		return found, nil
	}
	for _, f := range files {
		if own, ok := taskOf(f); ok && own == name && !isMetadata(f) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return nil, fault.New(fault.Invalid, "the task %s has metadata and no executable", t.Name)
	case 1:
		return found, nil
	default:
		return nil, fault.New(fault.Invalid, "the task %s has %d executables: name them as implementations in its metadata", t.Name, len(found))
	}
}

// extraFiles finds what metadata names as files: module/kind/path, or a directory
// with a slash at its end.
func (t Task) extraFiles(v Version) ([]File, error) {
	asked := slices.Clone(t.Metadata.Files)
	for _, implementation := range t.Metadata.Implementations {
		asked = append(asked, implementation.Files...)
	}
	slices.Sort(asked)
	var found []File
	for _, name := range slices.Compact(asked) {
		files, err := t.named(v, name)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
		if len(found) > maxFiles {
			return nil, fault.New(fault.Invalid, "the task %s needs more than %d files", t.Name, maxFiles)
		}
	}
	return slices.CompactFunc(found, func(a, b File) bool { return a.Name() == b.Name() }), nil
}

// kinds are the directories of a module whose files a task may need.
var kinds = []string{"files", "lib", "scripts", "tasks"}

func (t Task) named(v Version, name string) ([]File, error) {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 2 || !slices.Contains(kinds, parts[1]) {
		return nil, fault.New(fault.Invalid, "the task %s needs the file %.200q, but files are named module/files, lib, scripts or tasks/path", t.Name, name)
	}
	var found []File
	for _, f := range v.Files(parts[0], parts[1]) {
		if includes([]string{name}, f) {
			found = append(found, f)
		}
	}
	if found == nil {
		return nil, fault.New(fault.Invalid, "the task %s needs %.200q, which is not there; a directory is named with a slash at its end", t.Name, name)
	}
	return found, nil
}

package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/action/skeleton"
	"github.com/tutti-project/tutti/internal/fault"
)

type actionNewInput struct{ language, dir string }

var actionNew = verb[actionNewInput]{
	use: "new NAME", short: "Begin a module for nodes, in one of several languages", prints: silent,
	long: `Write the beginning of a module: a program that says what it can do, with one action that reads and one that acts, a script
that tries both, and a README. It works as it is; change it into what you need. docs/writing-actions.md says what there is.`,
	example: "  tutti action new notes --lang python\n  tutti action new notes --lang go --dir src/notes",
	flags: func(f flagSet, in *actionNewInput) {
		f.StringVar(&in.language, "lang", "", "language of the program: "+alternatives(skeleton.Languages()))
		f.offers("lang", skeleton.Languages()...)
		f.StringVar(&in.dir, "dir", "", "where to write it, a directory that is new or empty; empty: NAME")
		f.requires("lang")
	},
	run: func(_ context.Context, c *call, in *actionNewInput) error {
		name := c.args[0]
		files, err := skeleton.Files(name, in.language)
		if err != nil {
			return usageError{err}
		}
		dir := in.dir
		if dir == "" {
			dir = name
		}
		if err := emptyDir(dir); err != nil {
			return err
		}
		for _, f := range files {
			mode := map[bool]fs.FileMode{true: 0o755, false: 0o644}[f.Executable]
			if err := os.WriteFile(filepath.Join(dir, f.Name), f.Text, mode); err != nil {
				return unwritten("the module", dir, err)
			}
		}
		c.hint("The module %s is in %s. Try all of it: %s", name, dir, filepath.Join(dir, "test.sh"))
		return nil
	},
}

// emptyDir makes a directory; one that is there may have nothing in it.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(dir, 0o755) //nolint:gosec // others may read the module
	case err == nil && len(entries) > 0:
		return usageError{fault.New(fault.Invalid, "%s is not empty; choose another place with --dir", dir)}
	}
	if err != nil {
		return unwritten("the module", dir, err)
	}
	return nil
}

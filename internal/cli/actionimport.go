package cli

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/ddl"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type actionImportInput struct{ out string }

var actionImport = verb[actionImportInput]{
	use: "import FILE", short: "Translate the DDL of an MCollective or Choria agent into a module's metadata", prints: silent,
	long: `Translate a DDL into the metadata of a module, JSON, which the module prints when it is asked for it. FILE is a DDL of
MCollective (NAME.ddl; nothing of it is executed) or of Choria (NAME.json). What has no equivalent is said, with its line.

A DDL does not say which actions change nothing: set "read_only": true for those.`,
	example: "  tutti action import service.ddl\n  tutti action import parallel.json --out metadata.json",
	flags: func(f flagSet, in *actionImportInput) {
		f.StringVar(&in.out, "out", "", "file to write, new; empty: standard output")
	},
	run: func(_ context.Context, c *call, in *actionImportInput) error {
		translated, err := readDDL(c.args[0])
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := (print.Printer{Out: &text}).JSON(translated.Module); err != nil {
			return err
		}
		for _, w := range translated.Warnings {
			c.hint("%s: %s", c.args[0], w)
		}
		if in.out == "" {
			return c.printer().Text(text.String())
		}
		file, err := createNamed("the metadata", in.out, 0o644) // others may read it
		if err != nil {
			return err
		}
		_, err = text.WriteTo(file)
		if closed := file.Close(); err == nil {
			err = closed
		}
		return err
	},
}

// readDDL reads a file in the language that its name says.
func readDDL(path string) (ddl.Translated, error) {
	extension := filepath.Ext(path)
	read, known := map[string]func(string, []byte) (ddl.Translated, error){".ddl": ddl.Ruby, ".json": ddl.JSON}[extension]
	if !known {
		return ddl.Translated{}, usageError{fault.New(fault.Invalid, "%s: a DDL is a file NAME.ddl (MCollective) or NAME.json (Choria)", path)}
	}
	file, err := openFile(path)
	if err != nil {
		return ddl.Translated{}, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, action.MaxMetadataBytes+1))
	if err != nil {
		return ddl.Translated{}, unread("the DDL", path, err)
	}
	translated, err := read(strings.TrimSuffix(filepath.Base(path), extension), text)
	if err != nil {
		return translated, usageError{fault.Wrap(fault.Invalid, err, "%s: %s", path, fault.Detail(err))}
	}
	return translated, nil
}

package hook

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxPrograms bounds a directory of trusted external commands.
const maxPrograms = 64

// TrustedExternal is Puppet's trusted_external_command: a program that gets a
// certname and prints a JSON object for $trusted['external'], or a directory of such
// programs, whose objects are put under the programs' names without extension.
type TrustedExternal struct {
	runner *Runner
	path   string
}

// TrustedExternal returns the command at path.
func (r *Runner) TrustedExternal(path string) (*TrustedExternal, error) {
	t := &TrustedExternal{runner: r, path: path}
	programs, _, err := t.programs()
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		if err := checkProgram(program); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// programs lists what is to be run now, and whether it comes from a directory.
func (t *TrustedExternal) programs() (paths []string, many bool, err error) {
	entries, err := os.ReadDir(t.path)
	if err != nil { // not a directory, or not there, which checkProgram says better
		return []string{t.path}, false, nil //nolint:nilerr // see above
	}
	for _, entry := range entries {
		path := filepath.Join(t.path, entry.Name())
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			paths = append(paths, path)
		}
	}
	if len(paths) > maxPrograms {
		return nil, true, fault.New(fault.Invalid, "%s holds %d programs, at most %d are allowed", t.path, len(paths), maxPrograms)
	}
	return paths, true, nil
}

// External asks for what is known of a node. One program that fails makes the
// whole fail: half of the truth could give a node the wrong catalog.
func (t *TrustedExternal) External(ctx context.Context, name fleet.Certname) (json.RawMessage, error) {
	programs, many, err := t.programs()
	if err != nil {
		return nil, err
	}
	if !many {
		return t.ask(ctx, programs[0], name)
	}
	all := map[string]json.RawMessage{}
	for _, program := range programs {
		object, err := t.ask(ctx, program, name)
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(filepath.Base(program), filepath.Ext(program))] = object
	}
	return json.Marshal(all)
}

func (t *TrustedExternal) ask(ctx context.Context, program string, name fleet.Certname) (json.RawMessage, error) {
	ended, err := t.runner.run(ctx, program, string(name), nil)
	switch {
	case err != nil:
		return nil, err
	case ended.exit != 0:
		return nil, fault.New(fault.Unavailable, "the trusted external command %s ended with exit code %d for %s", program, ended.exit, name)
	case ended.cut:
		return nil, fault.New(fault.Unavailable, "the trusted external command %s printed more than %d bytes", program, t.runner.cfg.MaxOutputBytes)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(ended.stdout, &object); err != nil || object == nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the trusted external command %s did not print a JSON object for %s", program, name)
	}
	return json.Marshal(object)
}

package modules

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/ddl"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/group"
	"github.com/tutti-project/tutti/internal/program/output"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Config is where modules are.
type Config struct {
	Dir        string                // of the executables; one that is not there has none
	ConfigDir  string                // of their configuration: NAME.conf, NAME.cfg
	Program    []string              // starts the agent's binary so that it does Main
	Facts      func() jsontext.Value // of the node, an object; nil: none are known
	Activation time.Duration         // how long a Choria module may think whether it wants to be used; 0: 2 seconds
	Log        *slog.Logger
}

const (
	maxConfigBytes = 1 << 20
	maxModules     = 100
	metadataTime   = 30 * time.Second
)

// Load asks all modules of a directory what they can do, in the order of their names. Those that cannot be used are problems.
func Load(ctx context.Context, cfg Config) (loaded []orders.Module, problems []action.Problem, err error) {
	entries, err := os.ReadDir(cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fault.Wrap(fault.Unavailable, err, "the directory of modules %s cannot be read", cfg.Dir)
	}
	for _, entry := range entries {
		path, err := filepath.Abs(filepath.Join(cfg.Dir, entry.Name())) // programs run elsewhere
		if err != nil {
			return nil, nil, fault.Wrap(fault.Unavailable, err, "the directory of modules %s cannot be read", cfg.Dir)
		}
		f, there, err := find(path)
		if !there || slices.ContainsFunc(loaded, func(m orders.Module) bool { return m.Name == f.name }) {
			continue
		}
		if err == nil && len(loaded) == maxModules {
			err = fmt.Errorf("there are too many: %d are loaded at most", maxModules)
		}
		var m orders.Module
		if err == nil {
			m, err = load(ctx, cfg, f)
		}
		if err != nil {
			cfg.Log.ErrorContext(ctx, "module passed over, it cannot be used", "path", path, "err", err)
			problems = append(problems, action.Problem{Module: f.name, Path: path, Reason: reason(err)})
			continue
		}
		loaded = append(loaded, m)
	}
	return loaded, problems, nil
}

// reason is an error for people.
func reason(err error) string {
	if detail := fault.Detail(err); detail != "" {
		return detail
	}
	return err.Error()
}

// LoadFile loads the one module whose executable, or folder of executables, is at a path.
func LoadFile(ctx context.Context, cfg Config, path string) (orders.Module, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return orders.Module{}, fault.Wrap(fault.Invalid, err, "%s is no path", path)
	}
	f, there, err := find(path)
	if !there {
		return orders.Module{},
			fault.New(fault.Invalid, "%s is no module: an executable file without an extension is one, a folder with a metadata.json, or a folder beside its NAME.json",
				path)
	}
	var m orders.Module
	if err == nil {
		m, err = load(ctx, cfg, f)
	}
	if err != nil {
		return m, fault.Wrap(fault.Invalid, err, "the module %s cannot be used: %s", path, reason(err))
	}
	return m, nil
}

// found is a module that is there.
type found struct {
	name     string
	program  string
	ddl      string                      // Choria's description
	metadata string                      // a file with the module's own; neither: the program describes itself
	provider action.Provider             // empty: External
	whole    func(context.Context) error // says before each use whether the files are what they must be; nil: whatever they are
}

// find says what module is at a path, if there is one; an error is why it cannot be one. Links are followed.
func find(path string) (f found, there bool, err error) {
	base := filepath.Base(path)
	info, err := os.Stat(path)
	if err != nil || len(base) > pxp.MaxNameBytes {
		return f, false, nil //nolint:nilerr // what is not there is no module
	}
	if name, is := strings.CutSuffix(base, ".json"); is {
		return lonely(path, name)
	}
	f = found{name: base, program: path}
	if info.Mode().IsRegular() && runtime.GOOS == "windows" {
		extension := filepath.Ext(base)
		if lower := strings.ToLower(extension); lower != ".exe" && lower != ".bat" {
			return f, false, nil
		}
		f.name = strings.TrimSuffix(base, extension)
	}
	beside := filepath.Join(filepath.Dir(path), f.name+".json")
	if isFile(beside) {
		f.ddl = beside
	}
	switch {
	case info.IsDir() && isFile(filepath.Join(path, action.MetadataFile)):
		f, err = folder(path, base)
		return f, true, err
	case info.IsDir() && f.ddl != "":
		f.program, err = ofPlatform(path, base)
		return f, true, err
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && filepath.Ext(base) != "" || f.ddl == "" && !executable(info):
		return f, false, nil
	case !executable(info):
		return f, true, fmt.Errorf("%s is not executable: chmod +x", path)
	}
	return f, true, nil
}

func executable(info fs.FileInfo) bool {
	return runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// ofPlatform is the executable of a folder that this machine can run.
func ofPlatform(dir, name string) (string, error) {
	base := name + "-" + runtime.GOOS + "_" + runtime.GOARCH
	if runtime.GOOS == "windows" {
		base += ".exe"
	}
	path := filepath.Join(dir, base)
	info, err := os.Stat(path)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return path, fmt.Errorf("the folder has no %s, which this machine could run", base)
	case !executable(info):
		return path, fmt.Errorf("%s is not executable: chmod +x", path)
	}
	return path, nil
}

// folder is a module whose metadata is a file, with a program for each platform or one for all.
func folder(dir, name string) (found, error) {
	f := found{name: name, metadata: filepath.Join(dir, action.MetadataFile)}
	program := "run"
	bases := []string{program + "-" + runtime.GOOS + "_" + runtime.GOARCH, program + "-" + runtime.GOOS, program}
	extensions := []string{""}
	if runtime.GOOS == "windows" {
		extensions = []string{".exe", ".bat"}
	}
	for _, base := range bases {
		for _, extension := range extensions {
			f.program = filepath.Join(dir, base+extension)
			switch info, err := os.Stat(f.program); {
			case err != nil || !info.Mode().IsRegular():
			case !executable(info):
				return f, fmt.Errorf("%s is not executable: chmod +x", f.program)
			default:
				return f, nil
			}
		}
	}
	return f, fmt.Errorf("the folder has none of %s, which this machine could run", strings.Join(bases, ", "))
}

// lonely is a DDL without a program; one that has a program is that program's matter.
func lonely(path, name string) (f found, there bool, err error) {
	dir := filepath.Dir(path)
	for _, program := range []string{name, name + ".exe", name + ".bat"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			return f, false, nil
		}
	}
	text, err := puppetenv.ReadBounded(path, action.MaxMetadataBytes)
	if err != nil {
		return f, false, nil //nolint:nilerr // it may be anything
	}
	if _, err := ddl.JSON(name, text); err != nil {
		return f, false, nil //nolint:nilerr // it may be anything
	}
	return found{name: name, program: path}, true, fmt.Errorf("it describes a module, and there is no program %s beside it", name)
}

// load reads a module, and makes orders of it.
func load(ctx context.Context, cfg Config, f found) (orders.Module, error) {
	now, err := f.read(ctx, cfg)
	if err != nil {
		return orders.Module{}, err
	}
	k := &kept{cfg: cfg, found: f, now: now}
	contract := k.pxp
	if f.ddl != "" {
		contract = k.choria
	}
	return now.module(contract)
}

// ask is what a module prints as its metadata. A word on standard error rejects it.
func ask(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataTime)
	defer cancel()
	line := append(commandLine(path), "metadata")
	cmd := exec.CommandContext(ctx, line[0], line[1:]...) //nolint:gosec // the operator's own executables
	out, errs := output.Beginning{Most: action.MaxMetadataBytes}, output.Beginning{Most: action.MaxMetadataBytes}
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	group.Own(cmd)
	err := cmd.Run()
	switch {
	case len(errs.Bytes()) > 0:
		return nil, fmt.Errorf("its metadata came with words on standard error: %.500q", errs.String())
	case err != nil:
		return nil, fmt.Errorf("its metadata: %w", err)
	case out.Cut():
		return nil, fmt.Errorf("its metadata has more than %d bytes", action.MaxMetadataBytes)
	}
	return out.Bytes(), nil
}

// commandLine is how an executable is started.
func commandLine(path string) []string {
	if runtime.GOOS == "windows" && strings.EqualFold(filepath.Ext(path), ".bat") {
		return []string{"cmd.exe", "/c", path}
	}
	return []string{path}
}

// readConfiguration reads a configuration file; nil: there is none.
func readConfiguration(path string) ([]byte, error) {
	text, err := puppetenv.ReadBounded(path, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

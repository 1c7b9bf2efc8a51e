package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Config is where modules are.
type Config struct {
	Dir       string // of the executables; one that is not there has none
	ConfigDir string // of their configuration: NAME.conf
	Log       *slog.Logger
}

const (
	maxConfigBytes = 1 << 20
	maxModules     = 100
	metadataTime   = 30 * time.Second
)

// Load asks all executables of a directory what they can do, in the order of their names.
func Load(ctx context.Context, cfg Config) ([]orders.Module, error) {
	entries, err := os.ReadDir(cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the directory of modules %s cannot be read", cfg.Dir)
	}
	var modules []orders.Module
	for _, entry := range entries {
		path := filepath.Join(cfg.Dir, entry.Name())
		name, ok := moduleName(path)
		if !ok || slices.ContainsFunc(modules, func(m orders.Module) bool { return m.Name == name }) {
			continue
		}
		if len(modules) == maxModules {
			cfg.Log.WarnContext(ctx, "module passed over, there are too many", "path", path, "most", maxModules)
			continue
		}
		m, err := load(ctx, cfg, name, path)
		if err != nil {
			cfg.Log.ErrorContext(ctx, "module passed over, it cannot be used", "path", path, "err", err)
			continue
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// moduleName is the name of the module at a path, if there is one. Links are followed.
func moduleName(path string) (name string, ok bool) {
	base := filepath.Base(path)
	extension := filepath.Ext(base)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || len(base) > pxp.MaxNameBytes {
		return "", false
	}
	if runtime.GOOS == "windows" {
		lower := strings.ToLower(extension)
		return strings.TrimSuffix(base, extension), lower == ".exe" || lower == ".bat"
	}
	return base, extension == "" && info.Mode().Perm()&0o111 != 0
}

func load(ctx context.Context, cfg Config, name, path string) (orders.Module, error) {
	text, err := ask(ctx, path)
	if err != nil {
		return orders.Module{}, err
	}
	described, err := action.Parse(name, text)
	if err != nil {
		return orders.Module{}, err
	}
	configuration, err := readConfiguration(filepath.Join(cfg.ConfigDir, name+".conf"))
	if err != nil {
		return orders.Module{}, err
	}
	return external{commandLine(path), configuration}.module(described)
}

// commandLine is how an executable is started.
func commandLine(path string) []string {
	if runtime.GOOS == "windows" && strings.EqualFold(filepath.Ext(path), ".bat") {
		return []string{"cmd.exe", "/c", path}
	}
	return []string{path}
}

// ask is what a module prints as its metadata. A word on standard error rejects it.
func ask(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataTime)
	defer cancel()
	line := append(commandLine(path), "metadata")
	cmd := exec.CommandContext(ctx, line[0], line[1:]...) //nolint:gosec // the operator's own executables
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case errs.kept.Len() > 0:
		return nil, fmt.Errorf("its metadata came with words on standard error: %.500q", errs.kept.String())
	case err != nil:
		return nil, fmt.Errorf("its metadata: %w", err)
	case out.cut:
		return nil, fmt.Errorf("its metadata has more than %d bytes", action.MaxMetadataBytes)
	}
	return out.kept.Bytes(), nil
}

// limited keeps the beginning of what is written to it.
type limited struct {
	kept bytes.Buffer
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), action.MaxMetadataBytes-l.kept.Len())
	l.cut = l.cut || keep < len(p)
	l.kept.Write(p[:keep])
	return len(p), nil
}

// readConfiguration reads a configuration file; nil: there is none.
func readConfiguration(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err == nil && len(text) > maxConfigBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxConfigBytes)
	}
	return text, err
}

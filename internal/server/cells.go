package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/program/cell"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// openCells finds out what cells there are, by a test in the data directory, and says what is missing.
func openCells(ctx context.Context, c settings.Config, data string, log *slog.Logger) (*cell.Keeper, error) {
	dir := filepath.Join(data, "cells")
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("empty the directory in which cells are tried out: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory to try out cells: %w", err)
	}
	k, err := cell.Open(ctx, cell.Config{Mode: cell.Mode(c.CompileIsolation), User: c.CompileUser, Dir: dir, Hide: data})
	if err != nil {
		return nil, err
	}
	standing := k.Standing()
	switch {
	case standing.Mode == cell.Off:
		log.WarnContext(ctx, "compile_isolation is off: code may do whatever the server may")
	case len(standing.Missing) > 0:
		log.WarnContext(ctx, "the cells that code runs in lack something", "without", standing.Reasons())
	default:
		log.InfoContext(ctx, "code runs in cells", "user", standing.User, "landlock", standing.Landlock)
	}
	if err := k.Harden(); err != nil {
		log.WarnContext(ctx, "other processes of this user can look into the server", "err", err)
	}
	return k, nil
}

// isolation is what /status says of the cells: which parts they have, without reasons, since everybody may ask.
func isolation(cells *cell.Keeper) func(bool) map[string]any {
	return func(bool) map[string]any {
		s := cells.Standing()
		return map[string]any{
			"isolation":  s.Mode,
			"landlock":   s.Landlock,
			"seccomp":    s.Seccomp,
			"namespaces": s.Spaces,
			"own_user":   s.User != "",
			"missing":    s.Parts(),
		}
	}
}

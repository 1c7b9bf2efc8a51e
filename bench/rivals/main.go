package rivals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Main runs one benchmark in a temporary directory and ends the program. The
// context is done after limit, on Ctrl-C and on SIGTERM; work must then stop
// what it started and return. The directory is removed at the end unless keep is
// set.
func Main(name string, limit time.Duration, keep bool, work func(ctx context.Context, dir string) error) {
	end(name, run(limit, func(ctx context.Context) error { return inTemp(ctx, name, keep, work) }))
}

// MainIn is [Main] in a directory that stays.
func MainIn(name string, limit time.Duration, dir string, work func(ctx context.Context, dir string) error) {
	end(name, run(limit, func(ctx context.Context) error {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // PostgreSQL's user must pass through
			return err
		}
		return work(ctx, dir)
	}))
}

func end(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(limit time.Duration, work func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// Orphans of a killed server come to us rather than to init, so that they can be found.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return work(ctx)
}

func inTemp(ctx context.Context, name string, keep bool, work func(ctx context.Context, dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "tutti-"+name+"-")
	if err != nil {
		return err
	}
	// PostgreSQL runs as another user and must reach its directory in here.
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // names inside are not listed
		return err
	}
	if keep {
		fmt.Fprintln(os.Stderr, "files are kept in", dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	return work(ctx, dir)
}

// CopyTree copies a directory.
func CopyTree(from, to string) error { return os.CopyFS(to, os.DirFS(from)) }

// AllowOpenFiles says whether this process may have n connections, besides what else it opens.
func AllowOpenFiles(n int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if need := n + 500; limit.Max < uint64(need) { //nolint:gosec // a small number
		return fmt.Errorf("%d connections need %d open files, the limit is %d: ulimit -Hn %d", n, need, limit.Max, need)
	}
	return nil
}

// Package eventlog is the directory in which Puppet runs write their events: events.Log.
//
// A run has a directory of its name. In it are files of JSON lines, 000001.jsonl and so on, which the run appends to;
// with the next file, the one before is complete. Its file "lock" is held for as long as the run lives
// (flock). What writes them is the hook of package puppetrun.
//
// # Limits
//
// A run keeps its own files within bounds. Runs that are over are thrown away, the oldest first, when there are more
// than MaxRuns; when all have more than MaxBytes, the oldest files go, but the last one of each run. Lines have
// maxLine bytes; one that cannot be read counts as lost.
//
// # Errors
//
// NotFound for a run that is not there; the system's own otherwise.
//
// # Concurrency
//
// A Log is used by one goroutine; Run, which watches the directory, by another.
package eventlog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Log is the directory.
type Log struct {
	dir     string
	slog    *slog.Logger
	limits  Limits
	watcher *fsnotify.Watcher
	changed chan struct{}
	tidied  time.Time

	mu      sync.Mutex
	watched map[string]bool
}

// Limits bound the directory.
type Limits struct {
	MaxRuns  int
	MaxBytes int64
}

// DefaultLimits are good for a node.
func DefaultLimits() Limits { return Limits{MaxRuns: 200, MaxBytes: 128 << 20} }

var _ events.Log = (*Log)(nil)

const (
	suffix   = ".jsonl"
	lockFile = "lock"
	tidying  = time.Minute
)

// Open opens the directory; it is made if need be.
func Open(dir string, limits Limits, log *slog.Logger) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the directory %s for events of Puppet runs cannot be made", dir)
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the directory %s cannot be watched", dir)
	}
	if err := watcher.Add(dir); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Unavailable, err, "the directory %s cannot be watched", dir), watcher.Close())
	}
	return &Log{dir: dir, slog: log, limits: limits, watcher: watcher, changed: make(chan struct{}, 1), watched: map[string]bool{}}, nil
}

// Close ends watching.
func (l *Log) Close() error { return l.watcher.Close() }

// Run watches until ctx is done. What is not noticed is seen when the directory is looked at again.
func (l *Log) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-l.watcher.Events:
			if !ok {
				return nil
			}
			if e.Has(fsnotify.Create) && filepath.Dir(e.Name) == filepath.Clean(l.dir) {
				l.watch(filepath.Base(e.Name))
			}
			if e.Has(fsnotify.Create) || e.Has(fsnotify.Write) {
				l.hint()
			}
		case err, ok := <-l.watcher.Errors:
			if !ok {
				return nil
			}
			l.slog.WarnContext(ctx, "events of Puppet runs are not noticed at once", "err", err)
			l.hint()
		}
	}
}

func (l *Log) hint() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// watch watches the directory of a run.
func (l *Log) watch(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched[run] || pxp.CheckRun(run) != nil {
		return
	}
	if err := l.watcher.Add(filepath.Join(l.dir, run)); err == nil {
		l.watched[run] = true
	}
}

// Changed implements events.Log.
func (l *Log) Changed() <-chan struct{} { return l.changed }

// Runs implements events.Log.
func (l *Log) Runs() ([]string, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	type aged struct {
		name string
		at   time.Time
	}
	var runs []aged
	for _, entry := range entries {
		if !entry.IsDir() || pxp.CheckRun(entry.Name()) != nil {
			continue
		}
		l.watch(entry.Name())
		info, err := os.Stat(filepath.Join(l.dir, entry.Name(), lockFile)) // made when the run began, and never written
		if err != nil {
			if info, err = entry.Info(); err != nil {
				continue
			}
		}
		runs = append(runs, aged{entry.Name(), info.ModTime()})
	}
	slices.SortFunc(runs, func(a, b aged) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	names := make([]string, len(runs))
	for i, run := range runs {
		names[i] = run.name
	}
	if now := time.Now(); len(names) > l.limits.MaxRuns || now.Sub(l.tidied) > tidying {
		l.tidied = now
		return l.tidy(names), nil
	}
	return names, nil
}

// Trim implements events.Log: files whose events are all let go, but the last one, are removed.
func (l *Log) Trim(run string, n int) error {
	files, err := l.files(run)
	if err != nil {
		return err
	}
	for i := range max(0, len(files)-1) {
		first, err := firstNumber(files[i+1])
		if err != nil || first == 0 || first-1 > n {
			return nil //nolint:nilerr // it is not easy now
		}
		if err := os.Remove(files[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Forget implements events.Log.
func (l *Log) Forget(run string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched[run] {
		delete(l.watched, run)
		_ = l.watcher.Remove(filepath.Join(l.dir, run)) // it may be gone
	}
	return os.RemoveAll(filepath.Join(l.dir, run))
}

// files is the files of a run, in order.
func (l *Log) files(run string) ([]string, error) {
	if err := pxp.CheckRun(run); err != nil {
		return nil, err
	}
	dir := filepath.Join(l.dir, run)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there are no events of the run %s", run)
	}
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries { // sorted by name
		if strings.HasSuffix(entry.Name(), suffix) && entry.Type().IsRegular() {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files, nil
}

// tidy keeps the directory within its limits, and returns the runs that are left.
func (l *Log) tidy(runs []string) []string {
	left := runs[:0:0]
	surplus := len(runs) - l.limits.MaxRuns
	for _, run := range runs {
		if surplus > 0 && !alive(filepath.Join(l.dir, run)) {
			l.slog.Warn("events of a Puppet run are thrown away: too many runs wait for the server", "run", run, "at_most", l.limits.MaxRuns)
			_ = l.Forget(run) // tried again the next time
			surplus--
			continue
		}
		left = append(left, run)
	}
	l.shrink(left)
	return left
}

// shrink removes files until there are few enough bytes.
func (l *Log) shrink(runs []string) {
	var candidates []string
	sizes, total := map[string]int64{}, int64(0)
	for _, run := range runs {
		files, err := l.files(run)
		if err != nil {
			continue
		}
		for i, file := range files {
			if info, err := os.Stat(file); err == nil {
				sizes[file] = info.Size()
				total += info.Size()
			}
			if i < len(files)-1 {
				candidates = append(candidates, file)
			}
		}
	}
	for _, file := range candidates {
		if total <= l.limits.MaxBytes {
			return
		}
		l.slog.Warn("events of a Puppet run are thrown away: too much waits for the server", "file", file, "at_most_bytes", l.limits.MaxBytes)
		if os.Remove(file) == nil {
			total -= sizes[file]
		}
	}
}

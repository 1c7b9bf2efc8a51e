package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/fleetgen"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/store/backup"
)

// The cases.
const (
	quietCase   = "no backup"
	firstCase   = "first backup"
	secondCase  = "second backup"
	verifyCase  = "verify"
	restoreCase = "restore"
	thereCase   = "move to PostgreSQL and S3"
	backCase    = "move back"
)

// bench is a server, its nodes, and a directory of backups.
type bench struct {
	settings
	tutti  *rivals.Tutti
	binary string
	dir    string
	ca     *authority.Authority
	fleet  fleetgen.Fleet
	header http.Header
	conns  []*load.Conn // one a worker

	sent   atomic.Int64 // fact sets after the first of each node
	made   backup.Result
	public string
	away   *away
}

// quiet stores facts while there is no backup.
func (b *bench) quiet(ctx context.Context) (measure.Row, error) {
	figures, err := b.whileFactsCome(ctx, func(ctx context.Context) error { return measure.Settle(ctx, b.Quiet) })
	return measure.Row{Server: "tutti", Case: quietCase, Figures: figures}, err
}

// first backs everything up.
func (b *bench) first(ctx context.Context) (measure.Row, error) {
	public, _, err := b.timed(ctx, "backup", "key", b.key())
	if err != nil {
		return measure.Row{}, err
	}
	b.public = strings.TrimSpace(string(public))
	return b.create(ctx, firstCase)
}

// second backs up again when some nodes have stored new content.
func (b *bench) second(ctx context.Context) (measure.Row, error) {
	for node := range b.Nodes * b.Changed / 100 {
		if err := b.content(ctx, node, 2); err != nil {
			return measure.Row{}, err
		}
	}
	return b.create(ctx, secondCase)
}

func (b *bench) key() string     { return filepath.Join(b.dir, "key") }
func (b *bench) backups() string { return filepath.Join(b.dir, "backups") + "/" }

func (b *bench) create(ctx context.Context, name string) (measure.Row, error) {
	before, err := diskBytes(b.backups())
	if err != nil {
		return measure.Row{}, err
	}
	var figures map[string]float64
	waits, err := b.whileFactsCome(ctx, func(ctx context.Context) (err error) {
		figures, err = b.result(ctx, &b.made, "backup", "create", b.backups(), "--data", b.data(), "--recipient", b.public, "-o", "json")
		return err
	})
	if err != nil {
		return measure.Row{}, err
	}
	after, err := diskBytes(b.backups())
	maps.Copy(figures, waits)
	figures["written_mb"] = mb(after - before)
	return measure.Row{Server: "tutti", Case: name, Figures: figures}, err
}

// verify reads the newest backup with all its content.
func (b *bench) verify(ctx context.Context) (measure.Row, error) {
	var verified backup.Result
	figures, err := b.result(ctx, &verified, "backup", "verify", b.backups(), "--identity-file", b.key(), "-o", "json")
	return measure.Row{Server: "tutti", Case: verifyCase, Figures: figures}, errors.Join(err, b.same(verified))
}

// restore brings it back into an empty directory.
func (b *bench) restore(ctx context.Context) (measure.Row, error) {
	var restored backup.Result
	to := filepath.Join(b.dir, "restored")
	figures, err := b.result(ctx, &restored, "backup", "restore", b.backups(), "--data", to, "--identity-file", b.key(), "-o", "json")
	if err := errors.Join(err, b.same(restored)); err != nil {
		return measure.Row{}, err
	}
	bytes, err := diskBytes(to)
	figures["written_mb"] = mb(bytes)
	return measure.Row{Server: "tutti", Case: restoreCase, Figures: figures}, err
}

// same fails unless what was read is what was backed up last.
func (b *bench) same(read backup.Result) error {
	if read.ID != b.made.ID || read.Rows != b.made.Rows || read.Blobs != b.made.Blobs || read.Rows < int64(b.Nodes) || read.Blobs < int64(b.Nodes) {
		return fmt.Errorf("backup %s has %d rows and %d blobs; %s with %d and %d was made of %d nodes", read.ID, read.Rows, read.Blobs,
			b.made.ID, b.made.Rows, b.made.Blobs, b.Nodes)
	}
	return nil
}

// result runs a command whose answer is a backup.Result.
func (b *bench) result(ctx context.Context, into *backup.Result, args ...string) (map[string]float64, error) {
	out, figures, err := b.timed(ctx, args...)
	if err != nil {
		return nil, err
	}
	*into = backup.Result{}
	if err := json.Unmarshal(out, into); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	database, err := diskBytes(filepath.Join(b.data(), "tutti.db"), filepath.Join(b.data(), "tutti.db-wal"))
	figures["database_mb"] = mb(database)
	figures["rows"], figures["blobs"] = float64(into.Rows), float64(into.Blobs)
	figures["new_blobs"], figures["archive_mb"] = float64(into.NewBlobs), mb(into.Bytes)
	return figures, err
}

// timed runs a command of the program and says what it took.
func (b *bench) timed(ctx context.Context, args ...string) ([]byte, map[string]float64, error) {
	cmd := exec.CommandContext(ctx, b.binary, args...) //nolint:gosec // our own binary and arguments
	var errs bytes.Buffer
	cmd.Stderr = &errs
	begin := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("tutti %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	took := time.Since(begin).Seconds()
	figures := map[string]float64{"seconds": took, "cpu_s": (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		figures["peak_rss_mb"] = float64(usage.Maxrss) * 1024 / 1e6
	}
	fmt.Fprintf(os.Stderr, "backup: tutti %s: %.1f s\n", strings.Join(args[:2], " "), took)
	return out, figures, nil
}

// whileFactsCome does work while fact sets are stored at an even rate, and says how long these waited.
func (b *bench) whileFactsCome(ctx context.Context, work func(context.Context) error) (map[string]float64, error) {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	var latency measure.Latency
	ended := make(chan error, 1)
	go func() {
		var err error
		latency, err = b.sendFacts(sending)
		ended <- err
	}()
	err := work(ctx)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return nil, err
	}
	if latency.Count == 0 {
		return nil, errors.New("no fact set was stored meanwhile: more nodes, or a higher -rate")
	}
	return map[string]float64{
		"facts_stored": float64(latency.Count), "facts_p50_ms": ms(latency.P50), "facts_p99_ms": ms(latency.P99), "facts_max_ms": ms(latency.Max),
	}, nil
}

// sendFacts stores fact sets until ctx is done. A latency counts from when the set was to be sent.
func (b *bench) sendFacts(ctx context.Context) (measure.Latency, error) {
	begin, first := time.Now(), b.sent.Load()
	var waits []time.Duration
	results := make(chan time.Duration, b.Workers)
	done := make(chan error, 1)
	go func() {
		_, err := load.Run(context.WithoutCancel(ctx), load.Plan{Workers: b.Workers}, func(_ context.Context, worker, _ int) error {
			n := b.sent.Add(1) - 1
			due := begin.Add(time.Second * time.Duration(n-first) / time.Duration(b.Rate))
			if measure.Settle(ctx, time.Until(due)) != nil {
				return errStopped
			}
			if err := b.storeFacts(context.WithoutCancel(ctx), worker, b.Nodes+int(n)); err != nil {
				return err
			}
			results <- time.Since(due)
			return nil
		})
		close(results)
		done <- err
	}()
	for wait := range results {
		waits = append(waits, wait)
	}
	err := <-done
	if errors.Is(err, errStopped) {
		err = nil
	}
	return measure.Summarize(waits), err
}

// errStopped: enough was sent.
var errStopped = errors.New("stopped")

// diskBytes is what files take, and what is below directories. A missing one takes nothing.
func diskBytes(paths ...string) (sum int64, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || entry.IsDir() {
				return err
			}
			if info, err := entry.Info(); err == nil {
				sum += info.Size()
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
func mb(n int64) float64         { return float64(n) / 1e6 }

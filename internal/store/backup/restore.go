package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Share is a part of a server that can be restored alone.
type Share string

// The shares. Everything is all of them, and the other small files of the data directory.
const (
	Everything Share = ""
	OnlyCA     Share = "ca"
	OnlyRows   Share = "records"
	OnlyBlobs  Share = "blobs"
)

// Shares lists those that have a name.
func Shares() []Share { return []Share{OnlyCA, OnlyRows, OnlyBlobs} }

// SettingsFile is where a restore puts the configuration file of the backup: to look into, no
// server reads it.
const SettingsFile = "settings-of-backup.yaml"

// Destination is where a backup is restored to. Its data directory is held by the caller.
type Destination struct {
	Dir      string
	Share    Share
	Loader   func(ctx context.Context, schema Schema) (Loader, error) // of empty tables with that schema
	Blobs    cas.Store
	Settle   func(ctx context.Context, h Header) error // the last step; may be nil
	Progress func(what string, done, total int64)
}

// CheckEmpty refuses a destination in which something would be lost or mixed.
func CheckEmpty(dir string, share Share) error {
	switch share {
	case OnlyBlobs:
		return nil // what is there under its digest is the same
	case OnlyCA:
		if entries, err := os.ReadDir(filepath.Join(dir, caDir)); err == nil && len(entries) > 0 {
			return notEmpty(filepath.Join(dir, caDir), entries)
		}
		return nil
	case OnlyRows:
		if _, err := os.Lstat(filepath.Join(dir, records)); err == nil {
			return fault.New(fault.Conflict, "%s is there: move it away with its -wal and -shm first, nothing is overwritten", filepath.Join(dir, records))
		}
		return nil
	case Everything:
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return disk(dir, err)
	}
	for _, entry := range entries {
		if entry.Name() != "lost+found" {
			if err := CheckDataDir(dir); err != nil {
				return err
			}
			return notEmpty(dir, entries)
		}
	}
	return nil
}

func notEmpty(dir string, entries []fs.DirEntry) error {
	var names []string
	for _, entry := range entries[:min(len(entries), 5)] {
		names = append(names, entry.Name())
	}
	return fault.New(fault.Conflict, "%s is not empty (%s): nothing is overwritten; give an empty directory, or move away what is there",
		dir, strings.Join(names, ", "))
}

// Restore brings back a backup; the newest of a directory if id is empty. A server starts on the
// data directory only when it ended, and settle with it.
func Restore(ctx context.Context, target, id string, key Key, to Destination) (Result, error) {
	f, err := find(target, id, key)
	if err != nil {
		return Result{}, err
	}
	done, err := mark(to.Dir, to.Share)
	if err != nil {
		return Result{}, err
	}
	r := &restoring{checking: checking{found: f, ctx: ctx, progress: to.Progress}, to: to}
	result, err := r.all(ctx)
	if err == nil && to.Settle != nil {
		err = to.Settle(ctx, result.Header)
	}
	if err != nil {
		return result, disk(to.Dir, err)
	}
	return result, done()
}

// restoring is the visitor that writes what it is told.
type restoring struct {
	checking
	to     Destination
	loader Loader
	tables int64

	held      []cas.Source
	heldBytes int64
}

// all reads the archive to its end. What it holds is usable only then.
func (r *restoring) all(ctx context.Context) (result Result, err error) {
	defer func() {
		if r.loader != nil {
			err = errors.Join(err, r.loader.Close())
		}
	}()
	var manifest Manifest
	result, manifest, err = r.read(ctx, r)
	if err == nil && r.held != nil {
		err = r.flush()
	}
	if err != nil || r.loader == nil {
		return result, err
	}
	return result, r.loader.Finish(ctx, manifest.Sequences)
}

func (r *restoring) wants(share Share) bool { return r.to.Share == Everything || r.to.Share == share }

func (r *restoring) begin(h Header) (err error) {
	if r.wants(OnlyRows) {
		r.loader, err = r.to.Loader(r.ctx, h.Schema)
	}
	return err
}

func (r *restoring) file(name string, content []byte) error {
	if r.to.Share == Everything || r.to.Share == OnlyCA && strings.HasPrefix(name, caDir+"/") {
		return writeFile(r.to.Dir, name, content)
	}
	return nil
}

func (r *restoring) settings(content []byte) error {
	if r.to.Share == Everything {
		return writeFile(r.to.Dir, SettingsFile, content)
	}
	return nil
}

func (r *restoring) rows(table Table, rows iter.Seq2[[]any, error]) error {
	if r.loader == nil {
		return r.checking.rows(table, rows)
	}
	r.tables++
	if r.to.Progress != nil {
		r.to.Progress("parts of tables", r.tables, 0)
	}
	return r.loader.Load(r.ctx, table, rows)
}

// Small blobs are stored together: they share what the disk needs for each.
const (
	heldBlobs = 4096
	heldBytes = 64 << 20
)

func (r *restoring) blob(d fleet.Digest, size int64, content io.Reader) error {
	if !r.wants(OnlyBlobs) {
		return r.checking.blob(d, size, content)
	}
	r.count()
	return r.put(d, size, content)
}

func (r *restoring) listed(d fleet.Digest, size int64) error {
	if !r.wants(OnlyBlobs) {
		return nil
	}
	r.count()
	return r.beside(d, size, func(content io.Reader) error { return r.put(d, size, content) })
}

// put stores a blob, or holds it until there are more.
func (r *restoring) put(d fleet.Digest, size int64, content io.Reader) error {
	if size > keptBytes {
		return r.to.Blobs.PutAs(r.ctx, d, content)
	}
	text, err := io.ReadAll(io.LimitReader(content, size+1))
	if err != nil {
		return err
	}
	r.held = append(r.held, cas.Source{Digest: d, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }})
	if r.heldBytes += size; len(r.held) < heldBlobs && r.heldBytes < heldBytes {
		return nil
	}
	return r.flush()
}

func (r *restoring) flush() error {
	err := cas.PutAll(r.ctx, r.to.Blobs, slices.Values(r.held))
	r.held, r.heldBytes = nil, 0
	return err
}

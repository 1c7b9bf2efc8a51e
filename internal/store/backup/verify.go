package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Verify reads a whole backup, with every blob that belongs to it, and says what it holds; an
// error if anything of it is not as it was written.
func Verify(ctx context.Context, target, id string, key Key, progress func(what string, done, total int64)) (Result, error) {
	f, err := find(target, id, key)
	if err != nil {
		return Result{}, err
	}
	result, _, err := f.read(ctx, &checking{found: f, ctx: ctx, progress: progress})
	return result, err
}

// CheckKey says whether a backup is there and the key opens it: to be asked before anything is made for a restore.
func CheckKey(target, id string, key Key) error {
	f, err := find(target, id, key)
	if err != nil {
		return err
	}
	file, err := os.Open(f.path)
	if err != nil {
		return disk(f.path, err)
	}
	defer func() { _ = file.Close() }()
	_, err = f.key.open(file)
	return describe(f.path, err)
}

// read reads the archive and tells v.
func (f found) read(ctx context.Context, v visitor) (Result, Manifest, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return Result{}, Manifest{}, disk(f.path, err)
	}
	defer func() { _ = file.Close() }()
	result := Result{Path: f.path}
	header, manifest, err := read(ctx, file, f.key, v)
	if err != nil {
		return result, manifest, describe(f.path, err)
	}
	result.Header = header
	result.count(manifest)
	if info, err := file.Stat(); err == nil {
		result.Bytes = info.Size()
	}
	return result, manifest, nil
}

// describe puts the place before a fault's sentence and keeps its kind.
func describe(place string, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return &fault.Error{Kind: f.Kind, Detail: place + ": " + f.Detail, Err: f.Err}
	}
	return err
}

// checking is the visitor that only looks.
type checking struct {
	found
	ctx      context.Context //nolint:containedctx // for the length of one read
	progress func(what string, done, total int64)
	blobs    int64
}

func (c *checking) begin(Header) error        { return nil }
func (c *checking) file(string, []byte) error { return nil }
func (c *checking) settings([]byte) error     { return nil }
func (c *checking) rows(_ Table, rows iter.Seq2[[]any, error]) error {
	for _, err := range rows {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checking) blob(_ fleet.Digest, _ int64, content io.Reader) error {
	c.count()
	_, err := io.Copy(io.Discard, content)
	return err
}

func (c *checking) listed(d fleet.Digest, size int64) error {
	c.count()
	return c.beside(d, size, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, reader{c.ctx, r})
		return err
	})
}

func (c *checking) count() {
	if c.blobs++; c.progress != nil && c.blobs%1000 == 0 {
		c.progress("blobs", c.blobs, 0)
	}
}

// beside passes a blob that stands beside the archive to use, and fails unless that read
// it as it was written.
func (f found) beside(d fleet.Digest, size int64, use func(io.Reader) error) error {
	if f.dir == "" {
		return fault.New(fault.Invalid, "its blobs stand beside it: name the directory that it is from")
	}
	content, file, err := openBlob(f.dir, d, f.key)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	hash, counted := sha256.New(), &counter{}
	content = io.TeeReader(content, io.MultiWriter(hash, counted))
	if err := use(content); err != nil {
		return damagedBlob(d, err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return damagedBlob(d, err)
	}
	if hex.EncodeToString(hash.Sum(nil)) != string(d) || counted.n != size {
		return fault.New(fault.Invalid, "blob %s does not have its digest any more: it was altered", d)
	}
	return nil
}

func damagedBlob(d fleet.Digest, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, known := errors.AsType[*fault.Error](err); known {
		return err
	}
	return fault.Wrap(fault.Invalid, err, "blob %s is cut or altered (%v)", d, err)
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

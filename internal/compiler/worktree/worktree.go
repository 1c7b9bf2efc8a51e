// Package worktree gives versions of code as directories; it implements
// code.Checkout for those who need files, such as compile workers.
//
// A version's directory is built beside its place and renamed into it, so that
// it is there whole or not at all. The next start removes what a killed process
// left. Files are hard links to blobs where the
// store can make them: a version of ten thousand files costs no space, and
// nobody may write to them.
//
//	<dir>/tmp/          directories that are being built
//	<dir>/<version>/    built ones
//
// Directories stay when nobody holds them any more, because they will probably be
// asked for again; Prune removes those that nobody holds and nobody wants kept.
//
// Errors: those of the manifest loader (NotFound for an unknown version) and of
// the blob store (NotFound for a missing blob, Unavailable for a full disk).
//
// Concurrency: every method may be called concurrently. Callers who ask for the
// same version share one build, which goes on when one of them leaves.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Manifests reads versions; *code.Library is one.
type Manifests interface {
	Manifest(ctx context.Context, id code.VersionID) (code.Manifest, error)
}

// Worktree is versions as directories below one directory.
type Worktree struct {
	dir       string
	manifests Manifests
	blobs     cas.Store
	building  singleflight.Group

	mu sync.Mutex
	// held counts who uses a version. A version with an entry is not pruned.
	held map[code.VersionID]int
}

var _ code.Checkout = (*Worktree)(nil)

// New returns the work trees in dir, which it makes if need be. What an earlier
// process built is removed: after a power cut a directory may be there without
// all of its bytes, and building it again takes a moment. Only one process may
// use dir.
func New(dir string, manifests Manifests, blobs cas.Store) (*Worktree, error) {
	w := &Worktree{dir: dir, manifests: manifests, blobs: blobs, held: map[code.VersionID]int{}}
	if err := w.clear(); err != nil {
		return nil, w.diskFault(err)
	}
	if err := os.MkdirAll(w.tmpDir(), 0o700); err != nil {
		return nil, w.diskFault(err)
	}
	return w, nil
}

// clear removes what is ours and nothing else.
func (w *Worktree) clear() error {
	entries, err := os.ReadDir(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, err := fleet.ParseDigest(entry.Name()); err != nil && entry.Name() != "tmp" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(w.dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worktree) tmpDir() string { return filepath.Join(w.dir, "tmp") }

func (w *Worktree) path(id code.VersionID) string { return filepath.Join(w.dir, string(id)) }

// Path implements code.Checkout.
func (w *Worktree) Path(ctx context.Context, id code.VersionID) (dir string, release func(), err error) {
	if _, err := fleet.ParseDigest(string(id)); err != nil {
		return "", nil, err
	}
	release = w.hold(id)
	if err := w.ensure(ctx, id); err != nil {
		release()
		return "", nil, err
	}
	return w.path(id), release, nil
}

// hold keeps a version from being pruned. It is taken before the directory is
// looked for, so that it cannot go away between the look and the answer.
func (w *Worktree) hold(id code.VersionID) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[id]++
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.held[id]--; w.held[id] == 0 {
			delete(w.held, id)
		}
	})
}

func (w *Worktree) ensure(ctx context.Context, id code.VersionID) error {
	if isDir(w.path(id)) {
		return nil
	}
	built := w.building.DoChan(string(id), func() (any, error) {
		// The build holds the version itself: all who asked may leave.
		release := w.hold(id)
		defer release()
		return nil, w.build(context.WithoutCancel(ctx), id)
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-built:
		return result.Err
	}
}

func isDir(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

func (w *Worktree) build(ctx context.Context, id code.VersionID) (err error) {
	if isDir(w.path(id)) {
		return nil
	}
	m, err := w.manifests.Manifest(ctx, id)
	if err != nil {
		return err
	}
	tmp := filepath.Join(w.tmpDir(), uuid.NewString())
	defer func() {
		if err != nil {
			err = errors.Join(w.diskFault(err), os.RemoveAll(tmp))
		}
	}()
	if err := w.fill(ctx, tmp, m); err != nil {
		return fmt.Errorf("check out version %s: %w", id.Short(), err)
	}
	return os.Rename(tmp, w.path(id))
}

// linkers is how many files are made at a time.
const linkers = 4

func (w *Worktree) fill(ctx context.Context, root string, m code.Manifest) error {
	if err := makeDirs(root, m.Files); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(linkers)
	for chunk := range slices.Chunk(m.Files, 256) {
		group.Go(func() error {
			for _, f := range chunk {
				if err := w.place(ctx, f, filepath.Join(root, filepath.FromSlash(f.Path))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func makeDirs(root string, files []code.File) error {
	made := map[string]bool{}
	for _, dir := range append([]code.File{{Path: ".", Kind: code.Dir}}, files...) {
		name := filepath.Join(root, filepath.FromSlash(dir.Path))
		if dir.Kind != code.Dir {
			name = filepath.Dir(name)
		}
		if made[name] {
			continue
		}
		made[name] = true
		if err := os.MkdirAll(name, 0o755); err != nil { //nolint:gosec // the parent directory decides who may look
			return err
		}
	}
	return nil
}

func (w *Worktree) place(ctx context.Context, f code.File, name string) error {
	switch f.Kind {
	case code.Dir:
		return nil
	case code.Link:
		return os.Symlink(f.Target, name)
	case code.Regular:
	}
	if linker, ok := w.blobs.(cas.Linker); ok {
		return linker.Link(ctx, f.Digest, name, f.Executable)
	}
	return w.copy(ctx, f, name)
}

// copy is for stores that cannot link.
func (w *Worktree) copy(ctx context.Context, f code.File, name string) error {
	blob, err := w.blobs.Open(ctx, f.Digest)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	mode := fs.FileMode(0o444)
	if f.Executable {
		mode = 0o555
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, blob)
	return errors.Join(err, out.Close())
}

// Prune removes the directories that nobody holds and keep does not ask for. It
// returns how many.
func (w *Worktree) Prune(ctx context.Context, keep func(code.VersionID) bool) (removed int, err error) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return 0, w.diskFault(err)
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		id, err := fleet.ParseDigest(entry.Name())
		if err != nil || keep(id) {
			continue
		}
		gone, err := w.discard(id)
		if err != nil {
			return removed, w.diskFault(err)
		}
		if gone {
			removed++
		}
	}
	return removed, nil
}

// discard takes an unheld directory out of sight at once and removes it then:
// whoever asks meanwhile builds a new one.
func (w *Worktree) discard(id code.VersionID) (bool, error) {
	tmp := filepath.Join(w.tmpDir(), uuid.NewString())
	if moved, err := w.moveUnheld(id, tmp); !moved || err != nil {
		return false, err
	}
	return true, os.RemoveAll(tmp)
}

func (w *Worktree) moveUnheld(id code.VersionID, to string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[id] > 0 {
		return false, nil
	}
	err := os.Rename(w.path(id), to)
	if errors.Is(err, fs.ErrNotExist) { // another Prune was faster
		return false, nil
	}
	return err == nil, err
}

func (w *Worktree) diskFault(err error) error {
	if _, ours := errors.AsType[*fault.Error](err); ours {
		return err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(fault.Unavailable, err, "the disk of %s is full: free space, nothing was checked out", w.dir)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written to: check its owner and how it is mounted", w.dir)
	default:
		return err
	}
}

package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/filelock"
)

const (
	layoutFile = "tutti-backups.json"
	keyFile    = "key.age"
	extension  = ".tutti"
)

// Layout is what a directory of backups says of itself.
type Layout struct {
	Format     int      `json:"format"`
	Recipients []string `json:"recipients,omitempty"` // the public keys; empty: a passphrase
}

// directory is a directory of backups that is written to.
type directory struct {
	path  string
	lock  Lock     // the directory's own key, if it has a passphrase
	alone *os.File // while it is open, no other backup is made here
	batch []waitingBlob
	bytes int64
}

// waitingBlob is content that is written but does not have its name yet.
type waitingBlob struct{ from, to string }

// A batch of blobs shares one sync. What a running server writes waits for its end on the same disk, so batches are small: with 4096
// blobs facts waited nine times as long as without a backup, with 128 not twice.
const (
	batchBlobs = 128
	batchBytes = 8 << 20
)

// openDirectory opens a directory of backups for a lock, and makes it if it is empty or not
// there. Conflict while another backup is made there.
func openDirectory(path string, lock Lock) (*directory, error) {
	if err := os.MkdirAll(filepath.Join(path, "blobs"), 0o700); err != nil {
		return nil, disk(path, err)
	}
	held, err := alone(path)
	if err != nil {
		return nil, err
	}
	d := &directory{path: path, lock: lock, alone: held}
	if err := d.open(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// alone opens a directory of backups for one backup at a time: what it finds begun there is then of one that was killed. A file
// system without locks is used as it is.
func alone(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, disk(path, err)
	}
	if errors.Is(filelock.Exclusive(dir), filelock.ErrHeld) {
		_ = dir.Close()
		return nil, fault.New(fault.Conflict, "another backup is being made in %s: wait for its end", path)
	}
	return dir, nil
}

func (d *directory) close() { _ = d.alone.Close() }

// open looks at what the directory is, and clears it of what backups left that were killed.
func (d *directory) open() error {
	path, lock := d.path, d.lock
	layout, err := readLayout(path)
	if errors.Is(err, fs.ErrNotExist) {
		layout, err = d.begin(lock)
	}
	if err != nil {
		return err
	}
	if !slices.Equal(layout.Recipients, lock.names) {
		to := "a passphrase"
		if len(layout.Recipients) > 0 {
			to = strings.Join(layout.Recipients, ", ")
		}
		return fault.New(fault.Conflict, "the backups in %s are encrypted to %s: give the same again, or another directory", path, to)
	}
	if lock.passphrase != "" {
		if d.lock, err = ownLock(path, KeyOf(lock.passphrase)); err != nil {
			return err
		}
	}
	return disk(path, errors.Join(removeUnfinished(path), os.RemoveAll(filepath.Join(path, "tmp"))))
}

func removeUnfinished(path string) (err error) {
	left, globErr := filepath.Glob(filepath.Join(escape(path), ".*"+unfinished))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return errors.Join(globErr, err)
}

func readLayout(path string) (layout Layout, err error) {
	text, err := os.ReadFile(filepath.Join(path, layoutFile))
	if err != nil {
		return layout, err
	}
	if err := json.Unmarshal(text, &layout); err != nil || layout.Format < 1 {
		return layout, fault.New(fault.Invalid, "%s cannot be read: this is no directory of backups, or it is damaged", filepath.Join(path, layoutFile))
	}
	if layout.Format > format {
		return layout, fault.New(fault.Conflict, "%s has format %d, this tutti reads up to %d: use a newer one", path, layout.Format, format)
	}
	return layout, nil
}

// begin makes a directory of backups out of an empty one.
func (d *directory) begin(lock Lock) (Layout, error) {
	layout := Layout{Format: format, Recipients: lock.names}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return layout, disk(d.path, err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "blobs" && name != keyFile && name != "lost+found" && !isUnfinished(name) {
			return layout, fault.New(fault.Conflict, "%s holds other files (%s): give an empty directory", d.path, name)
		}
	}
	if lock.passphrase != "" {
		own, err := age.GenerateX25519Identity()
		if err != nil {
			return layout, err
		}
		var text bytes.Buffer
		w, err := lock.seal(&text)
		if err != nil {
			return layout, err
		}
		if _, err := io.WriteString(w, own.String()+"\n"); err != nil {
			return layout, err
		}
		if err := w.Close(); err != nil {
			return layout, err
		}
		if err := replace(filepath.Join(d.path, keyFile), text.Bytes()); err != nil {
			return layout, err
		}
	}
	text, err := json.Marshal(layout)
	if err != nil {
		return layout, err
	}
	return layout, replace(filepath.Join(d.path, layoutFile), append(text, '\n'))
}

// ownKey is the key of a directory that has a passphrase; key itself for another one.
func ownKey(path string, key Key) (Key, error) {
	file, err := os.Open(filepath.Join(path, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return key, nil
	}
	if err != nil {
		return key, disk(path, err)
	}
	defer func() { _ = file.Close() }()
	plain, err := key.open(file)
	if err != nil {
		return key, err
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxSmall))
	if err != nil {
		return key, damaged(err)
	}
	return KeyIn(text)
}

// ownLock is what the directory's own key opens.
func ownLock(path string, key Key) (Lock, error) {
	own, err := ownKey(path, key)
	if err != nil {
		return Lock{}, err
	}
	if len(own.identities) > 0 {
		if identity, ok := own.identities[0].(*age.X25519Identity); ok {
			return LockTo(identity.Recipient().String())
		}
	}
	return Lock{}, fault.New(fault.Invalid, "%s is missing or damaged: begin another directory", filepath.Join(path, keyFile))
}

func blobPath(path string, d fleet.Digest) string {
	return filepath.Join(path, "blobs", string(d[:2]), string(d)+".age")
}

// has says whether a blob is there already.
func (d *directory) has(digest fleet.Digest) bool {
	_, err := os.Lstat(blobPath(d.path, digest))
	return err == nil
}

// put writes a blob; it has its name after flush.
func (d *directory) put(digest fleet.Digest, size int64, content io.Reader) error {
	tmp := filepath.Join(d.path, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return disk(d.path, err)
	}
	from := filepath.Join(tmp, string(digest))
	file, err := os.OpenFile(from, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return disk(d.path, err)
	}
	w, err := d.lock.seal(file)
	if err == nil {
		var n int64
		n, err = io.Copy(w, io.LimitReader(content, size))
		err = errors.Join(err, w.Close())
		if err == nil && n != size {
			err = fmt.Errorf("blob %s became shorter while it was read", digest.Short())
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return disk(d.path, err)
	}
	d.batch, d.bytes = append(d.batch, waitingBlob{from, blobPath(d.path, digest)}), d.bytes+size
	if len(d.batch) >= batchBlobs || d.bytes >= batchBytes {
		return d.flush()
	}
	return nil
}

// commit gives the rest of what was put its names, and brings all names to the disk.
func (d *directory) commit() error {
	if err := d.flush(); err != nil {
		return err
	}
	return disk(d.path, syncAll(d.path))
}

// flush gives what was put its names, when its bytes are on the disk. The names follow with the next sync.
func (d *directory) flush() error {
	if len(d.batch) == 0 {
		return nil
	}
	if err := syncAll(d.path); err != nil {
		return disk(d.path, err)
	}
	for _, blob := range d.batch {
		err := os.Rename(blob.from, blob.to)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.MkdirAll(filepath.Dir(blob.to), 0o700); err == nil {
				err = os.Rename(blob.from, blob.to)
			}
		}
		if err != nil {
			return disk(d.path, err)
		}
	}
	d.batch, d.bytes = nil, 0
	return nil
}

// openBlob opens a blob of a directory of backups.
func openBlob(path string, d fleet.Digest, key Key) (io.Reader, io.Closer, error) {
	file, err := os.Open(blobPath(path, d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fault.New(fault.Invalid, "blob %s is missing in %s: another backup may have it", d, path)
	}
	if err != nil {
		return nil, nil, disk(path, err)
	}
	plain, err := key.open(file)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("blob %s: %w", d, err), file.Close())
	}
	return plain, file, nil
}

// Package filebucket keeps the file contents that agents back up before they
// overwrite them, under the checksums that agents name them by.
//
// A node sees only contents that it backed up itself. The contents of one node are bounded (Quota): files,
// which are pairs of a content and a path, and bytes, in which a content counts once however many paths it has.
//
// Errors: NotFound for a checksum that was never backed up; Invalid for content that does not have its
// checksum; Conflict that wraps ErrFull for a node that has reached its quota.
package filebucket

import (
	"context"
	"errors"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Backup is one content that some node backed up, perhaps from several paths.
type Backup struct {
	Algorithm string // md5, sha256, sha384, sha512, sha224
	Sum       string // lower-case hexadecimal
	Blob      fleet.Digest
	Size      int64
	Node      fleet.Certname
	Path      string // on the node; empty when not given
	At        time.Time
}

// Use is what one node keeps.
type Use struct {
	Files int   // contents by path and algorithm
	Bytes int64 // of contents, each counted once
}

// Quota is how much one node may keep. A zero bounds nothing.
type Quota struct {
	Files int
	Bytes int64
}

// ErrFull is the cause of a refusal because of a quota.
var ErrFull = errors.New("the node keeps as many backups as it may")

// Admit says whether a node that keeps have may keep one more file, which has so many bytes that it does not keep yet.
func (q Quota) Admit(node fleet.Certname, have Use, more int64) error {
	switch {
	case q.Files > 0 && have.Files+1 > q.Files:
		return fault.Wrap(fault.Conflict, ErrFull,
			"%s keeps %d backed-up files, and a node may keep %d (setting backup_files_per_node); old ones go after backup_retention", node, have.Files, q.Files)
	case q.Bytes > 0 && more > 0 && have.Bytes+more > q.Bytes:
		return fault.Wrap(fault.Conflict, ErrFull,
			"%s keeps %d bytes of backed-up files; with %d more it would have more than the %d that a node may keep (setting backup_bytes_per_node); "+
				"old ones go after backup_retention", node, have.Bytes, more, q.Bytes)
	}
	return nil
}

// Store keeps which blob a checksum stands for. Methods may be called
// concurrently; each is one transaction.
type Store interface {
	// SaveBackup stores b if its node's quota admits it; a repeated one only moves At, and never
	// back: what a node still counts on must not be pruned by the age of its first backup.
	SaveBackup(ctx context.Context, b Backup, quota Quota) error
	// Blob returns the blob and size behind a checksum that the node backed up; an empty node
	// stands for all of them.
	Blob(ctx context.Context, node fleet.Certname, algorithm, sum string) (fleet.Digest, int64, error)
	// Backups lists what was backed up between from and to (zero: open), newest
	// first; at most limit.
	Backups(ctx context.Context, node fleet.Certname, from, to time.Time, limit int) ([]Backup, error)
	// BackupUse is what a node keeps.
	BackupUse(ctx context.Context, node fleet.Certname) (Use, error)
	// Blobs lists every blob that a row refers to (for garbage collection).
	Blobs(ctx context.Context) ([]fleet.Digest, error)
	// PruneBackups forgets backups older than before.
	PruneBackups(ctx context.Context, before time.Time) (int, error)
}

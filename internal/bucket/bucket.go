// Package bucket keeps the file contents that agents back up before they
// overwrite them, under the checksums that agents name them by.
//
// Errors: NotFound for a checksum that was never backed up; Invalid for content
// that does not have its checksum.
package bucket

import (
	"context"
	"time"

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

// Store keeps which blob a checksum stands for. Methods may be called
// concurrently; each is one transaction.
type Store interface {
	// SaveBackup stores b; a repeated one only moves At, and never back: what a
	// node still counts on must not be pruned by the age of its first backup.
	SaveBackup(ctx context.Context, b Backup) error
	// Blob returns the blob and size behind a checksum.
	Blob(ctx context.Context, algorithm, sum string) (fleet.Digest, int64, error)
	// Backups lists what was backed up between from and to (zero: open), newest
	// first; at most limit.
	Backups(ctx context.Context, node fleet.Certname, from, to time.Time, limit int) ([]Backup, error)
	// Blobs lists every blob that a row refers to (for garbage collection).
	Blobs(ctx context.Context) ([]fleet.Digest, error)
	// PruneBackups forgets backups older than before.
	PruneBackups(ctx context.Context, before time.Time) (int, error)
}

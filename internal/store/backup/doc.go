// Package backup keeps a server's records, blobs, keys and settings in an archive, and brings
// them back: on another machine, in another directory, on another kind of database.
//
// # What an archive is
//
// An age file (encrypted to a passphrase or to age keys) that holds a zstd stream that holds a
// tar, so that other tools can open it, too:
//
//	backup.json         Header: when, by which version, which schema
//	data/...            the CA's directory first, then the other small files of the data directory
//	settings.yaml       the configuration file, if there was one
//	records/0001-nodes  rows of a table (see rows.go), a few megabytes each, every table at least once
//	blobs/DIGEST        content; in a directory of backups instead:
//	lists/0001          digests and sizes of the blobs that stand beside the archive
//	manifest.json       Manifest: each part with its size and SHA-256, rows by table, number of blobs
//
// The manifest is last: an archive without it was cut. age finds every other change.
//
// # A directory of backups
//
//	tutti-backups.json   Layout: to whom it is encrypted
//	key.age              with a passphrase: the directory's own key, encrypted to it
//	20261123T101500Z-1a2b.tutti   an archive for each backup
//	blobs/ab/ab....age   each blob once, however many backups have it
//
// A blob that is there is not written again. It has its name only when its bytes are on the disk.
//
// # What belongs together
//
// The records are those of a moment in which the CA's directory did not change; so the two are
// what a crash at that moment could have left (see moment). Blobs are read last: each was stored
// before a row named it, and none is swept while a backup is made (Blobs), so every blob that the
// records name is there. Decision 0021 says more.
//
// # Failure
//
// An archive gets its name when it is whole and on the disk. A restore that did not end leaves
// MarkerFile in the data directory, and a server refuses to start on it.
//
// # Errors
//
// Invalid for an archive that is cut, altered, or of an unknown format; Denied for a key that does
// not open it; Conflict for a target that is not empty or an archive of a newer schema; Unavailable
// for a disk that is full.
//
// # Concurrency
//
// Each function works alone; Create may run while the server does.
package backup

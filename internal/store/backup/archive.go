package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tutti-project/tutti/internal/fleet"
)

// format is the number of what doc.go describes; it grows when an older reader would not
// understand it.
const format = 1

// Names of parts.
const (
	headerPart   = "backup.json"
	dataParts    = "data/"
	settingsPart = "settings.yaml"
	recordParts  = "records/"
	blobParts    = "blobs/"
	listParts    = "lists/"
	manifestPart = "manifest.json"
)

// Header is the first part of an archive.
type Header struct {
	Format int       `json:"format"`
	ID     string    `json:"id"`
	Made   time.Time `json:"made"`
	Tutti  string    `json:"tutti"` // the version of the program that made it
	Schema Schema    `json:"schema"`
	Apart  bool      `json:"apart"` // blobs stand beside the archive
}

// Part is one file of an archive.
type Part struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Manifest is the last part of an archive.
type Manifest struct {
	Parts     []Part           `json:"parts"` // but blobs and itself
	Rows      map[string]int64 `json:"rows"`  // of each table
	Sequences map[string]int64 `json:"sequences"`
	Blobs     int64            `json:"blobs"`
	BlobBytes int64            `json:"blob_bytes"`
	BlobsSum  string           `json:"blobs_sha256"` // of their digests, one a line, in the order of the archive
	Damaged   []fleet.Digest   `json:"damaged,omitempty"`
}

// archive is an archive that is being written.
type archive struct {
	header   Header
	manifest Manifest
	sealed   io.WriteCloser
	packed   *zstd.Encoder
	tar      *tar.Writer
	blobs    blobSum
}

// newArchive begins an archive.
func newArchive(to io.Writer, lock Lock, header Header) (*archive, error) {
	sealed, err := lock.seal(to)
	if err != nil {
		return nil, err
	}
	packed, err := zstd.NewWriter(sealed, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	a := &archive{header: header, manifest: Manifest{Rows: map[string]int64{}}, sealed: sealed, packed: packed, tar: tar.NewWriter(packed), blobs: newBlobSum()}
	return a, a.document(headerPart, header)
}

// document adds a value as JSON.
func (a *archive) document(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return a.part(name, text)
}

// part adds a part that is in memory.
func (a *archive) part(name string, content []byte) error {
	if len(content) > maxPart {
		return fmt.Errorf("%s has %d bytes, a part has at most %d", name, len(content), maxPart)
	}
	if err := a.head(name, int64(len(content))); err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	a.manifest.Parts = append(a.manifest.Parts, Part{Name: name, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
	_, err := a.tar.Write(content)
	return err
}

func (a *archive) head(name string, size int64) error {
	return a.tar.WriteHeader(&tar.Header{
		Name: name, Size: size, Mode: 0o600, ModTime: a.header.Made.Truncate(time.Second), Typeflag: tar.TypeReg, Format: tar.FormatPAX,
	})
}

// blob adds content that was verified.
func (a *archive) blob(ctx context.Context, d fleet.Digest, size int64, r io.Reader) error {
	if err := a.head(blobParts+string(d), size); err != nil {
		return err
	}
	a.blobs.add(d, size)
	n, err := io.Copy(a.tar, reader{ctx, io.LimitReader(r, size)})
	if err == nil && n != size {
		err = fmt.Errorf("blob %s became shorter while it was read", d.Short())
	}
	return err
}

// close writes the manifest and ends the archive.
func (a *archive) close() error {
	a.manifest.Blobs, a.manifest.BlobBytes, a.manifest.BlobsSum = a.blobs.count, a.blobs.bytes, a.blobs.sum()
	text, err := json.Marshal(a.manifest)
	if err == nil {
		err = a.head(manifestPart, int64(len(text)))
	}
	if err == nil {
		_, err = a.tar.Write(text)
	}
	if err == nil {
		err = a.tar.Close()
	}
	return errors.Join(err, a.packed.Close(), a.sealed.Close())
}

// blobSum counts blobs, and sums up which they are.
type blobSum struct {
	count, bytes int64
	hash         interface {
		io.Writer
		Sum(b []byte) []byte
	}
}

func newBlobSum() blobSum { return blobSum{hash: sha256.New()} }

func (s *blobSum) add(d fleet.Digest, size int64) {
	s.count, s.bytes = s.count+1, s.bytes+size
	_, _ = s.hash.Write([]byte(string(d) + "\n"))
}

func (s *blobSum) sum() string { return hex.EncodeToString(s.hash.Sum(nil)) }

// reader ends with its context.
type reader struct {
	ctx context.Context //nolint:containedctx // for the length of one copy
	on  io.Reader
}

func (r reader) Read(buf []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.on.Read(buf)
}

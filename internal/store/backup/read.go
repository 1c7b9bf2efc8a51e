package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxSmall is the largest header; maxManifest the largest manifest: a part takes some 150 bytes.
const (
	maxSmall    = 1 << 20
	maxManifest = 256 << 20
)

// visitor is told what an archive holds, in its order. It keeps no slice.
type visitor interface {
	begin(h Header) error
	file(name string, content []byte) error // below the data directory
	settings(content []byte) error
	rows(table Table, rows iter.Seq2[[]any, error]) error
	blob(d fleet.Digest, size int64, content io.Reader) error // verified when it was read to its end
	listed(d fleet.Digest, size int64) error                  // a blob that stands beside the archive
}

// read reads a whole archive that key opens and tells v. It returns an error unless every part
// is as it was written.
func read(ctx context.Context, from io.Reader, key Key, v visitor) (Header, Manifest, error) {
	plain, err := key.open(from)
	if err != nil {
		return Header{}, Manifest{}, err
	}
	packed, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return Header{}, Manifest{}, damaged(err)
	}
	defer packed.Close()
	s := &scan{tar: tar.NewReader(packed), to: v, rows: map[string]int64{}, blobs: newBlobSum()}
	if err := s.all(ctx); err != nil {
		return s.header, s.manifest, s.why(ctx, err)
	}
	// What is behind the manifest is empty, and the end of the stream proves that nothing was cut.
	if n, err := io.Copy(io.Discard, io.LimitReader(packed, maxSmall)); err != nil || n == maxSmall {
		return s.header, s.manifest, damaged(errors.Join(errors.New("it does not end behind its manifest"), err))
	}
	return s.header, s.manifest, nil
}

// scan is an archive that is being read.
type scan struct {
	tar      *tar.Reader
	to       visitor
	header   Header
	manifest Manifest
	parts    []Part
	rows     map[string]int64
	blobs    blobSum
	failed   error // of the archive, while somebody else read it
}

// told is an error of the visitor: nothing is wrong with the archive.
type told struct{ error }

func (t told) Unwrap() error { return t.error }

func tell(err error) error {
	if err == nil {
		return nil
	}
	return told{err}
}

// why tells what is wrong with the archive from what is wrong with the reader's machine.
func (s *scan) why(ctx context.Context, err error) error {
	visitor, ofVisitor := errors.AsType[told](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.failed != nil:
		return damaged(s.failed)
	case ofVisitor && !errors.Is(err, errRows):
		return visitor.error
	}
	return damaged(err)
}

// watched notes what fails while content is read.
type watched struct {
	on   io.Reader
	scan *scan
}

func (w watched) Read(buf []byte) (int, error) {
	n, err := w.on.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		w.scan.failed = err
	}
	return n, err
}

func (s *scan) all(ctx context.Context) error {
	for first := true; ; first = false {
		head, err := s.tar.Next()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("its manifest is missing")
		case err != nil:
			return err
		case head.Typeflag != tar.TypeReg || head.Size < 0 || head.Name != path.Clean(head.Name) || strings.HasPrefix(head.Name, ".."):
			return fmt.Errorf("it holds %.80q, which is no part", head.Name)
		case first != (head.Name == headerPart):
			return errors.New("its header is not in its place")
		}
		content := watched{reader{ctx, s.tar}, s}
		if head.Name == manifestPart {
			return s.end(head, content)
		}
		if name, ok := strings.CutPrefix(head.Name, blobParts); ok {
			err = s.blob(name, head.Size, content)
		} else {
			err = s.part(head.Name, head.Size, content)
		}
		if err != nil {
			return fmt.Errorf("%.80s: %w", head.Name, err)
		}
	}
}

// part reads one part into memory and tells it.
func (s *scan) part(name string, size int64, content io.Reader) error {
	if size > maxPart {
		return fmt.Errorf("it has %d bytes", size)
	}
	var buf bytes.Buffer // grows with what is there, whatever its header says
	if _, err := io.Copy(&buf, io.LimitReader(content, maxPart)); err != nil {
		return err
	}
	sum := sha256.Sum256(buf.Bytes())
	s.parts = append(s.parts, Part{Name: name, Bytes: int64(buf.Len()), SHA256: hex.EncodeToString(sum[:])})
	if rest, ok := strings.CutPrefix(name, dataParts); ok {
		return tell(s.to.file(rest, buf.Bytes()))
	}
	switch dir, rest, _ := strings.Cut(name, "/"); {
	case name == headerPart:
		return s.begin(buf.Bytes())
	case name == settingsPart:
		return tell(s.to.settings(buf.Bytes()))
	case dir+"/" == recordParts:
		return s.records(rest, buf.Bytes())
	case dir+"/" == listParts:
		return s.list(buf.Bytes())
	}
	return errors.New("it is no part that this version knows")
}

func (s *scan) begin(text []byte) error {
	if len(text) > maxSmall || json.Unmarshal(text, &s.header) != nil {
		return errors.New("it cannot be read")
	}
	if s.header.Format > format {
		return fault.New(fault.Conflict, "the backup has format %d and this tutti reads up to %d; use tutti %s, which made it, or newer",
			s.header.Format, format, orNewer(s.header.Tutti))
	}
	return tell(s.to.begin(s.header))
}

// orNewer is a version in words.
func orNewer(version string) string {
	if version == "" || version == "unknown" {
		return "(a newer version)"
	}
	return version
}

// records tells the rows of one chunk, whose name is a number and the table's.
func (s *scan) records(name string, data []byte) error {
	_, table, ok := strings.Cut(name, "-")
	columns, rows, err := parseChunk(data)
	if err != nil || !ok {
		return errors.Join(errRows, err)
	}
	count := s.rows[table]
	err = tell(s.to.rows(Table{Name: table, Columns: columns}, func(yield func([]any, error) bool) {
		for row, err := range rows {
			if err == nil {
				count++
			}
			if !yield(row, err) {
				return
			}
		}
	}))
	s.rows[table] = count
	return err
}

// blob tells content that stands in the archive. It must have its digest.
func (s *scan) blob(name string, size int64, content io.Reader) error {
	d, err := fleet.ParseDigest(name)
	if err != nil {
		return err
	}
	s.blobs.add(d, size)
	hash := sha256.New()
	content = io.TeeReader(content, hash)
	refused := s.to.blob(d, size, content)
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != string(d) {
		return errors.New("its content does not have its digest")
	}
	return tell(refused)
}

// list tells the blobs that stand beside the archive.
func (s *scan) list(text []byte) error {
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		d, err := fleet.ParseDigest(name)
		size, bad := strconv.ParseInt(number, 10, 64)
		if err != nil || bad != nil || size < 0 {
			return errors.New("a line is not a digest and a size")
		}
		s.blobs.add(d, size)
		if err := s.to.listed(d, size); err != nil {
			return tell(err)
		}
	}
	return nil
}

// end compares what was read with the manifest.
func (s *scan) end(head *tar.Header, content io.Reader) error {
	if head.Size > maxManifest {
		return errors.New("its manifest is too long")
	}
	if err := json.NewDecoder(io.LimitReader(content, maxManifest)).Decode(&s.manifest); err != nil {
		return fmt.Errorf("its manifest: %w", err)
	}
	m := s.manifest
	if len(m.Parts) != len(s.parts) {
		return fmt.Errorf("it has %d parts, its manifest names %d", len(s.parts), len(m.Parts))
	}
	for i, part := range s.parts {
		if part != m.Parts[i] {
			return fmt.Errorf("%s is not what its manifest says", part.Name)
		}
	}
	for table, rows := range m.Rows {
		if s.rows[table] != rows {
			return fmt.Errorf("table %s has %d rows, its manifest says %d", table, s.rows[table], rows)
		}
	}
	if m.Blobs != s.blobs.count || m.BlobBytes != s.blobs.bytes || m.BlobsSum != s.blobs.sum() {
		return errors.New("its blobs are not those that its manifest says")
	}
	if _, err := s.tar.Next(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind its manifest")
	}
	return nil
}

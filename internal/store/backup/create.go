package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Source is what is backed up.
type Source struct {
	Dir      string                                     // the data directory
	Settings []byte                                     // the configuration file; nil: there is none
	Tutti    string                                     // the version of this program
	Records  func(ctx context.Context) (Records, error) // begins the moment as of which records are read
	Blobs    func(ctx context.Context) (Blobs, error)   // from now on none goes away
	Now      time.Time                                  //
	Progress func(what string, done int64, total int64) // total 0: not known; nil: nobody listens
}

// Result is what a backup holds.
type Result struct {
	Header
	Path      string         `json:"path"`
	Tables    int            `json:"tables"`
	Rows      int64          `json:"rows"`
	Files     int            `json:"files"`
	Blobs     int64          `json:"blobs"`
	BlobBytes int64          `json:"blob_bytes"`
	NewBlobs  int64          `json:"new_blobs"` // written; the others were there
	Bytes     int64          `json:"bytes"`     // of the archive's file
	Damaged   []fleet.Digest `json:"damaged,omitempty"`
}

func (r *Result) count(m Manifest) {
	r.Tables, r.Blobs, r.BlobBytes, r.Damaged = len(m.Rows), m.Blobs, m.BlobBytes, m.Damaged
	r.Rows, r.Files = 0, 0
	for _, n := range m.Rows {
		r.Rows += n
	}
	for _, p := range m.Parts {
		if strings.HasPrefix(p.Name, dataParts) || p.Name == settingsPart {
			r.Files++
		}
	}
}

// IsDirectory says whether a target means a directory of backups: it is one, or ends in a slash.
func IsDirectory(target string) bool {
	info, err := os.Stat(target)
	return err == nil && info.IsDir() || strings.HasSuffix(target, string(filepath.Separator))
}

// Create backs up a server into a new file or into a directory of backups.
func Create(ctx context.Context, from Source, target string, lock Lock) (Result, error) {
	c := creation{from: from, id: newID(from.Now)}
	path := target
	if IsDirectory(target) {
		dir, err := openDirectory(filepath.Clean(target), lock)
		if err != nil {
			return Result{}, err
		}
		defer dir.close()
		c.beside, lock, path = dir, dir.lock, filepath.Join(dir.path, c.id+extension)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return Result{}, fault.New(fault.Conflict, "%s is there already: name a new file, or a directory, which keeps many backups", path)
	}
	out, err := newFile(path)
	if err != nil {
		return Result{}, err
	}
	if err := c.write(ctx, out, lock); err != nil {
		_ = out.abandon()
		return Result{}, disk(path, err)
	}
	if info, err := out.Stat(); err == nil {
		c.result.Bytes = info.Size()
	}
	c.result.Path = path
	return c.result, out.commit()
}

func newID(now time.Time) string {
	var random [2]byte
	_, _ = rand.Read(random[:])
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random[:])
}

// creation is a backup that is being made.
type creation struct {
	from    Source
	id      string
	beside  *directory // where blobs go; nil: into the archive
	archive *archive
	result  Result
	list    bytes.Buffer
	lists   int
}

// write writes everything, in the order that doc.go explains.
func (c *creation) write(ctx context.Context, to io.Writer, lock Lock) error {
	blobs, err := c.from.Blobs(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = blobs.Close() }()
	rows, err := c.from.Records(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	files, err := moment(ctx, c.from.Dir, rows.Begin)
	if err != nil {
		return err
	}
	others, err := otherFiles(c.from.Dir)
	if err != nil {
		return err
	}
	schema, tables, err := rows.Describe(ctx)
	if err != nil {
		return err
	}
	c.result.Header = Header{Format: format, ID: c.id, Made: c.from.Now.UTC(), Tutti: c.from.Tutti, Schema: schema, Apart: c.beside != nil}
	if c.archive, err = newArchive(to, lock, c.result.Header); err != nil {
		return err
	}
	for _, file := range append(files, others...) {
		if err := c.archive.part(dataParts+file.name, file.content); err != nil {
			return err
		}
	}
	if c.from.Settings != nil {
		if err := c.archive.part(settingsPart, c.from.Settings); err != nil {
			return err
		}
	}
	if err := c.records(ctx, rows, tables); err != nil {
		return err
	}
	if err := rows.Close(); err != nil { // the database need not keep that moment any longer
		return err
	}
	if err := c.blobs(ctx, blobs); err != nil {
		return err
	}
	if err := c.archive.close(); err != nil {
		return err
	}
	c.result.count(c.archive.manifest)
	return nil
}

func (c *creation) progress(what string, done, total int64) {
	if c.from.Progress != nil {
		c.from.Progress(what, done, total)
	}
}

// records writes every table.
func (c *creation) records(ctx context.Context, from Records, tables []Table) error {
	for i, table := range tables {
		c.progress("tables", int64(i), int64(len(tables)))
		if err := c.table(ctx, from, i+1, table); err != nil {
			return fmt.Errorf("table %s: %w", table.Name, err)
		}
	}
	sequences, err := from.Sequences(ctx)
	c.archive.manifest.Sequences = sequences
	return err
}

func (c *creation) table(ctx context.Context, from Records, number int, table Table) error {
	rows, chunks := newChunk(table.Columns), 0
	flush := func() error {
		chunks++
		err := c.archive.part(fmt.Sprintf("%s%04d.%04d-%s", recordParts, number, chunks, table.Name), rows.data)
		c.archive.manifest.Rows[table.Name] += rows.rows
		rows.reset()
		return err
	}
	err := from.Rows(ctx, table, func(row []any) error {
		if err := rows.add(row); err != nil || len(rows.data) < chunkBytes {
			return err
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush() // also of an empty table: it is known then
}

// blobs writes all content, or names that which the directory has.
func (c *creation) blobs(ctx context.Context, from Blobs) error {
	var done int64
	err := from.Each(ctx, func(d fleet.Digest, size int64) error {
		done++
		if done%1000 == 0 {
			c.progress("blobs", done, 0)
		}
		if c.beside != nil && c.beside.has(d) {
			return c.mention(d, size)
		}
		return c.blob(ctx, from, d)
	})
	if err != nil || c.beside == nil {
		return err
	}
	return errors.Join(c.endList(), c.beside.commit())
}

// keptBytes is the largest blob that is verified in memory; larger ones are read twice.
const keptBytes = 1 << 20

// blob writes one blob, unless it went away or is damaged: that is told, and ends no backup.
func (c *creation) blob(ctx context.Context, from Blobs, d fleet.Digest) error {
	content, err := from.Open(d)
	if fault.Of(err) == fault.NotFound {
		return nil // it was set aside just now
	}
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	hash, head := sha256.New(), bytes.Buffer{}
	size, err := io.Copy(io.MultiWriter(hash, &bounded{&head}), reader{ctx, content})
	if err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != string(d) {
		c.archive.manifest.Damaged = append(c.archive.manifest.Damaged, d)
		return nil
	}
	c.result.NewBlobs++
	if size <= keptBytes {
		return c.store(ctx, d, size, &head)
	}
	again, err := from.Open(d)
	if err != nil {
		return err
	}
	defer func() { _ = again.Close() }()
	return c.store(ctx, d, size, again)
}

func (c *creation) store(ctx context.Context, d fleet.Digest, size int64, content io.Reader) error {
	if c.beside == nil {
		return c.archive.blob(ctx, d, size, content)
	}
	if err := c.beside.put(d, size, reader{ctx, content}); err != nil {
		return err
	}
	return c.mention(d, size)
}

// bounded keeps the first keptBytes.
type bounded struct{ to *bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := keptBytes - b.to.Len(); room > 0 {
		_, _ = b.to.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// mention names a blob that stands beside the archive.
func (c *creation) mention(d fleet.Digest, size int64) error {
	c.archive.blobs.add(d, size)
	fmt.Fprintf(&c.list, "%s %d\n", d, size)
	if c.list.Len() < chunkBytes {
		return nil
	}
	return c.endList()
}

func (c *creation) endList() error {
	if c.list.Len() == 0 {
		return nil
	}
	c.lists++
	err := c.archive.part(fmt.Sprintf("%s%04d", listParts, c.lists), c.list.Bytes())
	c.list.Reset()
	return err
}

package blobdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func openCache(t *testing.T, dir string, most int64) *Cache {
	t.Helper()
	c, err := OpenCache(dir, most)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func keep(t *testing.T, c *Cache, content string) fleet.Digest {
	t.Helper()
	d := fleet.DigestOf([]byte(content))
	if err := c.Keep(t.Context(), d, int64(len(content)), strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return d
}

func (c *Cache) has(t *testing.T, d fleet.Digest) bool {
	t.Helper()
	b, err := c.Open(t.Context(), d)
	if err == nil {
		_ = b.Close()
	} else if !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	return err == nil
}

// onDisk is how much the files of a cache take.
func onDisk(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		bytes += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestACacheIsBoundedByLastUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCache(t, dir, 30)
	first, second, third := keep(t, c, "first-----"), keep(t, c, "second----"), keep(t, c, "third-----")
	keep(t, c, "third-----") // twice is once
	if got := c.Bytes(); got != 30 {
		t.Errorf("%d bytes are counted", got)
	}
	if _, err := c.Fill(t.Context(), first, make([]byte, 10)); err != nil { // used: the second is the oldest now
		t.Fatal(err)
	}
	fourth := keep(t, c, "fourth----")
	for d, want := range map[fleet.Digest]bool{first: true, second: false, third: true, fourth: true} {
		if c.has(t, d) != want {
			t.Errorf("%s is kept: %t", d.Short(), !want)
		}
	}
	if got := onDisk(t, dir); got != 30 {
		t.Errorf("%d bytes on the disk", got)
	}
	large := strings.Repeat("x", 31)
	err := c.Keep(t.Context(), fleet.DigestOf([]byte(large)), 31, strings.NewReader(large))
	wantKind(t, err, fault.Unavailable, "does not fit")
	wantKind(t, c.Keep(t.Context(), second, 5, strings.NewReader("wrong")), fault.Invalid)
	wantKind(t, c.Keep(t.Context(), second, 5, strings.NewReader("second----")), fault.Invalid) // longer than it was said
	if got := c.Bytes(); got != onDisk(t, dir) {
		t.Errorf("%d bytes are counted, %d are there", got, onDisk(t, dir))
	}
}

func TestACacheSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCache(t, dir, 100)
	old, young := keep(t, c, "old-------"), keep(t, c, "young-----")
	long := time.Now().Add(-24 * time.Hour)
	for d, at := range map[fleet.Digest]time.Time{young: long, old: long.Add(time.Hour)} {
		if err := os.Chtimes(c.store.path(d), time.Time{}, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openCache(t, dir, 100)
	if !c.has(t, young) { // its use is remembered
		t.Fatal("it did not last")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openCache(t, dir, 10) // there is less room now
	if c.has(t, old) || !c.has(t, young) || onDisk(t, dir) != 10 {
		t.Errorf("old %t, young %t, %d bytes", c.has(t, old), c.has(t, young), onDisk(t, dir))
	}
}

func TestACacheOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCache(t, dir, 1000)
	kept := keep(t, c, "kept")
	for i := range 10 {
		keep(t, c, fmt.Sprint("content ", i))
	}
	if !c.has(t, kept) {
		t.Fatal("it is not kept")
	}
	c.store.create = func(string) (*os.File, error) { return os.OpenFile("/dev/full", os.O_WRONLY, 0) }
	before, content := c.Bytes(), "no room for this"
	err := c.Keep(t.Context(), fleet.DigestOf([]byte(content)), int64(len(content)), strings.NewReader(content))
	wantKind(t, err, fault.Unavailable, "full")
	if after := c.Bytes(); after >= before || after != onDisk(t, dir) || !c.has(t, kept) {
		t.Errorf("%d bytes before, %d after, %d on the disk: nothing old made room", before, after, onDisk(t, dir))
	}
	c.store.create = createFile
	keep(t, c, content)
}

func TestACacheDropsWhatIsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCache(t, dir, 100)
	d := keep(t, c, "original")
	overwrite(t, c.store.path(d), "tampered")
	if _, err := c.Open(t.Context(), d); !errors.Is(err, cas.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if c.has(t, d) || c.Bytes() != 0 {
		t.Errorf("it is there, %d bytes", c.Bytes())
	}
	keep(t, c, "original")
	if err := os.Remove(c.store.path(d)); err != nil {
		t.Fatal(err)
	}
	if c.has(t, d) || c.Bytes() != 0 {
		t.Errorf("what somebody removed is there, %d bytes", c.Bytes())
	}
}

func TestACacheIsUsedByMany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCache(t, dir, 200)
	var users sync.WaitGroup
	for w := range 8 {
		users.Go(func() {
			for i := range 50 {
				content := fmt.Sprintf("content %02d", (i*7+w)%40)
				d := fleet.DigestOf([]byte(content))
				if err := c.Keep(t.Context(), d, int64(len(content)), strings.NewReader(content)); err != nil {
					t.Error(err)
				}
				buf := make([]byte, 20)
				if n, err := c.Fill(t.Context(), d, buf); err == nil && string(buf[:n]) != content {
					t.Errorf("read %q", buf[:n])
				}
			}
		})
	}
	users.Wait()
	if got, there := c.Bytes(), onDisk(t, dir); got != there || got > 200 {
		t.Errorf("%d bytes are counted, %d are there, at most 200", got, there)
	}
}

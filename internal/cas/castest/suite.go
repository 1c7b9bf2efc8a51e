package castest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore holds the store that open returns to the port's contract. open is
// called once a test; it returns an empty store and cleans up after itself.
func RunStore(t *testing.T, open func(t *testing.T) cas.Store) {
	t.Helper()
	tests := map[string]func(*testing.T, cas.Store){
		"round trip":                      roundTrip,
		"same content is stored once":     putTwice,
		"announced digest":                putAs,
		"unknown blob":                    openUnknown,
		"seek":                            seek,
		"whole blob, bounded":             wholeBounded,
		"small blobs into a buffer":       fill,
		"a broken reader leaves nothing":  brokenReader,
		"a cancelled put leaves nothing":  cancelledPut,
		"missing, in order":               missing,
		"the caller's slice is not kept":  sliceNotKept,
		"sweep":                           sweep,
		"put and missing renew the age":   renewal,
		"an open blob outlives its sweep": openOutlivesSweep,
		"sweep stops with its context":    sweepCancelled,
		"many writers, one content":       sameConcurrently,
		"sweep never takes a new blob":    sweepAgainstPut,
		"many together":                   putAll,
		"many together, from a stream":    putStream,
		"link":                            link,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func roundTrip(t *testing.T, s cas.Store) {
	for _, size := range []int{0, 1, 4095, 4096, 64 << 10, 1<<20 + 1} {
		content := random(size)
		d, n := put(t, s, content)
		if d != fleet.DigestOf(content) || n != int64(size) {
			t.Fatalf("put %d bytes: got %s and %d", size, d, n)
		}
		if got := read(t, s, d); !bytes.Equal(got, content) {
			t.Errorf("%d bytes came back otherwise", size)
		}
	}
}

func putTwice(t *testing.T, s cas.Store) {
	content := random(100)
	first, _ := put(t, s, content)
	second, n := put(t, s, content)
	if first != second || n != 100 {
		t.Errorf("second put: %s, %d bytes; want %s, 100", second, n, first)
	}
	if removed, size := sweepAll(t, s); removed != 1 || size != 100 {
		t.Errorf("stored %d blobs of %d bytes, want one of 100", removed, size)
	}
}

func putAs(t *testing.T, s cas.Store) {
	content, other := []byte("right"), fleet.DigestOf([]byte("other"))
	if err := s.PutAs(t.Context(), fleet.DigestOf(content), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, s, fleet.DigestOf(content)); string(got) != "right" {
		t.Errorf("got %q", got)
	}
	wantKind(t, s.PutAs(t.Context(), other, strings.NewReader("wrong")), fault.Invalid)
	wantMissing(t, s, other, fleet.DigestOf([]byte("wrong")))
}

func openUnknown(t *testing.T, s cas.Store) {
	_, err := s.Open(t.Context(), fleet.DigestOf([]byte("never stored")))
	wantKind(t, err, fault.NotFound)
	_, err = s.Open(t.Context(), "../../etc/passwd")
	if err == nil {
		t.Error("opened what is not a digest")
	}
}

func seek(t *testing.T, s cas.Store) {
	content := random(100_000)
	d, _ := put(t, s, content)
	blob := openBlob(t, s, d)
	if blob.Size() != int64(len(content)) {
		t.Errorf("size %d, want %d", blob.Size(), len(content))
	}
	for _, at := range []int64{99_990, 0, 50_000, 100_000} {
		if _, err := blob.Seek(at, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.LimitReader(blob, 1000))
		if err != nil {
			t.Fatal(err)
		}
		if want := content[at:min(at+1000, int64(len(content)))]; !bytes.Equal(got, want) {
			t.Errorf("other bytes at %d", at)
		}
	}
	if end, err := blob.Seek(0, io.SeekEnd); err != nil || end != blob.Size() {
		t.Errorf("end: %d, %v", end, err)
	}
}

func wholeBounded(t *testing.T, s cas.Store) {
	d, _ := put(t, s, []byte("12345"))
	if got, err := cas.Bytes(t.Context(), s, d, 5); err != nil || string(got) != "12345" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := cas.Bytes(t.Context(), s, d, 4)
	wantKind(t, err, fault.Invalid)
}

func fill(t *testing.T, s cas.Store) {
	for _, size := range []int{0, 1, 4096, 4097} {
		content := random(size)
		d, _ := put(t, s, content)
		buf := make([]byte, 4096)
		got, err := cas.Fill(t.Context(), s, d, buf)
		if err != nil || got != int64(size) {
			t.Fatalf("Fill of %d bytes gave %d, %v", size, got, err)
		}
		if size <= len(buf) && !bytes.Equal(buf[:size], content) {
			t.Errorf("Fill of %d bytes gave other bytes", size)
		}
	}
	_, err := cas.Fill(t.Context(), s, fleet.DigestOf([]byte("never stored")), make([]byte, 10))
	wantKind(t, err, fault.NotFound)
	if _, err := cas.Fill(t.Context(), s, "../../etc/passwd", make([]byte, 10)); err == nil {
		t.Error("read what is not a digest")
	}
}

func brokenReader(t *testing.T, s cas.Store) {
	broken := errors.New("the line went dead")
	_, _, err := s.Put(t.Context(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
	wantMissing(t, s, fleet.DigestOf([]byte("half")))
}

func cancelledPut(t *testing.T, s cas.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	endless := readerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})
	if _, _, err := s.Put(ctx, endless); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if removed, _ := sweepAll(t, s); removed != 0 {
		t.Errorf("%d blobs were left", removed)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func missing(t *testing.T, s cas.Store) {
	there, _ := put(t, s, []byte("there"))
	a, b := fleet.DigestOf([]byte("a")), fleet.DigestOf([]byte("b"))
	got, err := s.Missing(t.Context(), []fleet.Digest{b, there, a})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]fleet.Digest{b, a}, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func sliceNotKept(t *testing.T, s cas.Store) {
	content := []byte("before")
	d, _ := put(t, s, content)
	copy(content, "after!")
	if got := read(t, s, d); string(got) != "before" {
		t.Errorf("got %q", got)
	}
}

func sweep(t *testing.T, s cas.Store) {
	kept, _ := put(t, s, []byte("kept"))
	gone, _ := put(t, s, []byte("gone"))
	before := time.Now()
	young, _ := put(t, s, []byte("young"))
	removed, size, err := s.Sweep(t.Context(), func(d fleet.Digest) bool { return d == kept }, before)
	if err != nil {
		t.Fatal(err)
	}
	if removed != 1 || size != 4 {
		t.Errorf("removed %d blobs of %d bytes, want 1 of 4", removed, size)
	}
	wantMissing(t, s, gone)
	read(t, s, kept)
	read(t, s, young)
}

func renewal(t *testing.T, s cas.Store) {
	again, _ := put(t, s, []byte("put again"))
	asked, _ := put(t, s, []byte("asked for"))
	announced, _ := put(t, s, []byte("announced"))
	before := time.Now()
	put(t, s, []byte("put again"))
	if ds, err := s.Missing(t.Context(), []fleet.Digest{asked}); err != nil || len(ds) != 0 {
		t.Fatalf("missing: %v, %v", ds, err)
	}
	if err := s.PutAs(t.Context(), announced, strings.NewReader("announced")); err != nil {
		t.Fatal(err)
	}
	if removed, _, err := s.Sweep(t.Context(), keepNone, before); err != nil || removed != 0 {
		t.Errorf("removed %d, %v; want none", removed, err)
	}
	read(t, s, again)
	read(t, s, asked)
	read(t, s, announced)
}

func openOutlivesSweep(t *testing.T, s cas.Store) {
	content := random(300_000)
	d, _ := put(t, s, content)
	blob := openBlob(t, s, d)
	sweepAll(t, s)
	got, err := io.ReadAll(blob)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	wantMissing(t, s, d)
}

func sweepCancelled(t *testing.T, s cas.Store) {
	d, _ := put(t, s, []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Sweep(ctx, keepNone, time.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	read(t, s, d)
}

func sameConcurrently(t *testing.T, s cas.Store) {
	content := random(10_000)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			d, _, err := s.Put(t.Context(), bytes.NewReader(content))
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := cas.Bytes(t.Context(), s, d, 1<<20); err != nil || !bytes.Equal(got, content) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
		})
	}
	wg.Wait()
	if removed, _ := sweepAll(t, s); removed != 1 {
		t.Errorf("stored %d times", removed)
	}
}

// sweepAgainstPut plays writers who store, and then refer to, a few contents
// over and over while a collector removes all that was not touched since it
// began. What a writer was told to be stored must be there when that same round
// of collection is over.
func sweepAgainstPut(t *testing.T, s cas.Store) {
	done := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, _, err := s.Sweep(t.Context(), keepNone, time.Now().Add(-50*time.Millisecond)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() { writeUnderSweep(t, s, w) })
	}
	writers.Wait()
	close(done)
	collector.Wait()
}

// writeUnderSweep checks at once, well within the collector's grace.
func writeUnderSweep(t *testing.T, s cas.Store, w int) {
	for i := range 60 {
		content := fmt.Appendf(nil, "content %d", (i*7+w)%5)
		began := time.Now()
		d, _, err := s.Put(t.Context(), bytes.NewReader(content))
		if err != nil {
			t.Error(err)
			return
		}
		got, err := cas.Bytes(t.Context(), s, d, 100)
		if err != nil && time.Since(began) < 50*time.Millisecond {
			t.Errorf("writer %d lost %q: %v", w, content, err)
			return
		}
		if err == nil && !bytes.Equal(got, content) {
			t.Errorf("writer %d read %q", w, got)
		}
	}
}

func putAll(t *testing.T, s cas.Store) {
	old, _ := put(t, s, []byte("content 0"))
	before := time.Now()
	var sources []cas.Source
	for i := range 50 {
		content := fmt.Appendf(nil, "content %d", i%40) // ten of them twice
		sources = append(sources, source(content, content))
	}
	if err := cas.PutAll(t.Context(), s, slices.Values(sources)); err != nil {
		t.Fatal(err)
	}
	for _, src := range sources {
		if got := read(t, s, src.Digest); fleet.DigestOf(got) != src.Digest {
			t.Errorf("got %q", got)
		}
	}
	if removed, _, err := s.Sweep(t.Context(), keepNone, before); err != nil || removed != 0 {
		t.Errorf("%s was not renewed: removed %d, %v", old.Short(), removed, err)
	}
	wrong := source([]byte("announced"), []byte("another"))
	wantKind(t, cas.PutAll(t.Context(), s, slices.Values([]cas.Source{wrong})), fault.Invalid)
	wantMissing(t, s, wrong.Digest)
}

// putStream has sources that can be read only before the next one is asked for, as the entries of an archive.
func putStream(t *testing.T, s cas.Store) {
	contents := []string{"first", "second", "third"}
	err := cas.PutAll(t.Context(), s, func(yield func(cas.Source) bool) {
		for _, content := range contents {
			r := strings.NewReader(content)
			if !yield(cas.Source{Digest: fleet.DigestOf([]byte(content)), Open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}) {
				return
			}
			_, _ = io.Copy(io.Discard, r) // what nobody read is gone
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range contents {
		if got := read(t, s, fleet.DigestOf([]byte(content))); string(got) != content {
			t.Errorf("got %q, want %q", got, content)
		}
	}
}

func source(announced, content []byte) cas.Source {
	return cas.Source{Digest: fleet.DigestOf(announced), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

// link applies to stores that are linkers; the others have nothing to show.
func link(t *testing.T, s cas.Store) {
	linker, ok := s.(cas.Linker)
	if !ok {
		return
	}
	d, _ := put(t, s, []byte("#!/bin/sh\n"))
	dir := t.TempDir()
	for name, executable := range map[string]bool{"plain": false, "run": true, "plain2": false} {
		path := filepath.Join(dir, name)
		if err := linker.Link(t.Context(), d, path, executable); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != "#!/bin/sh\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if (info.Mode()&0o111 != 0) != executable || info.Mode()&0o222 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		if linker.Link(t.Context(), d, path, executable) == nil {
			t.Errorf("%s was replaced", name)
		}
	}
	wantKind(t, linker.Link(t.Context(), fleet.DigestOf([]byte("none")), filepath.Join(dir, "none"), false), fault.NotFound)
}

func keepNone(fleet.Digest) bool { return false }

func sweepAll(t *testing.T, s cas.Store) (int, int64) {
	t.Helper()
	removed, size, err := s.Sweep(t.Context(), keepNone, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return removed, size
}

func put(t *testing.T, s cas.Store, content []byte) (fleet.Digest, int64) {
	t.Helper()
	d, n, err := s.Put(t.Context(), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return d, n
}

func openBlob(t *testing.T, s cas.Store, d fleet.Digest) cas.Blob {
	t.Helper()
	blob, err := s.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blob.Close() })
	return blob
}

func read(t *testing.T, s cas.Store, d fleet.Digest) []byte {
	t.Helper()
	got, err := cas.Bytes(t.Context(), s, d, 1<<30)
	if err != nil {
		t.Fatalf("read %s: %v", d.Short(), err)
	}
	return got
}

func wantMissing(t *testing.T, s cas.Store, ds ...fleet.Digest) {
	t.Helper()
	got, err := s.Missing(t.Context(), ds)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ds, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("got %v (%v), want %v", err, fault.Of(err), want)
	}
}

func random(n int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(n)) //nolint:gosec // a length
	seeded := rand.NewChaCha8(seed)
	content := make([]byte, n)
	_, _ = seeded.Read(content)
	return content
}

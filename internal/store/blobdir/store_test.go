package blobdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestStore(t *testing.T) {
	t.Parallel()
	castest.RunStore(t, openEmpty)
}

func openEmpty(t *testing.T) cas.Store {
	t.Helper()
	return open(t, t.TempDir())
}

func open(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func put(tb testing.TB, s *Store, content string) fleet.Digest {
	tb.Helper()
	d, _, err := s.Put(tb.Context(), strings.NewReader(content))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func wantKind(t *testing.T, err error, want fault.Kind, words ...string) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("got %v (%v), want %v", err, fault.Of(err), want)
		return
	}
	for _, word := range words {
		if !strings.Contains(fault.Detail(err), word) {
			t.Errorf("%q does not mention %q", fault.Detail(err), word)
		}
	}
}

func TestBlobsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir)
	d := put(t, first, "content")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	if got, err := cas.Bytes(t.Context(), second, d, 100); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSecondProcessIsAConflict(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir)
	_, err := Open(dir)
	wantKind(t, err, fault.Conflict, dir, fmt.Sprintf("process %d", os.Getpid()))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

func TestLeftoversAreClearedAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir)
	left := filepath.Join(first.tmpDir(), "half a blob")
	if err := os.WriteFile(left, []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	open(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
}

func TestNothingIsLeftInTmp(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	put(t, s, "a")
	put(t, s, "a")
	_ = s.PutAs(t.Context(), fleet.DigestOf([]byte("x")), strings.NewReader("y"))
	sources := []cas.Source{source("1"), source("2"), {Digest: fleet.DigestOf([]byte("3")), Open: source("4").Open}}
	if s.PutAll(t.Context(), slices.Values(sources)) == nil {
		t.Error("wrong content was accepted")
	}
	entries, err := os.ReadDir(s.tmpDir())
	if err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func source(content string) cas.Source {
	return cas.Source{Digest: fleet.DigestOf([]byte(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func TestCorruptBlobIsSetAsideAndHealed(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{"same size": "tampered", "shorter": "x", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir())
			d := put(t, s, "original")
			overwrite(t, s.path(d), wrong)
			_, err := s.Open(t.Context(), d)
			if !errors.Is(err, cas.ErrCorrupt) || fault.Of(err) != fault.Internal {
				t.Fatalf("got %v, want ErrCorrupt", err)
			}
			if missing, err := s.Missing(t.Context(), []fleet.Digest{d}); err != nil || len(missing) != 1 {
				t.Errorf("missing: %v, %v", missing, err)
			}
			aside, err := os.ReadFile(filepath.Join(s.dir, "corrupt", string(d)))
			if err != nil || string(aside) != wrong {
				t.Errorf("set aside: %q, %v", aside, err)
			}
			put(t, s, "original")
			if got, err := cas.Bytes(t.Context(), s, d, 100); err != nil || string(got) != "original" {
				t.Errorf("healed: %q, %v", got, err)
			}
		})
	}
}

// overwrite changes a file as an accident would: not at the same instant.
func overwrite(t *testing.T, name, content string) {
	t.Helper()
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
}

func TestRenewalDoesNotForgetWhatWasVerified(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	d := put(t, s, "content")
	if _, err := s.Missing(t.Context(), []fleet.Digest{d}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.path(d))
	if err != nil {
		t.Fatal(err)
	}
	if !s.shardOf(d).isKnown(d, identify(info)) {
		t.Error("the blob would be read again")
	}
}

func TestVerifiedStatesAreBounded(t *testing.T) {
	t.Parallel()
	sh := shard{known: map[fleet.Digest]identity{}}
	for i := range maxKnown + 10 {
		sh.know(fleet.DigestOf(fmt.Append(nil, i)), identity{})
	}
	if len(sh.known) != maxKnown {
		t.Errorf("%d are remembered, want %d", len(sh.known), maxKnown)
	}
}

// The device /dev/full is a disk without room: its error is the kernel's own.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	kept := put(t, s, "kept")
	s.create = func(string) (*os.File, error) { return os.OpenFile("/dev/full", os.O_WRONLY, 0) }
	_, _, err := s.Put(t.Context(), strings.NewReader("no room"))
	wantKind(t, err, fault.Unavailable, "full", s.dir)
	wantKind(t, s.PutAll(t.Context(), slices.Values([]cas.Source{source("no room")})), fault.Unavailable, "full")
	if missing, err := s.Missing(t.Context(), []fleet.Digest{kept, fleet.DigestOf([]byte("no room"))}); err != nil || len(missing) != 1 {
		t.Errorf("missing: %v, %v", missing, err)
	}
	s.create = createFile
	put(t, s, "no room") // there is some now
}

// asNobody runs f on a thread that has given up the rights of root over files,
// so that permissions mean what they say.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if os.Geteuid() == 0 {
			if err := unix.Setfsuid(65534); err != nil {
				t.Error(err)
			}
		}
		f()
	}()
	<-done
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	if err := os.Chmod(parent, 0o500); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		_, err := Open(dir)
		wantKind(t, err, fault.Unavailable, dir, "owner")
	})
	if err := os.Chmod(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if err := os.Chmod(s.tmpDir(), 0o500); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		_, _, err := s.Put(context.Background(), strings.NewReader("x"))
		wantKind(t, err, fault.Unavailable, dir, "cannot be written")
	})
}

func TestConcurrentPutsAreCommittedTogether(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			content := fmt.Sprintf("content %d", i%50)
			d, n, err := s.Put(t.Context(), strings.NewReader(content))
			if err != nil || n != int64(len(content)) {
				t.Errorf("%d bytes, %v", n, err)
			}
			if got, err := cas.Bytes(t.Context(), s, d, 100); err != nil || string(got) != content {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
}

func TestServesOverHTTPWithRanges(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	d := put(t, s, strings.Repeat("0123456789", 100_000))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := s.Open(r.Context(), d)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = b.Close() }()
		http.ServeContent(w, r, "", time.Time{}, b)
	}))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Range", "bytes=500005-500009")
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "56789" || response.StatusCode != http.StatusPartialContent {
		t.Errorf("got %q, %d, %v", body, response.StatusCode, err)
	}
}

// The kernel can send a blob: it is a file to the net package.
func TestBlobIsAFileToTheKernel(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	b, err := s.Open(t.Context(), put(t, s, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if _, ok := b.(syscall.Conn); !ok {
		t.Error("net could not use sendfile: it is no syscall.Conn")
	}
}

func BenchmarkPutSmall(b *testing.B) {
	s := open(b, b.TempDir())
	content := make([]byte, 1024)
	for i := 0; b.Loop(); i++ {
		copy(content, fmt.Sprint(i))
		if _, _, err := s.Put(b.Context(), bytes.NewReader(content)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPutAll1000(b *testing.B) {
	s := open(b, b.TempDir())
	for n := 0; b.Loop(); n++ {
		sources := make([]cas.Source, 1000)
		for i := range sources {
			sources[i] = source(fmt.Sprint(n, i, strings.Repeat("x", 1000)))
		}
		if err := s.PutAll(b.Context(), slices.Values(sources)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenRead10KB(b *testing.B)  { benchmarkRead(b, 10<<10) }
func BenchmarkOpenRead100MB(b *testing.B) { benchmarkRead(b, 100<<20) }

func benchmarkRead(b *testing.B, size int) {
	b.Helper()
	s := open(b, b.TempDir())
	d := put(b, s, strings.Repeat("x", size))
	b.SetBytes(int64(size))
	buf := make([]byte, 32<<10)
	for b.Loop() {
		blob, err := s.Open(b.Context(), d)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{blob}, buf); err != nil {
			b.Fatal(err)
		}
		_ = blob.Close()
	}
}

// BenchmarkFirstOpen100MB is what the first reader after a start pays.
func BenchmarkFirstOpen100MB(b *testing.B) {
	s := open(b, b.TempDir())
	d := put(b, s, strings.Repeat("x", 100<<20))
	b.SetBytes(100 << 20)
	for b.Loop() {
		s.shardOf(d).forget(d)
		blob, err := s.Open(b.Context(), d)
		if err != nil {
			b.Fatal(err)
		}
		_ = blob.Close()
	}
}

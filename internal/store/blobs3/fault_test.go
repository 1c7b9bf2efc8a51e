package blobs3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/blobdir"
	"github.com/tutti-project/tutti/internal/store/blobs3"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

// What is cached is served while the store is gone, the rest is not; it comes back by itself, and so does a store that was opened
// meanwhile.
func TestTheStoreIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	config, marks := server.Config("gone"), cas.NewMarks()
	cache := openCache(t, 1<<20)
	s := open(t, config, marks, cache)
	cached, other := put(t, s, "cached"), put(t, s, "not cached")
	cache.Remove(other)
	server.Kill()

	for range 3 { // also when it is known to be away
		wantContent(t, s, cached, "cached")
		_, err := s.Open(t.Context(), other)
		wantUnavailable(t, err, "does not answer", "s3://tutti/gone")
		_, _, err = s.Put(t.Context(), strings.NewReader("new"))
		wantUnavailable(t, err, "does not answer")
	}
	if s.Problem() == nil {
		t.Error("nothing is known of a problem")
	}
	if missing, err := s.Missing(t.Context(), []fleet.Digest{other}); err != nil || len(missing) > 0 {
		t.Errorf("the records know without the store: %v, %v", missing, err)
	}
	if fault.RetryAfter(errors.Unwrap(openError(t, s, other))) == 0 && fault.RetryAfter(openError(t, s, other)) == 0 {
		t.Error("nobody is told when to come back")
	}
	late := open(t, config, marks, openCache(t, 1<<20)) // a server that starts meanwhile
	_, err := late.Missing(t.Context(), []fleet.Digest{other})
	wantUnavailable(t, err, "does not answer")

	server.Again()
	for _, s := range []*blobs3.Store{s, late} {
		eventually(t, "the store is used again", func() bool { return openError(t, s, other) == nil })
		wantContent(t, s, other, "not cached")
		if err := s.Problem(); err != nil {
			t.Errorf("still: %v", err)
		}
	}
}

func openError(t *testing.T, s *blobs3.Store, d fleet.Digest) error {
	t.Helper()
	blob, err := s.Open(t.Context(), d)
	if err == nil {
		_ = blob.Close()
	}
	return err
}

// A store that is killed, or a connection that is cut, in the middle of an upload: the writer is told, nothing counts as stored, and
// putting it again works. Small uploads and those in parts.
func TestAnUploadBreaksOff(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"one request": 4 << 20, "in parts": 20 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := blobs3test.Start(t)
			way := newWay(t, server)
			config := server.Config("uploads")
			config.Endpoint = way.endpoint
			s := open(t, config, cas.NewMarks(), openCache(t, 1<<30))
			content := random(size)
			d := fleet.DigestOf(content)
			for how, cut := range map[string]func(){"the store is killed": server.Kill, "the connection is cut": way.cut} {
				way.after(int64(size/2), cut)
				err := s.PutAs(t.Context(), d, bytes.NewReader(content))
				if way.wasCut() {
					wantUnavailable(t, err)
				} else {
					t.Errorf("%s: it never was", how)
				}
				way.heal()
				server.Kill()
				server.Again()
				eventually(t, "the store is used again", func() bool { return fault.Is(openError(t, s, d), fault.NotFound) })
				if missing, err := s.Missing(t.Context(), []fleet.Digest{d}); err != nil || len(missing) != 1 {
					t.Errorf("%s: missing are %v, %v", how, missing, err)
				}
				if _, err := os.Stat(server.Object("uploads/blobs/" + string(d[:2]) + "/" + string(d))); err == nil {
					t.Errorf("%s: an object is there", how)
				}
			}
			eventually(t, "it is put", func() bool { return s.PutAs(t.Context(), d, bytes.NewReader(content)) == nil })
			other := open(t, server.Config("uploads"), cas.NewMarks(), openCache(t, 1<<30))
			if got, err := cas.Bytes(t.Context(), other, d, 1<<30); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// A download that breaks off gives nobody half a blob.
func TestADownloadBreaksOff(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	way := newWay(t, server)
	config := server.Config("downloads")
	config.Endpoint = way.endpoint
	marks := cas.NewMarks()
	content := random(4 << 20)
	d := put(t, open(t, config, marks, openCache(t, 1<<30)), string(content))
	for name, most := range map[string]int64{"with a cache": 1 << 30, "without room": 0} {
		s := open(t, config, marks, openCache(t, most))
		way.back(1<<20, way.cut)
		got, err := cas.Bytes(t.Context(), s, d, 1<<30)
		if !fault.Is(err, fault.Unavailable) || len(got) > 0 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		way.heal()
		eventually(t, "it is read", func() bool {
			got, err := cas.Bytes(t.Context(), s, d, 1<<30)
			return err == nil && bytes.Equal(got, content)
		})
	}
}

// A store that accepts connections and says nothing is given up.
func TestTheStoreIsSilent(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	way := newWay(t, server)
	config := server.Config("silent")
	config.Endpoint, config.Timeout = way.endpoint, 300*time.Millisecond
	cache := openCache(t, 1<<30)
	s := open(t, config, cas.NewMarks(), cache)
	d := put(t, s, "content")
	way.hush()
	wantContent(t, s, d, "content")
	cache.Remove(d)
	wantUnavailable(t, openError(t, s, d), "does not answer")
	_, _, err := s.Put(t.Context(), strings.NewReader("new"))
	wantUnavailable(t, err, "does not answer")
}

// A cached file that was damaged is noticed, and fetched again, also after a restart; one that is damaged in the store is refused,
// and put again.
func TestDamage(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	config, marks, dir := server.Config("damage"), cas.NewMarks(), t.TempDir()
	for _, wrong := range []string{"tampered", "x", "", "original and more"} {
		cache, err := blobdir.OpenCache(dir, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, config, marks, cache)
		d := put(t, s, "original")
		file := filepath.Join(dir, "blobs", string(d[:2]), string(d))
		if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte(wrong), 0o600),
			os.Chtimes(file, time.Time{}, time.Now().Add(time.Second))); err != nil {
			t.Fatal(err)
		}
		wantContent(t, s, d, "original")
		if text, err := os.ReadFile(file); err != nil || string(text) != "original" {
			t.Errorf("the cache has %q, %v", text, err)
		}

		object := server.Object("damage/blobs/" + string(d[:2]) + "/" + string(d))
		if err := os.WriteFile(object, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		wantContent(t, s, d, "original") // of the cache
		cache.Remove(d)
		if err := openError(t, s, d); !errors.Is(err, cas.ErrCorrupt) {
			t.Errorf("%q was taken for the original: %v", wrong, err)
		}
		if missing, err := s.Missing(t.Context(), []fleet.Digest{d}); err != nil || len(missing) != 1 {
			t.Errorf("missing: %v, %v", missing, err)
		}
		put(t, s, "original")
		wantContent(t, s, d, "original")
		if err := cache.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An object that somebody removed is missing once somebody asked for it.
func TestAnObjectIsGone(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	cache := openCache(t, 1<<20)
	s := open(t, server.Config("removed"), cas.NewMarks(), cache)
	d := put(t, s, "content")
	cache.Remove(d)
	if err := os.Remove(server.Object("removed/blobs/" + string(d[:2]) + "/" + string(d))); err != nil {
		t.Fatal(err)
	}
	if err := openError(t, s, d); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	if missing, err := s.Missing(t.Context(), []fleet.Digest{d}); err != nil || len(missing) != 1 {
		t.Errorf("missing: %v, %v", missing, err)
	}
}

func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	config := server.Config("keys")
	config.CredentialsFile = server.Credentials("wrong")
	s := open(t, config, cas.NewMarks(), openCache(t, 1<<20))
	_, _, err := s.Put(t.Context(), strings.NewReader("x"))
	wantUnavailable(t, err, "refuses the credentials", "blobs_credentials")
	if strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), blobs3test.AccessKey) {
		t.Errorf("the error tells the key: %v", err)
	}
	if _, err := blobs3.Probe(t.Context(), config); fault.Of(err) != fault.Unavailable {
		t.Errorf("the check says %v", err)
	}

	// The right ones in the same file are used at once.
	right, err := os.ReadFile(server.Credentials(blobs3test.SecretKey))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(config.CredentialsFile, right, 0o600),
		os.Chtimes(config.CredentialsFile, time.Time{}, time.Now().Add(time.Second))); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, put(t, s, "x"), "x")
	if _, err := blobs3.Probe(t.Context(), config); err != nil {
		t.Error(err)
	}

	// Everybody could read them; and a bucket that is not there.
	if err := os.Chmod(config.CredentialsFile, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = blobs3.Probe(t.Context(), config)
	wantUnavailable(t, err, "chmod o=")
	config = server.Config("")
	config.Place = "s3://nobodys-bucket"
	_, err = blobs3.Probe(t.Context(), config)
	wantUnavailable(t, err, "no bucket nobodys-bucket")
}

// Two servers with records in common.
func TestTwoServersAndASweep(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	config, marks := server.Config("two"), cas.NewMarks()
	server.Race(t, "two", open(t, config, marks, openCache(t, 0)), open(t, config, marks, openCache(t, 0)))
}

// A server that stops while it removes a first lot of what is old ends: listing the rest says no more.
func TestASweepThatIsStopped(t *testing.T) {
	t.Parallel()
	s := open(t, blobs3test.Start(t).Config("stopped"), cas.NewMarks(), openCache(t, 0))
	const lot = 250
	for n := range lot + 5 {
		put(t, s, fmt.Sprint("content ", n))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := 0
	_, _, err := s.Sweep(ctx, func(fleet.Digest) bool {
		if seen++; seen == lot {
			stop()
		}
		return false
	}, time.Now().Add(time.Hour))
	if !errors.Is(err, context.Canceled) || seen != lot {
		t.Errorf("after %d of %d: %v", seen, lot+5, err)
	}
}

// Who reads beside holds off what would be removed.
func TestReadingBeside(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	config := server.Config("beside")
	s := open(t, config, cas.NewMarks(), openCache(t, 1<<20))
	d := put(t, s, "content")
	reader, err := blobs3.OpenBeside(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	all := func(fleet.Digest) bool { return false }
	_, _, err = s.Sweep(t.Context(), all, time.Now().Add(time.Hour))
	wantUnavailable(t, err, "nothing is removed")
	var found []fleet.Digest
	if err := reader.Each(t.Context(), func(d fleet.Digest, size int64) error {
		if found = append(found, d); size != 7 {
			t.Errorf("it has %d bytes", size)
		}
		return nil
	}); err != nil || !slices.Equal(found, []fleet.Digest{d}) {
		t.Errorf("found %v, %v", found, err)
	}
	body, err := reader.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(body); err != nil || string(text) != "content" {
		t.Errorf("read %q, %v", text, err)
	}
	_ = body.Close()
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if removed, _, err := s.Sweep(t.Context(), all, time.Now().Add(time.Hour)); err != nil || removed != 1 {
		t.Errorf("removed %d, %v", removed, err)
	}
}

// Content that came into the bucket past the servers is known after a Rename, and records of another store are forgotten.
func TestAnotherStore(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	marks := cas.NewMarks()
	d := put(t, open(t, server.Config("first"), marks, openCache(t, 1<<20)), "content")
	second := open(t, server.Config("second"), marks, openCache(t, 1<<20))
	if missing, err := second.Missing(t.Context(), []fleet.Digest{d}); err != nil || len(missing) != 1 {
		t.Errorf("missing in the second: %v, %v", missing, err)
	}
	beside := open(t, server.Config("second"), cas.NewMarks(), blobs3.Uncached{})
	put(t, beside, "content")
	if err := beside.Rename(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := open(t, server.Config("second"), marks, openCache(t, 1<<20))
	if missing, err := again.Missing(t.Context(), []fleet.Digest{d}); err != nil || len(missing) != 0 {
		t.Errorf("missing after the copy: %v, %v", missing, err)
	}
	wantContent(t, again, d, "content")
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for place, good := range map[string]bool{
		"s3://tutti": true, "s3://tutti/a/b": true, "s3://tutti/a/": true, "s3://my.bucket-1/x": true,
		"s3://": false, "s3://ab": false, "s3://Tutti": false, "s3:/tutti": false, "/var/lib": false, "s3://tutti/a//b": false, "s3://tutti/../b": false,
		"s3://tutti/a?b": false,
	} {
		err := blobs3.Config{Place: place, Region: "us-east-1"}.Check()
		if good != (err == nil) || err != nil && fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v", place, err)
		}
	}
	for _, endpoint := range []string{"example.test", "ftp://example.test", "https://u:p@example.test", "https://example.test/path", "https://example.test?x=1"} {
		err := blobs3.Config{Place: "s3://tutti", Endpoint: endpoint}.Check()
		if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func put(tb testing.TB, s cas.Store, content string) fleet.Digest {
	tb.Helper()
	d, _, err := s.Put(tb.Context(), strings.NewReader(content))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func wantContent(t *testing.T, s cas.Store, d fleet.Digest, want string) {
	t.Helper()
	if got, err := cas.Bytes(t.Context(), s, d, 1<<20); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func wantUnavailable(t *testing.T, err error, words ...string) {
	t.Helper()
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v (%v), want unavailable", err, fault.Of(err))
		return
	}
	for _, word := range words {
		if !strings.Contains(fault.Detail(err), word) {
			t.Errorf("%q does not mention %q", fault.Detail(err), word)
		}
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 1200 {
		if is() {
			return
		}
		<-tick.C
	}
	t.Fatalf("%s: not within a minute", what)
}

func random(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	return content
}

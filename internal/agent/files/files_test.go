package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/orders/orderstest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// servers answer requests without a network.
type servers struct {
	mu     sync.Mutex
	files  map[string]string // by path
	asked  []string
	answer func(r *http.Request) (*http.Response, error) // nil: from files
}

func (s *servers) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.String())
	answer := s.answer
	content, there := s.files[r.URL.Path]
	s.mu.Unlock()
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case answer != nil:
		return answer(r)
	case there:
		return respond(http.StatusOK, content), nil
	default:
		return respond(http.StatusNotFound, "no such file"), nil
	}
}

func respond(status int, content string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(content)), ContentLength: int64(len(content)),
	}
}

func (s *servers) offer(filename, content string) pxp.FileSource {
	sum := sha256.Sum256([]byte(content))
	digest := hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files["/job-files/v1/"+digest] = content
	return pxp.FileSource{Filename: filename, SHA256: digest, URI: pxp.Source{Path: "/job-files/v1/" + digest}}
}

func (s *servers) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func newCache(t *testing.T, change func(*Config)) (*Cache, *servers) {
	t.Helper()
	s := &servers{files: map[string]string{}}
	cfg := Config{
		Dir: filepath.Join(t.TempDir(), "cache"), Servers: []string{"https://a:8140", "https://b:8140/"}, Client: &http.Client{Transport: s},
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	return New(cfg), s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	orderstest.RunCache(t, func(t *testing.T) orderstest.Store {
		t.Helper()
		c, s := newCache(t, func(c *Config) { c.Servers = c.Servers[:1] })
		c.pauses = []time.Duration{time.Millisecond} // the suite has no clock of its own
		missing := pxp.FileSource{Filename: "missing", SHA256: strings.Repeat("0", 64), URI: pxp.Source{Path: "/nowhere"}}
		return orderstest.Store{Cache: c, Offer: s.offer, Missing: missing, Dir: t.TempDir()}
	})
}

func isContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v", path, got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("%s: %v %v", path, info, err)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	c, s := newCache(t, nil)
	f := s.offer("module/tasks/init.sh", "#!/bin/sh\n")
	path, err := c.File(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(c.cfg.Dir, f.SHA256, "init.sh"); path != want {
		t.Errorf("got %s, want %s", path, want)
	}
	isContent(t, path, "#!/bin/sh\n")
	s.questions()
	if _, err := c.File(t.Context(), f); err != nil || len(s.questions()) != 0 {
		t.Errorf("what is there was downloaded again, or %v", err)
	}
	// Somebody changed it: it is not run, but downloaded again.
	if err := os.WriteFile(path, []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.File(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	isContent(t, path, "#!/bin/sh\n")
	onlyFile(t, path)
}

// onlyFile checks that nothing temporary is left beside a file.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("in its directory: %v %v", entries, err)
	}
}

func TestWrongChecksum(t *testing.T) {
	t.Parallel()
	c, s := newCache(t, nil)
	f := s.offer("init.sh", "good")
	s.files[f.URI.Path] = "evil"
	_, err := c.File(t.Context(), f)
	if fault.Of(err) != fault.Invalid || fault.Detail(err) != `The downloaded file "init.sh" has a SHA that differs from the provided SHA` {
		t.Errorf("got %v", err)
	}
	if asked := s.questions(); len(asked) != 1 {
		t.Errorf("it was asked for again: %q", asked)
	}
	entries, err := os.ReadDir(filepath.Join(c.cfg.Dir, f.SHA256))
	if err != nil || len(entries) != 0 {
		t.Errorf("left: %v %v", entries, err)
	}
	f.SHA256 = strings.ToUpper(f.SHA256) // digests are lower case
	s.files[f.URI.Path] = "good"
	if _, err := c.File(t.Context(), f); fault.Of(err) != fault.Invalid {
		t.Errorf("in upper case: %v", err)
	}
}

func TestRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCache(t, nil)
		f := s.offer("init.sh", "good")
		begin := time.Now()
		var at []time.Duration
		s.answer = func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "a:8140" {
				at = append(at, time.Since(begin))
				return nil, errors.New("connection refused")
			}
			return respond(http.StatusServiceUnavailable, ""), nil
		}
		_, err := c.File(t.Context(), f)
		want := `Failed to download file with: Get "https://a:8140` + f.URI.Path + `": connection refused; https://b:8140/ answered 503 Service Unavailable`
		if fault.Of(err) != fault.Unavailable || fault.Detail(err) != want {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}, at); diff != "" {
			t.Errorf("rounds (-want +got):\n%s", diff)
		}
		s.answer = func(r *http.Request) (*http.Response, error) { // the second server gives it
			if r.URL.Host == "a:8140" {
				return nil, errors.New("connection refused")
			}
			return respond(http.StatusOK, "good"), nil
		}
		if _, err := c.File(t.Context(), f); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // in a pause
		defer cancel()
		f = s.offer("init.sh", "other")
		s.answer = func(*http.Request) (*http.Response, error) { return nil, io.EOF }
		if _, err := c.File(ctx, f); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	c, s := newCache(t, nil)
	f := s.offer("init.sh", "good")
	s.files["/puppet/v3/file_content/tasks/m/init.sh"] = "good"
	f.URI = pxp.Source{Path: "/puppet/v3/file_content/tasks/m/init.sh", Params: map[string]string{"environment": "a b&c", "code_id": "ü"}}
	if _, err := c.File(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	want := []string{"https://a:8140/puppet/v3/file_content/tasks/m/init.sh?code_id=%C3%BC&environment=a+b%26c"}
	if diff := cmp.Diff(want, s.questions()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	for _, path := range []string{"", "x", "/%zz", "@evil/"} {
		f := pxp.FileSource{Filename: "a", SHA256: strings.Repeat("1", 64), URI: pxp.Source{Path: path}}
		if _, err := c.File(t.Context(), f); fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %v", path, err)
		}
	}
	if len(s.questions()) != 0 {
		t.Error("something was asked")
	}
}

func TestNoServers(t *testing.T) {
	t.Parallel()
	c, s := newCache(t, func(c *Config) { c.Servers = nil })
	_, err := c.File(t.Context(), s.offer("a", "b"))
	if fault.Detail(err) != "Cannot download file. No master-uris were provided" {
		t.Errorf("got %v", err)
	}
}

func TestTooBig(t *testing.T) {
	t.Parallel()
	c, s := newCache(t, func(c *Config) { c.MaxBytes = 10 })
	f := s.offer("a", "12345678901")
	for _, announced := range []int64{11, -1} {
		s.answer = func(*http.Request) (*http.Response, error) {
			r := respond(http.StatusOK, "12345678901")
			r.ContentLength = announced
			return r, nil
		}
		_, err := c.File(t.Context(), f)
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), "at most 10 bytes") {
			t.Errorf("announced %d: %v", announced, err)
		}
	}
	s.answer = nil
	if _, err := c.File(t.Context(), s.offer("a", "1234567890")); err != nil {
		t.Error(err)
	}
}

// The agent's certificate is for its own servers.
func TestRedirect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCache(t, func(c *Config) { c.Servers = c.Servers[:1] })
		s.answer = func(*http.Request) (*http.Response, error) {
			r := respond(http.StatusFound, "")
			r.Header.Set("Location", "https://evil/")
			return r, nil
		}
		_, err := c.File(t.Context(), s.offer("a", "b"))
		if !strings.Contains(fault.Detail(err), "answered 302 Found") {
			t.Errorf("got %v", err)
		}
		for _, asked := range s.questions() {
			if strings.Contains(asked, "evil") {
				t.Errorf("asked %s", asked)
			}
		}
	})
}

func TestOneDownloadForEachDigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCache(t, nil)
		f := s.offer("a", "one")
		s.answer = func(*http.Request) (*http.Response, error) {
			<-time.After(time.Minute) // a slow server
			return respond(http.StatusOK, "one"), nil
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := c.File(t.Context(), f); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if asked := s.questions(); len(asked) != 1 {
			t.Errorf("%d downloads", len(asked))
		}
		if len(c.locks) != 0 {
			t.Errorf("%d locks are left", len(c.locks))
		}
	})
}

func TestInstall(t *testing.T) {
	t.Parallel()
	c, s := newCache(t, nil)
	dir := t.TempDir()
	files := map[string]pxp.FileSource{"m/tasks/a.sh": s.offer("a.sh", "one"), "m/files/deep/b": s.offer("m/files/deep/b", "two")}
	if err := c.Install(t.Context(), filepath.Join(dir, "x"), files); err != nil {
		t.Fatal(err)
	}
	isContent(t, filepath.Join(dir, "x", "m", "tasks", "a.sh"), "one")
	isContent(t, filepath.Join(dir, "x", "m", "files", "deep", "b"), "two")
	for _, name := range []string{"../b", "/b", ""} {
		if err := c.Install(t.Context(), dir, map[string]pxp.FileSource{name: files["m/tasks/a.sh"]}); fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestMake(t *testing.T) {
	t.Parallel()
	c, s := newCache(t, nil)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	f := s.offer("a", "one")
	file := func(name string) pxp.FileEntry {
		return pxp.FileEntry{Kind: pxp.RegularFile, Destination: at(name), SHA256: f.SHA256, URI: f.URI}
	}
	must := func(entry pxp.FileEntry) {
		t.Helper()
		if err := c.Make(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	must(file("new/a"))
	isContent(t, at("new/a"), "one")
	onlyFile(t, at("new/a"))
	s.questions()
	if err := os.Chmod(at("new/a"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(file("new/a")) // it is kept, its mode is set
	isContent(t, at("new/a"), "one")
	if len(s.questions()) != 0 {
		t.Error("it was downloaded again")
	}
	if err := os.WriteFile(at("new/a"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(file("new/a"))
	isContent(t, at("new/a"), "one")
	must(pxp.FileEntry{Kind: pxp.Symlink, Destination: at("link"), LinkSource: "new/a"})
	must(pxp.FileEntry{Kind: pxp.Symlink, Destination: at("link"), LinkSource: "new"})
	if to, err := os.Readlink(at("link")); err != nil || to != "new" {
		t.Errorf("the link points to %s, %v", to, err)
	}
	must(pxp.FileEntry{Kind: pxp.Directory, Destination: at("link")})
	must(pxp.FileEntry{Kind: pxp.Directory, Destination: at("d/e")})
	for want, entry := range map[string]pxp.FileEntry{
		"Destination " + at("new/a") + " already exists and is not a directory!": {Kind: pxp.Directory, Destination: at("new/a")},
		"Destination " + at("new") + " already exists and is not a symlink!":     {Kind: pxp.Symlink, Destination: at("new"), LinkSource: "x"},
		"Destination " + at("new") + " already exists and is a directory!":       file("new"),
		`The destination "new/a" is not an absolute path`:                        {Kind: pxp.Directory, Destination: "new/a"},
		`The kind "pipe" is none of file, directory and symlink`:                 {Kind: "pipe", Destination: at("p")},
	} {
		if err := c.Make(t.Context(), entry); fault.Detail(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestPurgeByLastUse(t *testing.T) {
	t.Parallel()
	c, s := newCache(t, nil)
	old, used := s.offer("a", "one"), s.offer("a", "two")
	for _, f := range []pxp.FileSource{old, used} {
		path, err := c.File(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		long := time.Now().Add(-20 * 24 * time.Hour)
		if err := os.Chtimes(filepath.Dir(path), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(c.cfg.Dir, "not ours"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.File(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	gone, err := c.Purge(t.Context(), time.Now().Add(-14*24*time.Hour))
	if err != nil || gone != 1 {
		t.Errorf("purged %d, %v", gone, err)
	}
	if _, err := os.Stat(filepath.Join(c.cfg.Dir, old.SHA256)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
}

// A download that breaks off in the middle is no file.
func TestBrokenDownload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := newCache(t, nil)
		f := s.offer("a", "0123456789")
		tries := 0
		s.answer = func(*http.Request) (*http.Response, error) {
			if tries++; tries > 1 {
				return respond(http.StatusOK, "0123456789"), nil
			}
			r := respond(http.StatusOK, "")
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader([]byte("01234")), broken{}))
			return r, nil
		}
		path, err := c.File(t.Context(), f)
		if err != nil || tries != 2 {
			t.Fatalf("%d tries, %v", tries, err)
		}
		isContent(t, path, "0123456789")
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

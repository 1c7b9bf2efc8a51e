package orderstest

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Store is a cache under test, with servers behind it.
type Store struct {
	Cache orders.Cache
	// Offer gives a content to the servers.
	Offer func(filename, content string) pxp.FileSource
	// Missing is a file that no server has.
	Missing pxp.FileSource
	// Dir is for files that are made.
	Dir string
}

// RunCache holds the caches that open returns to the port's contract. open is called
// once a test, and cleans up after itself.
func RunCache(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Store){
		"a file has its name":          hasItsName,
		"a file that is nowhere":       isNowhere,
		"many want one file":           manyWant,
		"files are installed":          installs,
		"files are made":               makes,
		"what is not used is purged":   purgesUnused,
		"a context that ends is heard": hearsContext,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func hasItsName(t *testing.T, s Store) {
	f := s.Offer("module/tasks/init.sh", "one")
	first, err := s.Cache.File(t.Context(), f)
	if err != nil || path.Base(filepath.ToSlash(first)) != "init.sh" {
		t.Fatalf("got %s, %v", first, err)
	}
	second, err := s.Cache.File(t.Context(), f)
	if err != nil || second != first {
		t.Errorf("the second time: %s, %v", second, err)
	}
	f.Filename = "other.sh"
	other, err := s.Cache.File(t.Context(), f)
	if err != nil || path.Base(filepath.ToSlash(other)) != "other.sh" {
		t.Errorf("under another name: %s, %v", other, err)
	}
}

func isNowhere(t *testing.T, s Store) {
	_, err := s.Cache.File(t.Context(), s.Missing)
	isKind(t, err, fault.Unavailable)
	if !strings.HasPrefix(fault.Detail(err), "Failed to download file with: ") {
		t.Errorf("the words: %q", fault.Detail(err))
	}
	isKind(t, s.Cache.Install(t.Context(), s.Dir, map[string]pxp.FileSource{"a/b": s.Missing}), fault.Unavailable)
}

func manyWant(t *testing.T, s Store) {
	f := s.Offer("a.sh", "one")
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := s.Cache.File(t.Context(), f)
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func installs(t *testing.T, s Store) {
	files := map[string]pxp.FileSource{"m/tasks/a.sh": s.Offer("a.sh", "one"), "m/files/deep/b": s.Offer("m/files/deep/b", "two")}
	if err := s.Cache.Install(t.Context(), filepath.Join(s.Dir, "installed"), files); err != nil {
		t.Error(err)
	}
}

func makes(t *testing.T, s Store) {
	f := s.Offer("a", "one")
	at := func(name string) string { return filepath.Join(s.Dir, name) }
	for _, entry := range []pxp.FileEntry{
		{Kind: pxp.Directory, Destination: at("x/y")},
		{Kind: pxp.Directory, Destination: at("x/y")},
		{Kind: pxp.RegularFile, Destination: at("x/y/a"), SHA256: f.SHA256, URI: f.URI},
		{Kind: pxp.RegularFile, Destination: at("new/a"), SHA256: f.SHA256, URI: f.URI},
		{Kind: pxp.Symlink, Destination: at("x/link"), LinkSource: "y/a"},
	} {
		if err := s.Cache.Make(t.Context(), entry); err != nil {
			t.Errorf("%+v: %v", entry, err)
		}
	}
	missing := pxp.FileEntry{Kind: pxp.RegularFile, Destination: at("z"), SHA256: s.Missing.SHA256, URI: s.Missing.URI}
	isKind(t, s.Cache.Make(t.Context(), missing), fault.Unavailable)
}

func purgesUnused(t *testing.T, s Store) {
	if gone, err := s.Cache.Purge(t.Context(), time.Now()); err != nil || gone != 0 {
		t.Errorf("an empty cache: %d, %v", gone, err)
	}
	for _, text := range []string{"one", "two"} {
		if _, err := s.Cache.File(t.Context(), s.Offer("a.sh", text)); err != nil {
			t.Fatal(err)
		}
	}
	if gone, err := s.Cache.Purge(t.Context(), time.Now().Add(-time.Hour)); err != nil || gone != 0 {
		t.Errorf("what is in use: %d, %v", gone, err)
	}
	if gone, err := s.Cache.Purge(t.Context(), time.Now().Add(time.Hour)); err != nil || gone != 2 {
		t.Errorf("what is not: %d, %v", gone, err)
	}
	if _, err := s.Cache.File(t.Context(), s.Offer("a.sh", "one")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func hearsContext(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Cache.File(ctx, s.Offer("a.sh", "one")); err == nil {
		t.Error("it was downloaded all the same")
	}
}

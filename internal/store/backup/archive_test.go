package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/blobdir"
)

// Wherever an archive is cut, and whichever byte of it is another one, it is refused in words.
func TestACutOrAlteredArchiveIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rows.rows["nodes"] = w.rows.rows["nodes"][:50]
	target := filepath.Join(t.TempDir(), "one.backup")
	w.create(target)
	whole, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.backup")
	check := func(what string, text []byte) {
		t.Helper()
		if err := os.WriteFile(bad, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Verify(t.Context(), bad, "", w.key, nil)
		if kind := fault.Of(err); err == nil || kind != fault.Invalid && kind != fault.Denied {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := 0; n < len(whole); n += 1 + len(whole)/60 {
		check(fmt.Sprintf("cut at %d", n), whole[:n])
		altered := bytes.Clone(whole)
		altered[n] ^= 1
		check(fmt.Sprintf("altered at %d", n), altered)
	}
	check("cut by one", whole[:len(whole)-1])
	check("longer", append(bytes.Clone(whole), 0))
	check("no archive", []byte("hello"))
}

// What an archive holds is checked also when whoever made it had the public key.
func TestAForgedArchiveIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	digest := fleet.DigestOf([]byte("x"))
	for name, forge := range map[string]func(a *archive) error{
		"a file elsewhere":     func(a *archive) error { return a.part("data/../../etc/passwd", nil) },
		"the database as file": func(a *archive) error { return a.part("data/tutti.db", nil) },
		"the marker":           func(a *archive) error { return a.part("data/"+MarkerFile, nil) },
		"an unknown part":      func(a *archive) error { return a.part("something", nil) },
		"two headers":          func(a *archive) error { return a.part(headerPart, []byte("{}")) },
		"rows":                 func(a *archive) error { return a.part("records/0001.0001-nodes", []byte{1, 1, 'a', 9}) },
		"a list":               func(a *archive) error { return a.part("lists/0001", []byte("hello\n")) },
		"a wrong blob":         func(a *archive) error { return a.blob(w.t.Context(), digest, 1, strings.NewReader("y")) },
		"an unlisted part": func(a *archive) error {
			err := a.part("data/ca/x", nil)
			a.manifest.Parts = a.manifest.Parts[:1]
			return err
		},
		"fewer rows": func(a *archive) error { a.manifest.Rows["nodes"] = 1; return nil },
		"fewer blobs": func(a *archive) error {
			err := a.blob(w.t.Context(), digest, 1, strings.NewReader("x"))
			a.blobs = newBlobSum()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			a, err := newArchive(&text, w.lock, Header{Format: format})
			if err == nil {
				err = forge(a)
			}
			if err == nil {
				err = a.close()
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			file := filepath.Join(t.TempDir(), "forged")
			put(t, file, text.String())
			blobs, err := blobdir.Open(filepath.Join(dir, "blobs"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = blobs.Close() }()
			_, err = Restore(t.Context(), file, "", w.key, Destination{
				Dir: dir, Blobs: blobs, Loader: func(context.Context, Schema) (Loader, error) { return &tables{rows: map[string][][]any{}}, nil },
			})
			if err == nil {
				t.Error("it is restored")
			}
			if CheckDataDir(dir) == nil {
				t.Error("a server could start on what was restored of it")
			}
		})
	}
}

func TestANewerFormatNamesItsVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var text bytes.Buffer
	a, err := newArchive(&text, w.lock, Header{Format: format + 1, Tutti: "v9.9.9"})
	if err == nil {
		err = a.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = read(t.Context(), &text, w.key, &checking{ctx: t.Context()})
	if fault.Of(err) != fault.Conflict || !strings.Contains(fault.Detail(err), "use tutti v9.9.9") {
		t.Error(err)
	}
}

// FuzzArchive reads what somebody wrote who had the public key.
func FuzzArchive(f *testing.F) {
	f.Add([]byte("records/0001.0001-nodes"), []byte{1, 1, 'a', isInt, 2}, []byte(`{"parts":[],"rows":{"nodes":1}}`))
	f.Add([]byte("lists/0001"), []byte(strings.Repeat("a", 64)+" 5\n"), []byte(`{}`))
	f.Add([]byte("data/ca/x"), []byte("x"), []byte(`{"parts":null`))
	f.Fuzz(func(t *testing.T, name, content, manifest []byte) {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		a, err := newArchive(&text, Lock{recipients: []age.Recipient{identity.Recipient()}}, Header{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		if a.part(string(name), content) != nil || a.head(manifestPart, int64(len(manifest))) != nil {
			return
		}
		_, _ = a.tar.Write(manifest)
		_ = errors.Join(a.tar.Close(), a.packed.Close(), a.sealed.Close())
		dir := t.TempDir()
		_, _, err = read(t.Context(), &text, Key{identities: []age.Identity{identity}}, &restoring{
			checking: checking{ctx: t.Context()}, to: Destination{Dir: dir, Share: OnlyCA},
		})
		if fault.Is(err, fault.Internal) {
			t.Errorf("an error without words: %v", err)
		}
	})
}

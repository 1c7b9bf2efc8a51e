package backup

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// FuzzLists reads lists of the blobs that stand beside an archive: each is a digest that names a place below the directory, and a size.
func FuzzLists(f *testing.F) {
	digest := string(fleet.DigestOf([]byte("x")))
	f.Add([]byte(digest + " 5\n"))
	f.Add([]byte(digest + " 5\n" + digest + " 0"))
	f.Add([]byte("../" + digest + " 5\n"))
	f.Add([]byte(digest + " -1\n"))
	f.Add([]byte(digest + " +9223372036854775807\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		seen := &listing{}
		s := scan{to: seen, blobs: newBlobSum()}
		if err := s.list(text); err == nil && len(seen.digests) != bytes.Count(text, []byte{'\n'}) && len(seen.digests) != bytes.Count(text, []byte{'\n'})+1 {
			t.Errorf("%q names %d blobs", text, len(seen.digests))
		}
		for _, d := range seen.digests {
			if path := blobPath("/backups", d); !strings.HasPrefix(path, "/backups/blobs/") || filepath.Clean(path) != path {
				t.Errorf("%q is at %s", d, path)
			}
		}
	})
}

// listing is a visitor that remembers what is listed.
type listing struct {
	visitor
	digests []fleet.Digest
}

func (l *listing) listed(d fleet.Digest, size int64) error {
	if size < 0 {
		return errors.New("a size is negative")
	}
	l.digests = append(l.digests, d)
	return nil
}

// FuzzLayout opens directories of backups that say anything of themselves.
func FuzzLayout(f *testing.F) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	lock, err := LockTo(identity.Recipient().String())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"format":1,"recipients":["` + lock.names[0] + `"]}`))
	f.Add([]byte(`{"format":1}`))
	f.Add([]byte(`{"format":99,"recipients":[]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, layoutFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := openDirectory(dir, lock)
		if err != nil {
			if kind := fault.Of(err); kind != fault.Invalid && kind != fault.Conflict {
				t.Errorf("%q: kind %s: %v", text, kind, err)
			}
			return
		}
		layout, err := readLayout(d.path)
		if err != nil || layout.Format != format || len(layout.Recipients) != 1 || layout.Recipients[0] != lock.names[0] {
			t.Errorf("%q was opened as %+v, %v", text, layout, err)
		}
	})
}

// FuzzKeys reads files that should hold keys, private and public ones: what is wrong with them is said without what they hold.
func FuzzKeys(f *testing.F) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("# public key: " + identity.Recipient().String() + "\n" + identity.String() + "\n"))
	f.Add([]byte(identity.Recipient().String() + "\n"))
	f.Add([]byte(identity.String()[:30] + "\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		secret := func(what string, err error) {
			if kind := fault.Of(err); kind != fault.Invalid {
				t.Errorf("%s: kind %s: %v", what, kind, err)
			}
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); len(line) > 20 && strings.Contains(err.Error(), line) {
					t.Errorf("%s: the error holds %q: %v", what, line, err)
				}
			}
		}
		key, err := KeyIn(text)
		if err != nil {
			secret("private key", err)
		} else if len(key.identities) == 0 {
			t.Errorf("%q holds no key and is one", text)
		}
		lock, err := LockTo(string(text))
		if err != nil {
			secret("public key", err)
		} else if len(lock.recipients) == 0 || len(lock.names) == 0 || len(lock.names) > len(lock.recipients) {
			t.Errorf("%q locks to %v of %d", text, lock.names, len(lock.recipients))
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, keyFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ownKey(dir, Key{identities: []age.Identity{identity}}); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q, which nobody encrypted, is a directory's key: %v", text, err)
		}
	})
}

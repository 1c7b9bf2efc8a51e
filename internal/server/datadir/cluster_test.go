package datadir

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

// kept is Secrets in memory.
type kept map[string][]byte

func (k kept) Load(_ context.Context, name string) ([]byte, error) { return k[name], nil }

func (k kept) Add(_ context.Context, name string, content []byte) ([]byte, error) {
	if k[name] == nil {
		k[name] = bytes.Clone(content)
	}
	return k[name], nil
}

// quicker is kept of whom another server was quicker.
type quicker struct{ kept }

func (quicker) Load(context.Context, string) ([]byte, error) { return nil, nil }

// What one server sealed another one opens; one that has sealed with a key of its own is refused, without the key.
func TestServersShareASeal(t *testing.T) {
	t.Parallel()
	secrets := kept{}
	dir := func(name string) *Dir {
		d := &Dir{Path: filepath.Join(t.TempDir(), name)}
		if err := os.Mkdir(d.Path, 0o700); err != nil {
			t.Fatal(err)
		}
		return d
	}
	seal := func(d *Dir) Seal {
		s, err := d.Seal()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second, late, own := dir("first"), dir("second"), dir("late"), dir("own")
	seal(first) // it was alone
	for _, d := range []*Dir{first, second, first, second} {
		if err := d.ShareSeal(t.Context(), secrets); err != nil {
			t.Fatal(err)
		}
	}
	if err := late.ShareSeal(t.Context(), quicker{secrets}); err != nil {
		t.Fatal(err)
	}
	sealed, err := seal(first).Seal([]byte("hush"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Dir{second, late} {
		if text, err := seal(d).Open(sealed); err != nil || string(text) != "hush" {
			t.Errorf("%s opens %q, %v", d.Path, text, err)
		}
	}
	mine := seal(own)
	err = own.ShareSeal(t.Context(), secrets)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), mine.Fingerprint()) || !strings.Contains(err.Error(), seal(first).Fingerprint()) {
		t.Errorf("one with a key of its own: %v", err)
	}
	if again := seal(own); again.Fingerprint() != mine.Fingerprint() {
		t.Error("its key was replaced")
	}
}

// A key that cannot be used is said, and never shown. It does not run beside others: the environment is the whole process's.
func TestTheKeyOfSeveralServers(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4)
	file := func(content string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "cluster.key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	private := filepath.Join(t.TempDir(), "directory")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(ClusterKeyVariable, good)
	fromVariable, err := ClusterKey("")
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := ClusterKey(file(good+"\n", 0o600))
	if err != nil || fromFile.Fingerprint() != fromVariable.Fingerprint() || strings.Contains(good, fromFile.Fingerprint()) {
		t.Errorf("%v; %s, %s", err, fromFile.Fingerprint(), fromVariable.Fingerprint())
	}
	for name, c := range map[string]struct{ file, variable, says string }{
		"others may read it": {file(good, 0o640), "", "chmod 600"},
		"too short":          {file(good[:62], 0o600), "", "not 64 hexadecimal digits"},
		"no digits":          {file(good[:63]+"z", 0o600), "", "not 64 hexadecimal digits"},
		"no key at all":      {file(strings.Repeat(good, 100), 0o600), "", "no file with a key"},
		"a directory":        {private, "", "no file with a key"},
		"not there":          {filepath.Join(t.TempDir(), "none"), "", "cannot be read"},
		"nowhere":            {"", "", "openssl rand -hex 32"},
		"a bad variable":     {"", good + "00", "not 64 hexadecimal digits"},
	} {
		t.Setenv(ClusterKeyVariable, c.variable)
		_, err := ClusterKey(c.file)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), good[:16]) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

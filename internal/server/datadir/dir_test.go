package datadir

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestASecondServerIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "another server (process ") {
		t.Errorf("got %v, want a Conflict that names the process", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(path)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	_ = second.Close()
}

func TestDataDirectoriesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open, file := filepath.Join(dir, "open"), filepath.Join(dir, "file")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{open: "chmod 700", file: "cannot be used", filepath.Join(file, "below"): "cannot be used"} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestTheTokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	data, err := Open(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = data.Close() }()
	first, err := data.Token()
	if err != nil {
		t.Fatal(err)
	}
	second, err := data.Token()
	if err != nil || second != first {
		t.Errorf("the token changed: %v", err)
	}
	if info, err := os.Stat(data.Join(TokenFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file has mode %v, %v", info.Mode(), err)
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	dir := Dir{Path: t.TempDir()}
	key, err := dir.Seal()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.Seal([]byte("secret"))
	if err != nil || bytes.Contains(text, []byte("secret")) {
		t.Fatalf("%q, %v", text, err)
	}
	again, err := dir.Seal()
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := again.Open(text); err != nil || string(plain) != "secret" {
		t.Errorf("after a restart: %q, %v", plain, err)
	}
	if other, err := key.Seal([]byte("secret")); err != nil || bytes.Equal(other, text) {
		t.Error("the same text is sealed in the same way twice")
	}
	text[len(text)-1]++
	for _, bad := range [][]byte{text, nil, []byte("short")} {
		if _, err := key.Open(bad); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := os.WriteFile(dir.Join(SealFile), []byte("half a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Seal(); fault.Of(err) != fault.Invalid || err == nil {
		t.Errorf("a broken key: %v", err)
	}
}

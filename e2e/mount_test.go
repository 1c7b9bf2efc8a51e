package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mountTmpfs gives a story a small disk of its own.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this story mounts a small tmpfs, which needs root: sudo -E go test ./e2e")
	}
	dir := t.TempDir()
	mountTmpfsAt(t, dir, options)
	return dir
}

func mountTmpfsAt(tb testing.TB, dir, options string) {
	tb.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options+",mode=0755"); err != nil {
		tb.Fatalf("mount a tmpfs (%v); in a container: docker run --cap-add SYS_ADMIN", err)
	}
	tb.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			tb.Errorf("unmount %s: %v", dir, err)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	})
}

// remount makes a mounted disk read-only or writable.
func remount(t *testing.T, dir, how string) {
	t.Helper()
	flags := uintptr(unix.MS_REMOUNT)
	if how == "ro" {
		flags |= unix.MS_RDONLY
	}
	eventually(t, patience, "remount "+dir+" "+how, func() bool {
		err := unix.Mount("tmpfs", dir, "tmpfs", flags, "")
		if err != nil && !errors.Is(err, unix.EBUSY) { // a program that another test starts has our files open until it runs
			t.Fatalf("remount %s %s: %v", dir, how, err)
		}
		return err == nil
	})
}

func sha256Hex(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A passphrase from a file leaves standard input open: a file made of descriptor 0 and forgotten closed it once, and later whatever
// had the number by then.
func TestAPassphraseClosesNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "passphrase")
	if err := os.WriteFile(path, []byte("correct horse\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got, err := (&passphraseFlags{file: path, fd: -1}).read(); got != "correct horse" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		forgotten := make(chan bool)
		runtime.SetFinalizer(new([16]byte), func(*[16]byte) { close(forgotten) })
		runtime.GC()
		<-forgotten // and what was forgotten before it
	}
	if _, err := unix.FcntlInt(0, unix.F_GETFD, 0); err != nil {
		t.Errorf("standard input: %v", err)
	}
}

func TestAPassphraseOfADescriptor(t *testing.T) {
	t.Parallel()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(ends[1], []byte("correct horse\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(ends[1]); err != nil {
		t.Fatal(err)
	}
	if got, err := (&passphraseFlags{fd: ends[0]}).read(); got != "correct horse" || err != nil { // which closes it
		t.Errorf("%q, %v", got, err)
	}
}

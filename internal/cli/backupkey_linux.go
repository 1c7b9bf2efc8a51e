package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/backup"
)

// passphraseFlags say where a passphrase comes from. It is never an argument or a variable: those
// are seen by others.
type passphraseFlags struct {
	file string
	fd   int
}

func (in *passphraseFlags) add(f flagSet) {
	f.StringVar(&in.file, "passphrase-file", "", "file whose first line is the passphrase")
	f.IntVar(&in.fd, "passphrase-fd", -1, "file descriptor whose first line is the passphrase")
}

// read reads the passphrase; empty: none was named.
func (in *passphraseFlags) read() (string, error) {
	if in.file == "" && in.fd < 0 {
		return "", nil
	}
	file, name, err := in.open()
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxLine+1))
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "no passphrase can be read from %s: %v", name, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	switch line = strings.TrimRight(line, "\r"); {
	case line == "":
		return "", usageError{fault.New(fault.Invalid, "the first line of %s is empty: it must be the passphrase", name)}
	case len(line) > maxLine: // a part of it would be another passphrase
		return "",
			usageError{fault.New(fault.Invalid, "the first line of %s has more than %d bytes; it must be the passphrase: is it the right file?", name, maxLine)}
	case strings.ContainsRune(line, 0):
		return "", usageError{fault.New(fault.Invalid, "the first line of %s is no text; it must be the passphrase: is it the right file?", name)}
	}
	return line, nil
}

func (in *passphraseFlags) open() (file *os.File, name string, err error) {
	if in.file != "" {
		file, err = openNamed("the passphrase", in.file)
		return file, in.file, err
	}
	// Only a descriptor that was given: whatever is made of one is closed when it is forgotten.
	return os.NewFile(uintptr(in.fd), "descriptor"), fmt.Sprintf("descriptor %d", in.fd), nil
}

// lockFlags say to whom a backup is encrypted.
type lockFlags struct {
	passphraseFlags
	recipients []string
	file       string
}

func (in *lockFlags) add(f flagSet) {
	in.passphraseFlags.add(f)
	f.StringArrayVar(&in.recipients, "recipient", nil, "age public key (age1...) that opens the backup; may be given again")
	f.StringVar(&in.file, "recipients-file", "", "file with age public keys, one a line")
}

// makeLock asks for a passphrase when nothing else is said.
func makeLock(a *app, f lockFlags) (backup.Lock, error) {
	keys := strings.Join(f.recipients, "\n")
	if f.file != "" {
		text, err := readNamed("the public keys", f.file)
		if err != nil {
			return backup.Lock{}, err
		}
		keys += "\n" + string(text)
	}
	passphrase, err := f.read()
	if err != nil {
		return backup.Lock{}, err
	}
	switch {
	case keys != "" && passphrase != "":
		return backup.Lock{}, usageError{fault.New(fault.Invalid, "give a passphrase or public keys, not both")}
	case keys != "":
		return backup.LockTo(keys)
	case passphrase != "":
		return backup.LockWith(passphrase)
	}
	secrets, err := askSecrets(a, "--passphrase-file, --passphrase-fd or --recipient", "Passphrase of the backup", "Once more")
	if err != nil {
		return backup.Lock{}, err
	}
	if secrets[0] != secrets[1] {
		return backup.Lock{}, usageError{fault.New(fault.Invalid, "the passphrase was not the same twice")}
	}
	return backup.LockWith(secrets[0])
}

// askSecrets asks at the terminal; instead names the flags that do without one.
func askSecrets(a *app, instead string, prompts ...string) ([]string, error) {
	if !a.system.Asks {
		return nil, usageError{fault.New(fault.Invalid, "there is no terminal to ask for a passphrase at; give %s", instead)}
	}
	return a.passwords(false, prompts...)
}

// keyFlags say what opens a backup.
type keyFlags struct {
	passphraseFlags
	file string
}

func (in *keyFlags) add(f flagSet) {
	in.passphraseFlags.add(f)
	f.StringVar(&in.file, "identity-file", "", "file with the age private key (AGE-SECRET-KEY-1...)")
}

func readKey(a *app, f keyFlags) (backup.Key, error) {
	passphrase, err := f.read()
	if err != nil {
		return backup.Key{}, err
	}
	switch {
	case f.file != "" && passphrase != "":
		return backup.Key{}, usageError{fault.New(fault.Invalid, "give a passphrase or a private key, not both")}
	case f.file != "":
		text, err := readNamed("the private key", f.file)
		if err != nil {
			return backup.Key{}, err
		}
		return backup.KeyIn(text)
	case passphrase != "":
		return backup.KeyOf(passphrase), nil
	}
	secrets, err := askSecrets(a, "--passphrase-file, --passphrase-fd or --identity-file", "Passphrase of the backup")
	if err != nil {
		return backup.Key{}, err
	}
	return backup.KeyOf(secrets[0]), nil
}

// giveWay lets the server have the processors first. It is a courtesy: where it is refused, nothing
// is lost.
func giveWay() {
	tasks, _ := filepath.Glob("/proc/self/task/*")
	for _, task := range tasks {
		if id, err := strconv.Atoi(filepath.Base(task)); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, 10)
		}
	}
}

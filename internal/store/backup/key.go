package backup

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/tutti-project/tutti/internal/fault"
)

// minPassphrase is as long as the shortest password of a user.
const minPassphrase = 10

// Lock says to whom an archive is encrypted: to a passphrase, or to public keys.
type Lock struct {
	passphrase string
	recipients []age.Recipient
	names      []string // the public keys
	work       int      // of a passphrase: 2 to this power; 0: as age has it
}

// LockWith locks with a passphrase.
func LockWith(passphrase string) (Lock, error) {
	if len(passphrase) < minPassphrase {
		return Lock{}, fault.New(fault.Invalid, "the passphrase has %d bytes; whoever has the archive can try as many as they like: take %d or more",
			len(passphrase), minPassphrase)
	}
	return Lock{passphrase: passphrase}, nil
}

// LockTo locks to public keys, one a line, as age writes them (age1...). Empty lines and
// comments are passed over.
func LockTo(keys string) (Lock, error) {
	recipients, err := age.ParseRecipients(strings.NewReader(keys))
	if err != nil {
		return Lock{}, fault.Wrap(fault.Invalid, err, "a public key cannot be read: %v; it looks like age1..., and age-keygen prints it", err)
	}
	l := Lock{recipients: recipients}
	for line := range strings.Lines(keys) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			l.names = append(l.names, line)
		}
	}
	slices.Sort(l.names)
	l.names = slices.Compact(l.names)
	return l, nil
}

// seal encrypts what is written to the writer that it returns, until that is closed.
func (l Lock) seal(to io.Writer) (io.WriteCloser, error) {
	recipients := l.recipients
	if l.passphrase != "" {
		r, err := age.NewScryptRecipient(l.passphrase)
		if err != nil {
			return nil, err
		}
		if l.work > 0 {
			r.SetWorkFactor(l.work)
		}
		recipients = []age.Recipient{r}
	}
	return age.Encrypt(to, recipients...)
}

// Key opens what a Lock locked.
type Key struct {
	passphrase string
	identities []age.Identity
}

// KeyOf is the key for a passphrase.
func KeyOf(passphrase string) Key { return Key{passphrase: passphrase} }

// KeyIn reads private keys as age-keygen writes them.
func KeyIn(file []byte) (Key, error) {
	identities, err := age.ParseIdentities(bytes.NewReader(file))
	if err != nil { // its text may hold the key
		return Key{}, fault.New(fault.Invalid, "the file with the private key cannot be read; it holds a line AGE-SECRET-KEY-1..., as age-keygen writes it")
	}
	return Key{identities: identities}, nil
}

// open decrypts a stream. Denied when the key does not fit.
func (k Key) open(from io.Reader) (io.Reader, error) {
	identities := k.identities
	if k.passphrase != "" {
		identity, err := age.NewScryptIdentity(k.passphrase)
		if err != nil {
			return nil, err
		}
		identities = []age.Identity{identity}
	}
	if len(identities) == 0 {
		return nil, fault.New(fault.Denied, "there is no key to open the archive with")
	}
	r, err := age.Decrypt(from, identities...)
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
		if k.passphrase != "" {
			return nil, fault.Wrap(fault.Denied, err, "the passphrase does not open it: it is another one, or the archive is encrypted to a key")
		}
		return nil, fault.Wrap(fault.Denied, err, "the private key does not open it: it is encrypted to another key, or to a passphrase")
	}
	return r, damaged(err)
}

// damaged says of an error while reading that the archive is not what was written.
func damaged(err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*fault.Error](err); known {
		return err
	}
	return fault.Wrap(fault.Invalid, err, "the archive is cut or altered (%v); take another one", err)
}

// NewKeyFile writes a new private key into a new file, and returns its public key.
func NewKeyFile(path string) (public string, err error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return "", err
	}
	public = identity.Recipient().String()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fault.New(fault.Conflict, "%s is there already: a key that opens backups is not written over", path)
	}
	if err != nil {
		return "", disk(path, err)
	}
	_, err = io.WriteString(f, "# public key: "+public+"\n"+identity.String()+"\n")
	return public, disk(path, errors.Join(err, f.Sync(), f.Close()))
}

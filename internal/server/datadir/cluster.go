package datadir

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// ClusterKeyVariable is the variable that has the key of several servers, where no file does.
const ClusterKeyVariable = "TUTTI_CLUSTER_KEY"

// clusterSecrets is the purpose of that key.
const clusterSecrets = "tutti cluster secrets 1" //nolint:gosec // it says what the key is good for

// maxKeyBytes is more than a file with a key needs.
const maxKeyBytes = 1 << 10

// ClusterKey reads the key by which several servers share secrets: from a file, or from the environment if no file is named. What is
// wrong with it is said without it.
func ClusterKey(file string) (Seal, error) {
	where, text := ClusterKeyVariable, os.Getenv(ClusterKeyVariable)
	if file != "" {
		info, err := os.Stat(file)
		if err != nil {
			return Seal{}, fault.Wrap(fault.Invalid, err, "the servers' common key cannot be read (%v); setting cluster_key_file", err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			return Seal{}, fault.New(fault.Invalid, "others may read the servers' common key in %s: chmod 600 %[1]s", file)
		}
		if !info.Mode().IsRegular() || info.Size() > maxKeyBytes {
			return Seal{}, fault.New(fault.Invalid, "%s is no file with a key: make one with `openssl rand -hex 32`", file)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return Seal{}, fault.Wrap(fault.Invalid, err, "the servers' common key cannot be read (%v); setting cluster_key_file", err)
		}
		where, text = file, string(content)
	}
	if text == "" && file == "" {
		return Seal{}, fault.New(fault.Invalid, "several servers share secrets by a key, and there is none: make one with `openssl rand -hex 32`, "+
			"give all servers the same, and name its file with cluster_key_file, or put it into %s", ClusterKeyVariable)
	}
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != 32 { // err may have a part of the key
		return Seal{}, fault.New(fault.Invalid, "the servers' common key in %s is not 64 hexadecimal digits: make one with `openssl rand -hex 32`", where)
	}
	return newSeal(key, clusterSecrets)
}

// Fingerprint tells keys apart, and says nothing else of them.
func (s Seal) Fingerprint() string {
	derived, err := s.Derived("tutti fingerprint 1")
	if err != nil {
		return "unknown"
	}
	return hex.EncodeToString(derived[:6])
}

// Secrets are what several servers share.
type Secrets interface {
	// Load returns a secret; nil if there is none.
	Load(ctx context.Context, name string) ([]byte, error)
	// Add keeps a secret if there is none, and returns the one that is kept then.
	Add(ctx context.Context, name string, content []byte) ([]byte, error)
}

// sharedSeal is the secret that is the seal's key.
const sharedSeal = "seal"

// ShareSeal makes the key that Seal reads the one of all servers: the first one gives its own, the others take it. Conflict when another
// one is here already: what it sealed the others could not open.
func (d *Dir) ShareSeal(ctx context.Context, secrets Secrets) error {
	kept, err := secrets.Load(ctx, sharedSeal)
	if err != nil {
		return err
	}
	own, err := os.ReadFile(d.Join(SealFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Unusable(d.Path, err)
	}
	none := err != nil
	if kept == nil {
		seal, err := d.Seal() // it makes one
		if err != nil {
			return err
		}
		if kept, err = secrets.Add(ctx, sharedSeal, seal.key); err != nil {
			return err
		}
		own = []byte(hex.EncodeToString(seal.key))
	}
	theirs := hex.EncodeToString(kept)
	switch {
	case bytes.Equal(bytes.TrimSpace(own), []byte(theirs)):
		return nil
	case none: // another server was quicker to give its own
		return d.Write(SealFile, theirs+"\n")
	}
	shared, err := newSeal(kept, jobSecrets)
	if err != nil {
		return err
	}
	mine, err := d.Seal()
	if err != nil {
		return err
	}
	return fault.New(fault.Conflict,
		"%s (fingerprint %s) is not the key that the servers of this database share (fingerprint %s): give this server an empty data "+
			"directory, or a database of its own", d.Join(SealFile), mine.Fingerprint(), shared.Fingerprint())
}

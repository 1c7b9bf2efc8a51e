package datadir

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// SealFile holds the key that secrets of jobs are sealed with.
const SealFile = "seal.key"

// Seal is job.Sealer: AES-256-GCM with a random nonce before the text.
type Seal struct {
	aead    cipher.AEAD
	key     []byte
	purpose string // what the texts are good for: they cannot pass for anything else
}

// jobSecrets is the purpose of the key in the file itself.
const jobSecrets = "tutti job secrets 1"

// Seal reads the key and makes it on the first start.
func (d *Dir) Seal() (Seal, error) {
	content, err := os.ReadFile(d.Join(SealFile))
	if errors.Is(err, fs.ErrNotExist) {
		var key [32]byte
		_, _ = rand.Read(key[:])
		content = []byte(hex.EncodeToString(key[:]))
		err = d.Write(SealFile, string(content)+"\n")
	}
	if err != nil {
		return Seal{}, Unusable(d.Path, err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(content)))
	if err != nil || len(key) != 32 {
		return Seal{},
			fault.New(fault.Invalid, "%s is not 64 hexadecimal digits; bring it back from a backup, or remove it: then secrets of open jobs are lost", d.Join(SealFile))
	}
	return newSeal(key, jobSecrets)
}

func newSeal(key []byte, purpose string) (Seal, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return Seal{}, err
	}
	aead, err := cipher.NewGCM(block)
	return Seal{aead, key, purpose}, err
}

// Of seals for another purpose, with a key of its own.
func (s Seal) Of(purpose string) (Seal, error) {
	key, err := s.Derived(purpose)
	if err != nil {
		return Seal{}, err
	}
	return newSeal(key, purpose)
}

// Derived is a key for another purpose: who has it learns nothing of the one that seals.
func (s Seal) Derived(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, s.key, nil, purpose, sha256.Size)
}

// Seal implements job.Sealer.
func (s Seal) Seal(plain []byte) ([]byte, error) {
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	_, _ = rand.Read(nonce)
	return s.aead.Seal(nonce, nonce, plain, []byte(s.purpose)), nil
}

// Open implements job.Sealer.
func (s Seal) Open(text []byte) ([]byte, error) {
	if len(text) < s.aead.NonceSize() {
		return nil, fault.New(fault.Invalid, "a sealed text is too short")
	}
	nonce, text := text[:s.aead.NonceSize()], text[s.aead.NonceSize():]
	plain, err := s.aead.Open(nil, nonce, text, []byte(s.purpose))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "a sealed text was made with another key")
	}
	return plain, nil
}

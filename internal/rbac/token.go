package rbac

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Token is a bearer token, kept as the SHA-256 of its text.
type Token struct {
	ID        string // public, to name it by
	Hash      fleet.Digest
	Owner     string // a user
	Label     string // what its owner calls it; empty for one of a login, and for one that needs no name
	Roles     []string
	Narrowed  bool // only Roles count, and of these what the owner may do
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	UsedAt    time.Time // late by a minute
}

// Expired says whether t is past its time.
func (t Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }

// maxLabel is the longest label of a token, in bytes.
const maxLabel = 200

// checkLabel checks what an owner calls a token. Lists of labels are separated by commas.
func checkLabel(label string) error {
	switch {
	case label == "" || len(label) > maxLabel || !utf8.ValidString(label):
		return fault.New(fault.Invalid, "the label of a token has 1 to %d bytes, not %d", maxLabel, len(label))
	case label != strings.TrimSpace(label) || strings.ContainsFunc(label, func(r rune) bool { return r == ',' || !unicode.IsPrint(r) }):
		return fault.New(fault.Invalid, "the label of a token has no comma, no control character and no space at its ends; not %.80q", label)
	}
	return nil
}

// tokenPrefix lets people and scanners know what they look at.
const tokenPrefix = "tutti_"

// NewSecret makes the text of a token: 256 random bits.
func NewSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(bits[:])
}

// HashOf is how a token is found by its text; ok is false for what cannot be one.
func HashOf(text string) (hash fleet.Digest, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) < 16 || len(text) > 256 {
		return "", false
	}
	return fleet.DigestOf([]byte(text)), true
}

func newTokenID() string {
	var bits [6]byte
	_, _ = rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

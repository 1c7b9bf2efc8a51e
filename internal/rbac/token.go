package rbac

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Token is a bearer token, kept as the SHA-256 of its text.
type Token struct {
	ID        string // public, to name it by
	Hash      fleet.Digest
	Owner     string // a user
	Label     string // what its owner calls it; empty for one of a login
	Roles     []string
	Narrowed  bool // only Roles count, and of these what the owner may do
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	UsedAt    time.Time // late by a minute
}

// Expired says whether t is past its time.
func (t Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }

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

package fleet

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tutti-project/tutti/internal/fault"
)

// Digest is a SHA-256 in 64 lower-case hexadecimal digits. It names blobs,
// catalogs and versions.
type Digest string

// DigestOf is the digest of content.
func DigestOf(content []byte) Digest {
	sum := sha256.Sum256(content)
	return Digest(hex.EncodeToString(sum[:]))
}

// ParseDigest checks s.
func ParseDigest(s string) (Digest, error) {
	if len(s) != 2*sha256.Size {
		return "", fault.New(fault.Invalid, "a digest has 64 hexadecimal digits, this one has %d characters", len(s))
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", fault.New(fault.Invalid, "a digest has only the digits 0-9 and a-f, found %q", c)
		}
	}
	return Digest(s), nil
}

// Short is the first twelve digits, for people.
func (d Digest) Short() string {
	if len(d) < 12 {
		return string(d)
	}
	return string(d[:12])
}

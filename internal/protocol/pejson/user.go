package pejson

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// UserID is the UUID of a user: version 8, made of the name alone. Every service that names users by their id names the same.
func UserID(name string) string {
	sum := sha256.Sum256([]byte("tutti user " + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	text := hex.EncodeToString(sum[:16])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

package fleet

import (
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// MaxCertname is the longest node name in bytes; X.509 allows a common name no
// more than 64 characters, but classic Puppet CAs have issued longer ones.
const MaxCertname = 255

// Certname names a node: the CN of its certificate.
type Certname string

// ParseCertname checks s: lower-case letters, digits, dots, dashes, underscores;
// no leading dot or dash, no "..", so that it is also a safe file name.
func ParseCertname(s string) (Certname, error) {
	switch {
	case s == "":
		return "", fault.New(fault.Invalid, "the certname is empty")
	case len(s) > MaxCertname:
		return "", fault.New(fault.Invalid, "the certname has %d bytes, at most %d are allowed", len(s), MaxCertname)
	case s[0] == '.' || s[0] == '-' || strings.Contains(s, ".."):
		return "", fault.New(fault.Invalid, "the certname %.80q starts with a dot or dash, or holds two dots in a row", s)
	}
	for i := range len(s) {
		if !isNameByte(s[i]) || s[i] >= 'A' && s[i] <= 'Z' {
			return "", fault.New(fault.Invalid,
				"the certname %.80q holds a character other than a-z, 0-9, dot, dash and underscore", s)
		}
	}
	return Certname(s), nil
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
}

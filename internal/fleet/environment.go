package fleet

import "github.com/tutti-project/tutti/internal/fault"

// Environment names a line of Puppet code.
type Environment string

// ParseEnvironment checks s against what Puppet accepts: letters, digits and
// underscores, at most 128 of them.
func ParseEnvironment(s string) (Environment, error) {
	if s == "" {
		return "", fault.New(fault.Invalid, "the environment is empty")
	}
	if len(s) > 128 {
		return "", fault.New(fault.Invalid, "the environment's name has %d bytes, at most 128 are allowed", len(s))
	}
	for i := range len(s) {
		if c := s[i]; !isNameByte(c) || c == '.' || c == '-' {
			return "", fault.New(fault.Invalid, "the environment %.80q holds a character other than letters, digits and underscore", s)
		}
	}
	return Environment(s), nil
}

package fleet

import (
	"fmt"
	"regexp"

	"github.com/tutti-project/tutti/internal/fault"
)

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

// absent is how Puppet says, on a node, that its server does not have an environment.
var absent = regexp.MustCompile(`Could not find environment '([a-z0-9_]+)'`)

// Absent is the environment of which Puppet says in text that its server does not have it; empty: it says so of none.
func Absent(text string) Environment {
	if found := absent.FindStringSubmatch(text); found != nil {
		return Environment(found[1])
	}
	return ""
}

// WithoutCode tells people that nothing was deployed to an environment, and what to do.
func WithoutCode(env Environment) string {
	return fmt.Sprintf("the environment %[1]s has no code yet: deploy some with `tutti code deploy %[1]s DIR`", env)
}

package pki

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// AutosignPolicy says which requests are signed at once. The zero value signs
// none; otherwise one of the three ways is enough.
type AutosignPolicy struct {
	// All signs every request that is not refused. For closed networks only.
	All bool
	// Names signs listed certnames and globs of the form *.example.com.
	Names []string
	// Decide asks somebody else, for example an operator's program. An error
	// leaves the request waiting. It may be called concurrently.
	Decide func(ctx context.Context, name fleet.Certname, requestPEM []byte) (bool, error)
}

// Check returns an Invalid fault for the first name that is no pattern.
func (p AutosignPolicy) Check() error {
	for _, pattern := range p.Names {
		if err := checkPattern(pattern); err != nil {
			return err
		}
	}
	return nil
}

func checkPattern(pattern string) error {
	if pattern == "*" {
		return nil
	}
	if _, err := fleet.ParseCertname(strings.TrimPrefix(pattern, "*.")); err != nil {
		return fault.New(fault.Invalid, "the autosign pattern %.80q is neither a certname nor a glob like *.example.com", pattern)
	}
	return nil
}

func (p AutosignPolicy) listed(name fleet.Certname) bool {
	if p.All {
		return true
	}
	for _, pattern := range p.Names {
		suffix, glob := strings.CutPrefix(pattern, "*")
		if pattern == string(name) || glob && len(name) > len(suffix) && strings.HasSuffix(string(name), suffix) {
			return true
		}
	}
	return false
}

func (p AutosignPolicy) approves(ctx context.Context, name fleet.Certname, requestPEM []byte) (bool, error) {
	if p.listed(name) || p.Decide == nil {
		return p.listed(name), nil
	}
	return p.Decide(ctx, name, requestPEM)
}

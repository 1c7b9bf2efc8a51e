package code

import (
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Named finds the one of an environment's versions whose id or commit is name, or begins with it. NotFound when none does, Invalid when
// several do: nobody is given a version that they may not have meant.
func Named(env fleet.Environment, versions []Version, name string) (VersionID, error) {
	var found VersionID
	for _, v := range versions {
		if !strings.HasPrefix(string(v.ID), name) && !strings.HasPrefix(v.Commit, name) || v.ID == found {
			continue
		}
		if found != "" {
			return "", fault.New(fault.Invalid, "more than one version of %s begins with %.80s: %s, %s; give more digits",
				env, name, found.Short(), v.ID.Short())
		}
		found = v.ID
	}
	if found == "" {
		return "", fault.New(fault.NotFound, "environment %s has no version %.80s; `tutti code versions %s` lists them", env, name, env)
	}
	return found, nil
}

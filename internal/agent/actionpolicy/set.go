package actionpolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// The names of the files in a directory.
const (
	suffix      = ".policy"
	groupsFile  = "groups"
	defaultFile = "default" + suffix
)

// Set is the files of a directory. The zero Set narrows nothing.
type Set struct {
	policies map[string]answer // by file name
}

// answer is what a file says, or why it cannot be used.
type answer struct {
	policy Policy
	broken string
}

// IsFile says whether a file of this name belongs to a set.
func IsFile(name string) bool { return name == groupsFile || strings.HasSuffix(name, suffix) }

// Load reads the files of a directory by their names. It gives a usable Set also with an error, which says what is denied for being broken.
func Load(dir string, files map[string][]byte) (Set, error) {
	where := func(name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }
	groups, groupsErr := ParseGroups(where(groupsFile), files[groupsFile])
	var problems []string
	if groupsErr != nil {
		problems = append(problems, fault.Detail(groupsErr))
	}
	s := Set{policies: map[string]answer{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		p, err := Parse(where(name), files[name], groups)
		if err != nil {
			problems = append(problems, fault.Detail(err))
		} else {
			err = groupsErr
		}
		one := answer{policy: p}
		if err != nil {
			one.broken = fault.Detail(err)
		}
		s.policies[name] = one
	}
	if len(problems) == 0 {
		return s, nil
	}
	return s, fault.New(fault.Invalid, "action policies deny everything until they are mended: %s", strings.Join(problems, "; "))
}

// Allow says whether a module's action may be done; if not, why says which row is against it.
func (s Set) Allow(module string, r Request) (allowed bool, why string) {
	p, there := s.of(module)
	if !there {
		return true, ""
	}
	if p.broken != "" {
		return false, fmt.Sprintf("everything in %s is denied until its policy is mended: %s", module, p.broken)
	}
	return p.policy.Allow(r)
}

// Narrows says whether there is a file for a module.
func (s Set) Narrows(module string) bool {
	_, there := s.of(module)
	return there
}

func (s Set) of(module string) (answer, bool) {
	if p, there := s.policies[module+suffix]; there {
		return p, true
	}
	p, there := s.policies[defaultFile]
	return p, there
}

package policy

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Effect is what a rule does when it finds something.
type Effect string

// The effects, the strongest first.
const (
	Deny    Effect = "deny"    // nothing is released
	Approve Effect = "approve" // somebody with Role approves first
	Warn    Effect = "warn"    // it is said
)

// Effects is every effect, the strongest first.
func Effects() []Effect { return []Effect{Deny, Approve, Warn} }

// Definition is what a rule says.
type Definition struct {
	Environments []fleet.Environment `json:"environments,omitempty"` // none: all
	Effect       Effect              `json:"effect"`
	Role         string              `json:"role,omitempty"`       // who approves
	AuthorMay    bool                `json:"author_may,omitempty"` // approve, too
	Message      string              `json:"message"`
	When         string              `json:"when"`           // see Compile
	Zone         string              `json:"zone,omitempty"` // of time in When; empty: UTC
}

// Rule is one version of a definition with a name.
type Rule struct {
	Name string
	fleet.Stamp
	Definition
}

// The bounds of rules and freezes.
const (
	MaxRules        = 500
	MaxWhen         = 2000 // bytes
	maxMessage      = 1000 // bytes
	maxEnvironments = 100
)

var (
	ruleName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,63}$`)
	roleName = regexp.MustCompile(`^[a-z0-9_][a-z0-9_.-]{0,63}$`)
)

// Check says what is wrong with a rule.
func (r Rule) Check() error {
	if err := checkName("policy", r.Name); err != nil {
		return err
	}
	if err := checkEnvironments(r.Environments); err != nil {
		return err
	}
	switch {
	case !slices.Contains(Effects(), r.Effect):
		return fault.New(fault.Invalid, "field effect: %.40q is none of %s, %s and %s", r.Effect, Deny, Approve, Warn)
	case r.Effect == Approve && !roleName.MatchString(r.Role):
		return fault.New(fault.Invalid, "field role: who approves? name a role; see `tutti role list`")
	case r.Effect != Approve && (r.Role != "" || r.AuthorMay):
		return fault.New(fault.Invalid, "field role: nobody approves what the effect %s is about; leave role and author_may out, or take the effect %s",
			r.Effect, Approve)
	}
	if err := checkText("message", r.Message); err != nil {
		return err
	}
	_, err := Compile(r)
	return err
}

func checkName(what, name string) error {
	if !ruleName.MatchString(name) {
		return fault.New(fault.Invalid,
			"field name: the name of a %s has 1 to 64 of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit; not %.80q", what, name)
	}
	return nil
}

func checkEnvironments(environments []fleet.Environment) error {
	if len(environments) > maxEnvironments {
		return fault.New(fault.Invalid, "field environments: it has %d elements, at most %d are allowed", len(environments), maxEnvironments)
	}
	for _, env := range environments {
		if _, err := fleet.ParseEnvironment(string(env)); err != nil {
			return err
		}
	}
	return nil
}

func checkText(field, text string) error {
	if strings.TrimSpace(text) == "" {
		return fault.New(fault.Invalid, "field %s: say in a sentence what people should know", field)
	}
	if len(text) > maxMessage || !utf8.ValidString(text) {
		return fault.New(fault.Invalid, "field %s: it has %d bytes, at most %d of UTF-8 are allowed", field, len(text), maxMessage)
	}
	return nil
}

// zone finds a zone by its name in the IANA database.
func zone(name string) (*time.Location, error) {
	where, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") || len(name) > 100 {
		return nil, fault.New(fault.Invalid, "field zone: %.60q is no time zone; name one as Europe/Berlin or UTC", name)
	}
	return where, nil
}

// in says whether something that is set for environments holds in one.
func in(environments []fleet.Environment, env fleet.Environment) bool {
	return len(environments) == 0 || slices.Contains(environments, env)
}

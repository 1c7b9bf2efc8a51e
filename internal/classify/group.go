package classify

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// ID names a group: a UUID in lower case.
type ID string

// RootID is the group that every node is in. It is its own parent.
const RootID ID = "00000000-0000-4000-8000-000000000000"

// RootName is what the root is called.
const RootName = "All Nodes"

// AgentSpecified stands for an environment: the one that the node asks for.
const AgentSpecified = "agent-specified"

// Values are named JSON values.
type Values map[string]json.RawMessage

// Classes are classes with values for their parameters.
type Classes map[string]Values

// Group is one group as it is stored.
type Group struct {
	ID          ID
	Name        string
	Parent      ID
	Description string
	// Environment is a name, AgentSpecified, or empty: what the parent says.
	Environment string
	// EnvironmentGroup lets the environment outvote those of other groups.
	EnvironmentGroup bool
	Rule             *Rule // nil: none
	Pinned           []fleet.Certname
	Classes          Classes
	Variables        Values  // top-scope variables
	Data             Classes // values for parameters of classes that something else includes

	Revision  int64 // counts changes; 1 for a new group
	ChangedAt time.Time
	ChangedBy string

	// Defect says why the group as stored cannot be used; such a group matches
	// nothing, nor do those below it.
	Defect string
}

// The bounds of groups.
const (
	MaxGroups      = 10_000
	MaxGroupBytes  = 4 << 20
	maxNameBytes   = 255
	maxDescription = 10_000
	maxPinned      = 50_000
	maxItems       = 5_000 // classes of a group; parameters of a class; variables
)

// NewID returns an id for a new group.
func NewID() ID { return ID(uuid.NewString()) }

// ParseID checks text.
func ParseID(text string) (ID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return "", fault.New(fault.Invalid, "a group's id must be a UUID like %s, not %.60q", RootID, text)
	}
	return ID(id.String()), nil
}

// NewRoot is the root before anybody has changed it.
func NewRoot() Group {
	return Group{ID: RootID, Name: RootName, Parent: RootID, Rule: rootRule(), Revision: 1}
}

// rootRule matches every name.
func rootRule() *Rule {
	rule, _ := Compare(Matches, Path{Root: Name}, ".*") // it compiles
	return &rule
}

// IsRoot says whether g is the root.
func (g Group) IsRoot() bool { return g.ID == RootID }

// Checked returns g in its one canonical form, or Invalid with the field that
// cannot be. Whether g's parent exists is not its business.
func (g Group) Checked() (Group, error) {
	if g.IsRoot() {
		return g.checkedRoot()
	}
	if _, err := ParseID(string(g.ID)); err != nil {
		return Group{}, err
	}
	if _, err := ParseID(string(g.Parent)); err != nil {
		return Group{}, g.bad("parent", "%s", fault.Detail(err))
	}
	if g.Parent == g.ID {
		return Group{}, g.bad("parent", "a group cannot be its own parent")
	}
	return g.checkedContent()
}

// checkedRoot keeps what makes the root the root.
func (g Group) checkedRoot() (Group, error) {
	switch {
	case g.Name != RootName:
		return Group{}, g.bad("name", "it stays %q", RootName)
	case g.Parent != RootID:
		return Group{}, g.bad("parent", "the root has none")
	case len(g.Pinned) > 0, g.Rule != nil && !g.Rule.Equal(*rootRule()):
		return Group{}, g.bad("rule", "every node is in %s: it has no other rule and no pinned nodes", RootName)
	}
	g.Rule = rootRule()
	return g.checkedContent()
}

func (g Group) checkedContent() (Group, error) {
	if err := checkText(g.Name, maxNameBytes, false); err != nil || g.Name == "" {
		return Group{}, g.bad("name", "1 to %d bytes of text without control characters are expected", maxNameBytes)
	}
	if _, err := ParseID(g.Name); err == nil {
		return Group{}, g.bad("name", "it looks like an id; choose another")
	}
	if err := checkText(g.Description, maxDescription, true); err != nil {
		return Group{}, g.bad("description", "%s", fault.Detail(err))
	}
	if err := g.checkEnvironment(); err != nil {
		return Group{}, err
	}
	if err := g.checkRule(); err != nil {
		return Group{}, err
	}
	var err error
	if g.Pinned, err = g.checkedPinned(); err != nil {
		return Group{}, err
	}
	if g.Classes, err = g.checkedClasses("classes", g.Classes, true); err != nil {
		return Group{}, err
	}
	if g.Data, err = g.checkedClasses("data", g.Data, false); err != nil {
		return Group{}, err
	}
	if g.Variables, err = g.checkedValues("variables", g.Variables, variableName); err != nil {
		return Group{}, err
	}
	for _, name := range reserved {
		if _, taken := g.Variables[name]; taken {
			return Group{}, g.bad("variables", "$%s is Puppet's own; choose another name", name)
		}
	}
	g.Defect = ""
	text, err := json.Marshal(g)
	if err == nil && len(text) > MaxGroupBytes {
		return Group{}, g.bad("size", "the group has %d bytes, at most %d are allowed; split it", len(text), MaxGroupBytes)
	}
	return g, err
}

// checkRule refuses a rule that could not be read again: it may be put together of
// several that could.
func (g Group) checkRule() error {
	if g.Rule == nil {
		return nil
	}
	text, err := g.Rule.MarshalJSON()
	if err != nil {
		return err
	}
	if _, err := ParseJSON(text); err != nil {
		return g.bad("rule", "%s", fault.Detail(err))
	}
	return nil
}

// reserved are the top-scope variables that Puppet sets itself.
var reserved = []string{"facts", "trusted", "server_facts"}

func (g Group) bad(field, format string, args ...any) error {
	return fault.New(fault.Invalid, "group %.80q: %s: %s", g.Name, field, fmt.Sprintf(format, args...))
}

func checkText(text string, limit int, lines bool) error {
	control := func(r rune) bool { return unicode.IsControl(r) && (!lines || r != '\n' && r != '\t') }
	if len(text) > limit || !utf8.ValidString(text) || strings.ContainsFunc(text, control) {
		return fault.New(fault.Invalid, "at most %d bytes of text without control characters are expected", limit)
	}
	return nil
}

func (g Group) checkEnvironment() error {
	if g.Environment == "" {
		if g.EnvironmentGroup {
			return g.bad("environment", "an environment group needs one")
		}
		return nil
	}
	if g.Environment == AgentSpecified {
		return nil
	}
	if _, err := fleet.ParseEnvironment(g.Environment); err != nil {
		return g.bad("environment", "%s; or %s for the one that the node asks for", fault.Detail(err), AgentSpecified)
	}
	return nil
}

func (g Group) checkedPinned() ([]fleet.Certname, error) {
	if len(g.Pinned) > maxPinned {
		return nil, g.bad("nodes", "%d are pinned, at most %d are allowed", len(g.Pinned), maxPinned)
	}
	for _, name := range g.Pinned {
		if _, err := fleet.ParseCertname(string(name)); err != nil {
			return nil, g.bad("nodes", "%s", fault.Detail(err))
		}
	}
	pinned := slices.Clone(g.Pinned)
	slices.Sort(pinned)
	return slices.Compact(pinned), nil
}

var (
	className     = regexp.MustCompile(`^[a-z][a-z0-9_]*(::[a-z][a-z0-9_]*)*$`)
	parameterName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	variableName  = regexp.MustCompile(`^[a-z_][A-Za-z0-9_]*$`)
)

// checkedClasses drops a leading :: of names. Empty classes stay if they mean
// something: to include the class.
func (g Group) checkedClasses(field string, classes Classes, keepEmpty bool) (Classes, error) {
	if len(classes) > maxItems {
		return nil, g.bad(field, "there are %d classes, at most %d are allowed", len(classes), maxItems)
	}
	out := Classes{}
	for _, given := range slices.Sorted(maps.Keys(classes)) {
		name := strings.TrimPrefix(given, "::")
		if !className.MatchString(name) {
			return nil, g.bad(field, "a class like apache::mod is expected, not %.80q", given)
		}
		if _, twice := out[name]; twice {
			return nil, g.bad(field, "the class %s is there twice", name)
		}
		values, err := g.checkedValues(field+": "+name, classes[given], parameterName)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 || keepEmpty {
			out[name] = values
		}
	}
	return out, nil
}

func (g Group) checkedValues(field string, values Values, shape *regexp.Regexp) (Values, error) {
	if len(values) > maxItems {
		return nil, g.bad(field, "there are %d values, at most %d are allowed", len(values), maxItems)
	}
	out := Values{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !shape.MatchString(name) {
			return nil, g.bad(field, "a name that fits %s is expected, not %.80q", shape, name)
		}
		value, err := decode(values[name])
		if err != nil {
			return nil, g.bad(field+": "+name, "a JSON value is expected: %v", err)
		}
		if out[name], err = compact(value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Same says whether both give and match the same; who changed them when, and how
// often, does not count.
func (g Group) Same(other Group) bool { return len(Differences(g, other)) == 0 }

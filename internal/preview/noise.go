package preview

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Noise says which changes nobody needs to look at. All that is said must hold; what is not said
// is as it may be. What does not compile is never noise.
type Noise struct {
	Environments []fleet.Environment `json:"environments,omitempty"` // none: all
	Change       string              `json:"change,omitempty"`       // added, removed, changed, node or edge
	Type         fleet.Glob          `json:"type,omitempty"`         // of the resource; capitals do not matter
	Title        fleet.Glob          `json:"title,omitempty"`
	Parameters   []fleet.Glob        `json:"parameters,omitempty"` // nothing but these changes
	Nodes        string              `json:"nodes,omitempty"`      // PQL: a condition that holds for all nodes that have the change, or a query for them
	Why          string              `json:"why,omitempty"`
}

// NoiseRule is one version of noise with a name.
type NoiseRule struct {
	Name string
	fleet.Stamp
	Noise
}

// The bounds of noise.
const (
	MaxNoiseRules = 1000
	maxNoiseWords = 100  // environments, parameters
	maxNoiseText  = 4000 // bytes of a query or a reason
)

// ruleName is what rules are called.
var ruleName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,63}$`)

// noisy are the changes that may be noise.
var noisy = []string{"added", "removed", "changed", "node", "edge"}

// check says what is wrong with a rule that somebody sets.
func (n Noise) check(name string) error {
	if !ruleName.MatchString(name) {
		return fault.New(fault.Invalid, "field name: a rule's name has 1 to 64 of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit; not %.80q",
			name)
	}
	if n.Type == "" && n.Title == "" && len(n.Parameters) == 0 && n.Nodes == "" {
		return fault.New(fault.Invalid, "noise rule %s: say at least one of type, title, parameters and nodes, or every change would be hidden", name)
	}
	if n.Change != "" && !slices.Contains(noisy, n.Change) {
		return fault.New(fault.Invalid, "field change: %.40q is none of %s; what does not compile is never noise", n.Change, strings.Join(noisy, ", "))
	}
	if len(n.Environments) > maxNoiseWords || len(n.Parameters) > maxNoiseWords {
		return fault.New(fault.Invalid, "noise rule %s: at most %d environments and %d parameters are allowed", name, maxNoiseWords, maxNoiseWords)
	}
	for _, env := range n.Environments {
		if _, err := fleet.ParseEnvironment(string(env)); err != nil {
			return err
		}
	}
	for _, g := range append([]fleet.Glob{n.Type, n.Title}, n.Parameters...) {
		if len(g) > fleet.MaxGlob || !utf8.ValidString(string(g)) {
			return fault.New(fault.Invalid, "noise rule %s: a pattern has %d bytes, at most %d of UTF-8 are allowed", name, len(g), fleet.MaxGlob)
		}
	}
	if slices.Contains(n.Parameters, "") {
		return fault.New(fault.Invalid, "field parameters: one of them is empty")
	}
	for _, text := range []string{n.Nodes, n.Why} {
		if len(text) > maxNoiseText || !utf8.ValidString(text) {
			return fault.New(fault.Invalid, "noise rule %s: nodes and why have at most %d bytes of UTF-8", name, maxNoiseText)
		}
	}
	return nil
}

// covers says whether a change is noise, but for Nodes.
func (n Noise) covers(env fleet.Environment, g api.ChangeGroup) bool {
	if g.Change == "error" || strings.HasPrefix(g.Change, "lost-") || g.OrderOnly { // the last is always hidden, the others never
		return false
	}
	if len(n.Environments) > 0 && !slices.Contains(n.Environments, env) || n.Change != "" && n.Change != g.Change {
		return false
	}
	if !fleet.Glob(strings.ToLower(string(n.Type))).Fits(strings.ToLower(g.Type)) || !n.Title.Fits(g.Title) {
		return false
	}
	if len(n.Parameters) == 0 {
		return true
	}
	for _, name := range g.Parameters {
		if !slices.ContainsFunc(n.Parameters, func(p fleet.Glob) bool { return p.Fits(name) }) {
			return false
		}
	}
	return len(g.Parameters) > 0
}

// Quiet is what noise hides of a preview.
type Quiet struct {
	By    map[string]string // key of a hidden change -> name of the rule that hides it
	Rules []Hidden          // those that hide something, by name
	Nodes []uint32          // numbers of the nodes that count as changed, but whose changes are all hidden; of a ready preview
	Form  []uint32          // numbers of the nodes whose changes that are not hidden are all noise of the engine; of a ready preview
}

// Hidden is how much a rule hides.
type Hidden struct {
	Rule    string
	Version int
	Changes int
}

// sift hides changes. inside are the nodes, by number, that a rule's query answers with; the first rule that
// covers a change hides it. What changes a node that is not hidden makes the node change.
func sift(env fleet.Environment, rules []NoiseRule, inside map[string]map[uint32]bool, groups []Group) Quiet {
	quiet := Quiet{By: map[string]string{}}
	count := make([]int, len(rules))
	loud, code, all := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	for _, g := range groups {
		by := slices.IndexFunc(rules, func(r NoiseRule) bool {
			return r.covers(env, g.Change) && (r.Nodes == "" || within(g.Nodes, inside[r.Name]))
		})
		if by >= 0 {
			quiet.By[g.Change.Key] = rules[by].Name
			count[by]++
		}
		if g.Change.OrderOnly || g.Change.Change == "error" {
			continue
		}
		for _, number := range g.Nodes {
			all[number] = true
			if by < 0 {
				loud[number] = true
				code[number] = code[number] || len(g.Change.EngineNoise) == 0
			}
		}
	}
	for number := range all {
		switch {
		case !loud[number]:
			quiet.Nodes = append(quiet.Nodes, number)
		case !code[number]:
			quiet.Form = append(quiet.Form, number)
		}
	}
	slices.Sort(quiet.Nodes)
	slices.Sort(quiet.Form)
	for i, r := range rules {
		if count[i] > 0 {
			quiet.Rules = append(quiet.Rules, Hidden{Rule: r.Name, Version: r.Version, Changes: count[i]})
		}
	}
	return quiet
}

func within(numbers []uint32, inside map[uint32]bool) bool {
	return len(numbers) > 0 && !slices.ContainsFunc(numbers, func(n uint32) bool { return !inside[n] })
}

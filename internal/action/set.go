package action

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// The bounds of a Set.
const (
	MaxModules      = 100
	MaxProblemBytes = 500
)

// Listed is one module of a node in short.
type Listed struct {
	Name     string       `json:"name"`
	Version  string       `json:"version,omitzero"`
	Provider Provider     `json:"provider"`
	Digest   fleet.Digest `json:"digest,omitzero"`  // of its description; empty: it cannot be used
	Problem  string       `json:"problem,omitzero"` // why it cannot be used, or not all of it
}

// Set is the modules of a node: by name and provider, each pair once. Many nodes have the same one.
type Set []Listed

// ListedOf is a module that can be used, in short.
func ListedOf(m Module) Listed {
	return Listed{Name: m.Name, Version: m.Version, Provider: m.Provider, Digest: m.Digest()}
}

// Unusable is modules that a node found and cannot use, in short.
func Unusable(problems []Problem) []Listed {
	var all []Listed
	for _, p := range problems {
		all = append(all, Listed{Name: p.Module, Provider: External, Problem: p.Reason})
	}
	return all
}

// NewSet makes a set of what a node found: what is too long is cut, of two with the same name and provider the first counts, and what is more
// than MaxModules is left out.
func NewSet(found []Listed) Set {
	set := Set{}
	for _, l := range found {
		l.Version = fitText(l.Version, pxp.MaxNameBytes)
		l.Problem = fitText(l.Problem, MaxProblemBytes)
		if l.Digest == "" {
			l.Name = fitText(l.Name, pxp.MaxNameBytes)
			l.Problem = cmp.Or(l.Problem, "it cannot be used")
		}
		if len(set) < MaxModules && !slices.ContainsFunc(set, func(other Listed) bool { return compareListed(l, other) == 0 }) {
			set = append(set, l)
		}
	}
	return set.Sorted()
}

func compareListed(a, b Listed) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Provider, b.Provider))
}

// Sorted is the set in its order: by name and provider.
func (s Set) Sorted() Set {
	slices.SortFunc(s, compareListed)
	return s
}

// Find is the usable module of a name.
func (s Set) Find(name string) (Listed, bool) {
	i := slices.IndexFunc(s, func(l Listed) bool { return l.Name == name && l.Digest != "" })
	if i < 0 {
		return Listed{}, false
	}
	return s[i], true
}

// Digest names the set: equal sets have equal digests.
func (s Set) Digest() fleet.Digest {
	text, err := json.Marshal([]Listed(s))
	if err != nil {
		panic(err) // texts only
	}
	value := jsontext.Value(text)
	if err := value.Canonicalize(); err != nil {
		panic(err)
	}
	return fleet.DigestOf(value)
}

// ParseSet reads and checks a set as a node tells it.
func ParseSet(text []byte) (Set, error) {
	var set Set
	if err := json.Unmarshal(bytes.TrimSpace(text), &set); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "field modules: it is not a list of modules")
	}
	if len(set) > MaxModules {
		return nil, fault.New(fault.Invalid, "field modules: it has %d elements, at most %d are allowed", len(set), MaxModules)
	}
	for i, l := range set {
		if err := l.check(); err != nil {
			return nil, err
		}
		if i > 0 && compareListed(set[i-1], l) >= 0 {
			return nil, fault.New(fault.Invalid, "field modules: they must be in the order of name and provider, each pair once")
		}
	}
	return set, nil
}

func (l Listed) check() error {
	if !slices.Contains([]Provider{BuiltIn, External, Choria, FromCode}, l.Provider) {
		return fault.New(fault.Invalid, "field provider: %.40q is no provider", l.Provider)
	}
	if l.Digest == "" {
		if l.Problem == "" {
			return fault.New(fault.Invalid, "field digest: it is missing; only a module that cannot be used has none, and its problem says why")
		}
		if err := checkText("name", l.Name, pxp.MaxNameBytes); err != nil || l.Name == "" {
			return cmp.Or(err, fault.New(fault.Invalid, "field name: it is missing"))
		}
	} else {
		if err := CheckName("name", l.Name); err != nil {
			return err
		}
		if _, err := fleet.ParseDigest(string(l.Digest)); err != nil {
			return fault.New(fault.Invalid, "field digest: %s", fault.Detail(err))
		}
	}
	if err := checkText("version", l.Version, pxp.MaxNameBytes); err != nil {
		return err
	}
	return checkText("problem", l.Problem, MaxProblemBytes)
}

// checkText holds a text of a node to what can be shown in one line.
func checkText(field, text string, most int) error {
	if fitText(text, most) != text {
		return fault.New(fault.Invalid, "field %s: it must be one line of at most %d bytes, without control characters", field, most)
	}
	return nil
}

// fitText makes one line of a text, of so many bytes at most.
func fitText(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Line is a text of a description as it is shown in one line.
func Line(text string) string { return fitText(text, pxp.MaxNameBytes) }

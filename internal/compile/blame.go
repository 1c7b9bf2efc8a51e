package compile

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// Given is one thing that groups give a node.
type Given struct {
	Kind  GivenKind
	Class string // of GivenClass, GivenParameter, GivenData
	Name  string // of all but GivenClass
	From  string // who gives it, as in "group Web servers"
}

// GivenKind says what sort of thing groups give.
type GivenKind string

// The kinds, in the order of how near they are to what an error says.
const (
	GivenParameter GivenKind = "parameter"
	GivenData      GivenKind = "data"
	GivenVariable  GivenKind = "variable"
	GivenClass     GivenKind = "class"
)

// String is the thing as people know it.
func (g Given) String() string {
	switch g.Kind {
	case GivenParameter, GivenData:
		return string(g.Kind) + " " + g.Class + "::" + g.Name
	case GivenVariable:
		return "variable $" + g.Name
	case GivenClass:
	}
	return "class " + g.Class
}

// What Puppet's errors name: classes, parameters and variables.
var (
	classSaid     = regexp.MustCompile(`\bclass (?:::)?([a-z][a-z0-9_:]*)|\bClass\[(?:'|"|::)*([A-Za-z0-9_:]+)`)
	parameterSaid = regexp.MustCompile(`\bparameter(?: named)? '([a-z][a-z0-9_]*)'`)
	variableSaid  = regexp.MustCompile(`\bvariable:? '?\$?(?:::)?([A-Za-z0-9_]+)'?`)
)

// maxBlamed is how many things an error is traced to.
const maxBlamed = 3

// Blamed adds to a compilation's error which groups gave what it complains of. Other errors stay as they are.
func (o Order) Blamed(err error) error {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if from := blame(failed.Message, o.Given); from != "" {
		told := *failed
		told.From = from
		return &told
	}
	return err
}

// blame says of what a message names where it comes from, if groups give it; empty for everything else. Where a message names a parameter
// that groups give, its class is not what is wrong.
func blame(message string, given []Given) string {
	classes, parameters, variables := said(classSaid, message), said(parameterSaid, message), said(variableSaid, message)
	var found []Given
	for _, g := range given {
		class := slices.Contains(classes, g.Class)
		switch g.Kind {
		case GivenParameter, GivenData:
			if !class || !slices.Contains(parameters, g.Name) {
				continue
			}
		case GivenVariable:
			if !slices.Contains(variables, g.Name) {
				continue
			}
		case GivenClass:
			if !class || slices.ContainsFunc(given, func(p Given) bool {
				return (p.Kind == GivenParameter || p.Kind == GivenData) && p.Class == g.Class && slices.Contains(parameters, p.Name)
			}) {
				continue
			}
		}
		found = append(found, g)
	}
	kinds := []GivenKind{GivenParameter, GivenData, GivenVariable, GivenClass}
	slices.SortStableFunc(found, func(a, b Given) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.String(), b.String()))
	})
	var parts []string
	for len(found) > 0 && len(parts) < maxBlamed {
		what, from := found[0].String(), []string(nil)
		for len(found) > 0 && found[0].String() == what {
			from, found = append(from, found[0].From), found[1:]
		}
		parts = append(parts, what+" comes from "+strings.Join(slices.Compact(from), " and "))
	}
	return strings.Join(parts, "; ")
}

// said is the names that a message has, as groups write them.
func said(pattern *regexp.Regexp, message string) (names []string) {
	for _, found := range pattern.FindAllStringSubmatch(message, -1) {
		for _, name := range found[1:] {
			if name = strings.TrimRight(name, ":"); name != "" {
				names = append(names, strings.TrimPrefix(name, "::"))
				if pattern == classSaid {
					names[len(names)-1] = strings.ToLower(names[len(names)-1])
				}
			}
		}
	}
	return names
}

package actionpolicy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// The bounds of a file.
const (
	MaxBytes = 1 << 20
	MaxRows  = 10_000
)

// Policy is one file.
type Policy struct {
	name  string
	allow bool // what counts without a row
	rows  []row
}

// row is one line.
type row struct {
	line    int
	allow   bool
	callers []matcher // nil: all
	actions []string  // nil: all
	facts   []condition
	classes []matcher
}

// Parse reads a policy file; name is how it is called in errors and reasons.
func Parse(name string, text []byte, groups Groups) (Policy, error) {
	p := Policy{name: name}
	said := false
	for number, fields := range lines(text) {
		if number < 0 {
			return p, fault.New(fault.Invalid, "%s: it has more than %d bytes, or more than %d rows", name, MaxBytes, MaxRows)
		}
		words := strings.Fields(fields)
		if words[0] == "policy" {
			if len(words) != 3 || words[1] != "default" || words[2] != "allow" && words[2] != "deny" || said {
				return p, fault.New(fault.Invalid, "%s line %d: `policy default allow` or `policy default deny` may be there once", name, number)
			}
			said, p.allow = true, words[2] == "allow"
			continue
		}
		r, err := parseRow(fields, groups)
		if err != nil {
			return p, fault.New(fault.Invalid, "%s line %d: %s", name, number, fault.Detail(err))
		}
		r.line = number
		p.rows = append(p.rows, r)
	}
	return p, nil
}

// lines are those of a file that say something, with their numbers; -1 ends a file that is too large.
func lines(text []byte) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		if len(text) > MaxBytes { // whatever is in it: the end may be missing
			yield(-1, "")
			return
		}
		number, rows := 0, 0
		for line := range strings.Lines(string(text)) {
			number++
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			if rows++; rows > MaxRows {
				yield(-1, "")
				return
			}
			if !yield(number, line) {
				return
			}
		}
	}
}

var spaces = regexp.MustCompile(` {2,}`)

// columnsOf splits a row.
func columnsOf(line string) []string {
	var columns []string
	if strings.Contains(line, "\t") {
		for column := range strings.SplitSeq(line, "\t") {
			if column = strings.TrimSpace(column); column != "" {
				columns = append(columns, column)
			}
		}
		return columns
	}
	if columns = spaces.Split(line, -1); len(columns) >= leastColumns {
		return columns
	}
	return strings.Fields(line)
}

// How many columns a row has; the last one may be left out.
const (
	leastColumns = 4
	mostColumns  = 5
)

func parseRow(line string, groups Groups) (r row, err error) {
	columns := columnsOf(line)
	if len(columns) < leastColumns || len(columns) > mostColumns || columns[0] != "allow" && columns[0] != "deny" {
		return r, fault.New(fault.Invalid, "a row must be allow or deny, callers, actions, facts and classes, separated by tabs")
	}
	r.allow = columns[0] == "allow"
	if r.callers, err = matchers("callers", columns[1], groups); err != nil {
		return r, err
	}
	if r.actions, err = list("actions", columns[2]); err != nil {
		return r, err
	}
	if slices.ContainsFunc(columns[3:], isCompound) {
		return r, fault.New(fault.Invalid, "compound expressions (and, or, not, parentheses) are not understood; write a row for each case")
	}
	words, err := list("facts", columns[3])
	if err != nil {
		return r, err
	}
	for _, word := range words {
		c, err := parseCondition(word)
		if err != nil {
			return r, err
		}
		r.facts = append(r.facts, c)
	}
	if len(columns) == mostColumns {
		r.classes, err = matchers("classes", columns[4], nil)
	}
	return r, err
}

// list is the words of a column; nil: any.
func list(column, text string) ([]string, error) {
	if text == "*" {
		return nil, nil
	}
	words := strings.Fields(text)
	if slices.Contains(words, "*") {
		return nil, fault.New(fault.Invalid, "%s: * stands alone", column)
	}
	return words, nil
}

func isCompound(column string) bool {
	return slices.ContainsFunc(strings.Fields(column), func(word string) bool {
		if len(word) > 1 && word[0] == '/' && word[len(word)-1] == '/' {
			return false // an expression for the name of a class
		}
		_, _, expression := strings.Cut(word, "/")
		return word[0] == '!' || word == "and" || word == "or" || word == "not" || !expression && strings.ContainsAny(word, "()")
	})
}

// matcher is a name, an expression for names, or a group of them.
type matcher struct {
	name    string
	pattern *regexp.Regexp // nil: there is none
	members []string
}

func matchers(column, text string, groups Groups) ([]matcher, error) {
	words, err := list(column, text)
	if err != nil {
		return nil, err
	}
	var all []matcher
	for _, word := range words {
		m := matcher{name: word, members: groups[word]}
		if len(word) > 2 && word[0] == '/' && word[len(word)-1] == '/' {
			if m.pattern, err = regexp.Compile(word[1 : len(word)-1]); err != nil {
				return nil, fault.New(fault.Invalid, "%s: %.80q is no regular expression", column, word)
			}
		}
		all = append(all, m)
	}
	return all, nil
}

func (m matcher) fits(name string) bool {
	return m.name == name || m.pattern != nil && m.pattern.MatchString(name) || slices.Contains(m.members, name)
}

// Groups are names of callers by the name of their group.
type Groups map[string][]string

var groupForm = regexp.MustCompile(`\A[\w.-]+\z`)

// ParseGroups reads a file of groups: in each line the name of a group, then its callers.
func ParseGroups(name string, text []byte) (Groups, error) {
	groups := Groups{}
	for number, line := range lines(text) {
		if number < 0 {
			return nil, fault.New(fault.Invalid, "%s: it has more than %d bytes, or more than %d rows", name, MaxBytes, MaxRows)
		}
		words := strings.Fields(line)
		if !groupForm.MatchString(words[0]) {
			return nil, fault.New(fault.Invalid, "%s line %d: a group's name has only letters, digits and _ . -", name, number)
		}
		if _, twice := groups[words[0]]; twice {
			return nil, fault.New(fault.Invalid, "%s line %d: the group %.80s is there twice", name, number, words[0])
		}
		groups[words[0]] = words[1:]
	}
	return groups, nil
}

// Request is what somebody asks for, and what is known of the node.
type Request struct {
	Caller  string
	Action  string
	Facts   []byte   // canonical JSON; nil: not known
	Classes []string // of the last catalog; nil: not known
}

// Allow says whether the request may be carried out; if not, why says which row is against it.
func (p Policy) Allow(r Request) (allowed bool, why string) {
	for _, row := range p.rows {
		switch fit := row.fits(r); {
		case fit == no, fit == unknown && row.allow:
		case row.allow:
			return true, ""
		case fit == unknown:
			return false, fmt.Sprintf("%s line %d may deny %s to %s: the node's facts or classes are not known", p.name, row.line, r.Action, r.Caller)
		default:
			return false, fmt.Sprintf("%s line %d denies %s to %s", p.name, row.line, r.Action, r.Caller)
		}
	}
	if p.allow {
		return true, ""
	}
	return false, fmt.Sprintf("no line of %s allows %s to %s", p.name, r.Action, r.Caller)
}

// fit says whether something fits.
type fit uint8

const (
	no fit = iota
	unknown
	yes
)

func (r row) fits(q Request) fit {
	if r.callers != nil && !slices.ContainsFunc(r.callers, func(m matcher) bool { return m.fits(q.Caller) }) {
		return no
	}
	if r.actions != nil && !slices.Contains(r.actions, q.Action) {
		return no
	}
	return min(r.fitsFacts(q.Facts), r.fitsClasses(q.Classes))
}

func (r row) fitsFacts(facts []byte) fit {
	switch {
	case r.facts == nil:
		return yes
	case facts == nil:
		return unknown
	}
	for _, c := range r.facts {
		if !c.holds(facts) {
			return no
		}
	}
	return yes
}

func (r row) fitsClasses(classes []string) fit {
	switch {
	case r.classes == nil:
		return yes
	case classes == nil:
		return unknown
	}
	for _, m := range r.classes {
		if !slices.ContainsFunc(classes, m.fits) {
			return no
		}
	}
	return yes
}

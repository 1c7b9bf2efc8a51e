package datatype

import (
	"errors"
	"fmt"
	"strings"
)

// Type is a data type.
type Type struct{ shape shape }

// String is the type as Puppet would write it.
func (t *Type) String() string { return t.shape.String() }

// Parse reads a type expression.
func Parse(text string) (*Type, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	ref, err := p.reference()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != end {
		return nil, p.wrong("the end")
	}
	s, err := build(ref, 0)
	if err != nil {
		return nil, err
	}
	return &Type{s}, nil
}

// ParseAlias reads what a module's types/*.pp holds: `type Name = Type`.
func ParseAlias(source string) (name string, t *Type, err error) {
	p, err := newParser(source)
	if err != nil {
		return "", nil, err
	}
	if p.tok.kind != word || p.tok.text != "type" {
		return "", nil, p.wrong(`"type"`)
	}
	if err := p.advance(); err != nil {
		return "", nil, err
	}
	alias, err := p.reference()
	if err != nil {
		return "", nil, err
	}
	if alias.brackets {
		return "", nil, p.fail(0, "%s has arguments, an alias has none", alias.name)
	}
	if err := p.expect("="); err != nil {
		return "", nil, err
	}
	ref, err := p.reference()
	if err != nil {
		return "", nil, err
	}
	if p.tok.kind != end {
		return "", nil, p.wrong("the end")
	}
	s, err := build(ref, 0)
	return alias.name, &Type{s}, err
}

// Resolver finds what an alias stands for. Its error ends the check.
type Resolver func(name string) (*Type, error)

// Mismatch says where a value does not fit. It never holds the value.
type Mismatch struct {
	Path     string // such as servers[2].port; empty for the value itself
	Expected string // the type
	Actual   string // what kind of value there is
}

func (m *Mismatch) Error() string {
	where := ""
	if m.Path != "" {
		where = m.Path + ": "
	}
	return fmt.Sprintf("%sexpects %s, got %s", where, m.Expected, m.Actual)
}

// under is m seen from one level up.
func (m *Mismatch) under(step string) *Mismatch {
	if m.Path != "" && m.Path[0] != '[' {
		step += "."
	}
	m.Path = step + m.Path
	return m
}

// Check returns nil when value, as encoding/json decodes it with UseNumber, is an
// instance of the type; otherwise the first *Mismatch, or resolve's error.
// resolve may be nil: then an alias is an error.
func (t *Type) Check(value any, resolve Resolver) error {
	c := &checker{resolve: resolve}
	m := c.fit(t.shape, value)
	if c.err != nil {
		return c.err
	}
	if m != nil {
		return m
	}
	return nil
}

const (
	maxSteps = 1_000_000 // shapes that one check may look at
	maxNest  = 200       // of shapes in one another, aliases too
)

// checker is one check on its way.
type checker struct {
	resolve Resolver
	err     error // it ends the check
	steps   int
	nest    int
}

// fit is the one door to every shape: it bounds the work.
func (c *checker) fit(s shape, value any) *Mismatch {
	if c.err != nil {
		return nil
	}
	if c.steps++; c.steps > maxSteps {
		return c.end(errors.New("checking a value against its type takes too long; give the type fewer alternatives or the value fewer parts"))
	}
	if c.nest++; c.nest > maxNest {
		return c.end(fmt.Errorf("the type %.80s refers to itself, or the value is nested too deep", s))
	}
	defer func() { c.nest-- }()
	return s.check(c, value)
}

// end ends the check: there is no answer.
func (c *checker) end(err error) *Mismatch {
	c.err = err
	return nil
}

// fits is fit for who asks yes or no; yes when the check has ended, so that
// nobody looks further.
func (c *checker) fits(s shape, value any) bool { return c.fit(s, value) == nil }

// Sensitive says whether values of the type must not be shown: it is, or is an
// option of, Sensitive.
func (t *Type) Sensitive() bool {
	switch s := t.shape.(type) {
	case sensitive:
		return true
	case optional:
		return (&Type{s.of}).Sensitive()
	default:
		return false
	}
}

// Optional says whether the value may be left out.
func (t *Type) Optional(resolve Resolver) bool { return t.Check(nil, resolve) == nil }

func join[T fmt.Stringer](list []T) string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = item.String()
	}
	return strings.Join(texts, ", ")
}

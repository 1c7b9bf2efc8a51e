package datatype

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// shape is one kind of type: what fits, and how it is written.
type shape interface {
	check(c *checker, value any) *Mismatch
	String() string
}

// plain is a type without arguments.
type plain struct {
	name string
	fits func(value any) bool
}

func (p plain) String() string { return p.name }

func (p plain) check(_ *checker, value any) *Mismatch {
	return verdict(p, value, p.fits(value))
}

func verdict(s shape, value any, fits bool) *Mismatch {
	if fits {
		return nil
	}
	return &Mismatch{Expected: s.String(), Actual: kindOf(value)}
}

// kindOf names the kind of a value, never the value itself.
func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "Undef"
	case bool:
		return "Boolean"
	case string:
		return "String"
	case json.Number:
		if isInteger(v) {
			return "Integer"
		}
		return "Float"
	case []any:
		return fmt.Sprintf("Array of %d", len(v))
	case map[string]any:
		return fmt.Sprintf("Hash of %d", len(v))
	default:
		return fmt.Sprintf("%T", v)
	}
}

// isInteger says whether a JSON number is an Integer for Puppet: 1.0 is a Float.
func isInteger(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }

// span is a range of sizes; high is -1 when it has no end.
type span struct{ low, high int64 }

var anySize = span{0, -1}

func (s span) holds(n int) bool {
	return int64(n) >= s.low && (s.high < 0 || int64(n) <= s.high)
}

// String is ", low, high" as far as it says anything.
func (s span) String() string {
	switch {
	case s == anySize:
		return ""
	case s.high < 0:
		return fmt.Sprintf(", %d", s.low)
	default:
		return fmt.Sprintf(", %d, %d", s.low, s.high)
	}
}

// bracketed is name[arguments], or the name alone without any.
func bracketed(name, arguments string) string {
	arguments = strings.TrimPrefix(arguments, ", ")
	if arguments == "" {
		return name
	}
	return name + "[" + arguments + "]"
}

type text struct{ size span }

func (t text) String() string { return bracketed("String", t.size.String()) }

func (t text) check(_ *checker, value any) *Mismatch {
	s, ok := value.(string)
	m := verdict(t, value, ok && t.size.holds(utf8.RuneCountInString(s)))
	if m != nil && ok {
		m.Actual = fmt.Sprintf("String of %d", utf8.RuneCountInString(s))
	}
	return m
}

// numeric is Integer or Float between two bounds, each nil when open.
type numeric struct {
	name      string // Integer or Float
	low, high *big.Float
}

func (n numeric) String() string {
	if n.low == nil && n.high == nil {
		return n.name
	}
	bound := func(f *big.Float) string {
		if f == nil {
			return "default"
		}
		return f.Text('g', 20)
	}
	return fmt.Sprintf("%s[%s, %s]", n.name, bound(n.low), bound(n.high))
}

func (n numeric) check(_ *checker, value any) *Mismatch {
	number, ok := value.(json.Number)
	if !ok || isInteger(number) != (n.name == "Integer") || len(number) > maxDigits {
		return verdict(n, value, false)
	}
	f, ok := new(big.Float).SetPrec(precision).SetString(string(number))
	return verdict(n, value, ok && (n.low == nil || f.Cmp(n.low) >= 0) && (n.high == nil || f.Cmp(n.high) <= 0))
}

const (
	maxDigits = 400
	precision = 256 // bits: more than Puppet's 64-bit integers need
)

type flag struct{ only *bool }

func (f flag) String() string {
	if f.only == nil {
		return "Boolean"
	}
	return fmt.Sprintf("Boolean[%t]", *f.only)
}

func (f flag) check(_ *checker, value any) *Mismatch {
	b, ok := value.(bool)
	return verdict(f, value, ok && (f.only == nil || b == *f.only))
}

// words is Enum.
type words struct{ list []string }

func (w words) String() string {
	quoted := make([]string, len(w.list))
	for i, s := range w.list {
		quoted[i] = quote(s)
	}
	return bracketed("Enum", strings.Join(quoted, ", "))
}

func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func (w words) check(_ *checker, value any) *Mismatch {
	s, ok := value.(string)
	return verdict(w, value, ok && slices.Contains(w.list, s))
}

// patterns is Pattern: one of the expressions matches.
type patterns struct {
	sources  []string
	compiled []*regexp2.Regexp
}

func (p patterns) String() string {
	slashed := make([]string, len(p.sources))
	for i, source := range p.sources {
		slashed[i] = "/" + strings.ReplaceAll(source, "/", `\/`) + "/"
	}
	return bracketed("Pattern", strings.Join(slashed, ", "))
}

func (p patterns) check(c *checker, value any) *Mismatch {
	s, ok := value.(string)
	for i := 0; ok && i < len(p.compiled); i++ {
		matches, err := p.compiled[i].MatchString(s)
		if err != nil { // the time is up
			return c.end(fmt.Errorf("the pattern /%.80s/ takes too long on this value", p.sources[i]))
		}
		if matches {
			return nil
		}
	}
	return verdict(p, value, false)
}

// optional is Optional[T].
type optional struct{ of shape }

func (o optional) String() string { return bracketed("Optional", o.of.String()) }

func (o optional) check(c *checker, value any) *Mismatch {
	if value == nil {
		return nil
	}
	return c.fit(o.of, value)
}

// notUndef is NotUndef[T].
type notUndef struct{ of shape }

func (n notUndef) String() string { return bracketed("NotUndef", n.of.String()) }

func (n notUndef) check(c *checker, value any) *Mismatch {
	if value == nil {
		return verdict(n, value, false)
	}
	return c.fit(n.of, value)
}

// sensitive is Sensitive[T].
type sensitive struct{ of shape }

func (s sensitive) String() string { return bracketed("Sensitive", s.of.String()) }

func (s sensitive) check(c *checker, value any) *Mismatch { return c.fit(s.of, value) }

// variant is Variant: one of the types fits.
type variant struct{ of []shape }

func (v variant) String() string { return bracketed("Variant", join(v.of)) }

func (v variant) check(c *checker, value any) *Mismatch {
	for _, s := range v.of {
		if c.fits(s, value) {
			return nil
		}
	}
	return verdict(v, value, false)
}

// alias is a name that a module gives a type.
type alias struct{ name string }

func (a alias) String() string { return a.name }

func (a alias) check(c *checker, value any) *Mismatch {
	if c.resolve == nil {
		return c.end(fmt.Errorf("the type %s is not known", a.name))
	}
	t, err := c.resolve(a.name)
	if err != nil {
		return c.end(err)
	}
	m := c.fit(t.shape, value)
	if m != nil && m.Path == "" {
		m.Expected = a.name + " = " + t.String()
	}
	return m
}

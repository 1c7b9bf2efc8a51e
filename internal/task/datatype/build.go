package datatype

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// build makes a shape of a reference.
func build(ref *reference, offset int) (shape, error) {
	b := builder{ref: ref, offset: offset}
	if s, ok := plains[ref.name]; ok {
		return s, b.bare()
	}
	if slices.Contains(withoutValues, ref.name) { // its arguments mean nothing here
		return plain{ref.name, func(any) bool { return false }}, nil
	}
	if with := builderOf(ref.name); with != nil {
		return with(&b)
	}
	if slices.Contains(unsupported, ref.name) {
		return nil, b.fail("the type %s cannot be checked here", ref.name)
	}
	return alias{strings.TrimPrefix(ref.name, "::")}, b.bare()
}

// withoutValues are types that no JSON value is an instance of.
var withoutValues = []string{
	"Binary", "Callable", "CatalogEntry", "Class", "Default", "Iterator", "Regexp", "Resource", "Runtime",
	"SemVer", "SemVerRange", "Timespan", "Timestamp", "Type", "URI",
}

// unsupported are types that would need the Puppet language itself.
var unsupported = []string{"Deferred", "Init", "Object", "TypeAlias", "TypeReference", "TypeSet"}

// plains are the types without arguments.
var plains = map[string]shape{
	"Any":         plain{"Any", func(any) bool { return true }},
	"Undef":       plain{"Undef", func(v any) bool { return v == nil }},
	"Numeric":     plain{"Numeric", isNumber},
	"Scalar":      plain{"Scalar", isScalar},
	"ScalarData":  plain{"ScalarData", isScalar},
	"Data":        plain{"Data", func(any) bool { return true }}, // all of JSON is
	"RichData":    plain{"RichData", func(any) bool { return true }},
	"RichDataKey": plain{"RichDataKey", func(v any) bool { return isText(v) || isNumber(v) }},
	"Iterable":    plain{"Iterable", isIterable},
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func isNumber(v any) bool {
	_, ok := v.(json.Number)
	return ok
}

func isScalar(v any) bool {
	_, ok := v.(bool)
	return ok || isText(v) || isNumber(v)
}

// isIterable: Puppet walks over a text's characters and over the numbers below one.
func isIterable(v any) bool {
	switch v := v.(type) {
	case string, []any, map[string]any:
		return true
	case json.Number:
		return isInteger(v) && v[0] != '-'
	default:
		return false
	}
}

// builderOf knows the types with arguments; nil for other names.
func builderOf(name string) func(*builder) (shape, error) {
	switch name {
	case "String":
		return buildText
	case "Integer", "Float":
		return buildNumber
	case "Boolean":
		return buildFlag
	case "Enum":
		return buildEnum
	case "Pattern":
		return buildPattern
	case "Optional":
		return buildOptional
	case "NotUndef":
		return buildNotUndef
	case "Sensitive":
		return buildSensitive
	case "Variant":
		return buildVariant
	case "Array":
		return buildArray
	case "Hash":
		return buildHash
	case "Collection":
		return buildCollection
	case "Tuple":
		return buildTuple
	case "Struct":
		return buildStruct
	default:
		return nil
	}
}

// builder reads the arguments of one reference.
type builder struct {
	ref    *reference
	offset int
}

func (b *builder) fail(format string, args ...any) error {
	return &SyntaxError{b.offset, fmt.Sprintf(format, args...)}
}

func (b *builder) bare() error {
	if b.ref.brackets {
		return b.fail("%s takes no arguments", b.ref.name)
	}
	return nil
}

// count checks how many arguments there are.
func (b *builder) count(low, high int) error {
	if n := len(b.ref.args); n < low || n > high {
		return b.fail("%s takes %d to %d arguments, not %d", b.ref.name, low, high, n)
	}
	return nil
}

// inner builds the i-th argument, which must be a type.
func (b *builder) inner(i int) (shape, error) {
	e := b.ref.args[i]
	if e.ref == nil {
		return nil, &SyntaxError{e.offset, fmt.Sprintf("%s expects a type as argument %d", b.ref.name, i+1)}
	}
	return build(e.ref, e.offset)
}

// wrapped builds the only argument of a type like Optional: a type, or a string
// that stands for itself.
func (b *builder) wrapped() (shape, error) {
	if err := b.count(1, 1); err != nil {
		return nil, err
	}
	if e := b.ref.args[0]; e.text != nil {
		return words{[]string{*e.text}}, nil
	}
	return b.inner(0)
}

// size reads the bounds from argument i on: none, one or two numbers, or Integer[low, high].
func (b *builder) size(i int) (span, error) {
	args := b.ref.args[i:]
	if len(args) == 1 && args[0].ref != nil && args[0].ref.name == "Integer" {
		args = args[0].ref.args
	}
	if len(args) > 2 {
		return anySize, b.fail("%s has too many arguments", b.ref.name)
	}
	size := anySize
	for n, e := range args {
		switch {
		case e.def:
		case e.whole == nil || !e.whole.IsInt64():
			return size, &SyntaxError{e.offset, "a size is a whole number or default"}
		case n == 0:
			size.low = max(0, e.whole.Int64())
		default:
			size.high = e.whole.Int64()
		}
	}
	if len(args) == 2 && !args[1].def && size.low > size.high {
		return size, b.fail("%s: the first bound is above the second", b.ref.name)
	}
	return size, nil
}

func buildText(b *builder) (shape, error) {
	size, err := b.size(0)
	return text{size}, err
}

// buildNumber makes Integer and Float.
func buildNumber(b *builder) (shape, error) {
	if err := b.count(0, 2); err != nil {
		return nil, err
	}
	var bounds [2]*big.Float
	for i, e := range b.ref.args {
		switch {
		case e.def:
		case e.whole != nil:
			bounds[i] = new(big.Float).SetPrec(precision).SetInt(e.whole)
		case e.float != nil && b.ref.name == "Float":
			bounds[i] = new(big.Float).SetPrec(precision).SetFloat64(*e.float)
		default:
			return nil, &SyntaxError{e.offset, "a bound of " + b.ref.name + " is a number of its kind or default"}
		}
	}
	if bounds[0] != nil && bounds[1] != nil && bounds[0].Cmp(bounds[1]) > 0 {
		return nil, b.fail("%s: the first bound is above the second", b.ref.name)
	}
	return numeric{b.ref.name, bounds[0], bounds[1]}, nil
}

func buildFlag(b *builder) (shape, error) {
	if err := b.count(0, 1); err != nil || len(b.ref.args) == 0 {
		return flag{}, err
	}
	only := b.ref.args[0].flag
	if only == nil {
		return nil, b.fail("Boolean takes true or false")
	}
	return flag{only}, nil
}

func buildEnum(b *builder) (shape, error) {
	var list []string
	for _, e := range b.ref.args {
		if e.text == nil {
			return nil, &SyntaxError{e.offset, "Enum takes strings"}
		}
		list = append(list, *e.text)
	}
	return words{list}, nil // without any: no string is one of none
}

func buildPattern(b *builder) (shape, error) {
	var p patterns
	for _, e := range b.ref.args {
		source := e.pattern
		if source == nil {
			source = e.text
		}
		if source == nil || e.bare {
			return nil, &SyntaxError{e.offset, "Pattern takes regular expressions: /.../ or strings"}
		}
		compiled, err := compilePattern(*source)
		if err != nil {
			return nil, &SyntaxError{e.offset, err.Error()}
		}
		p.sources, p.compiled = append(p.sources, *source), append(p.compiled, compiled)
	}
	if p.compiled == nil { // any string
		return text{anySize}, nil
	}
	return p, nil
}

// buildOptional makes Optional; without a type, only undef is one.
func buildOptional(b *builder) (shape, error) {
	if !b.ref.brackets {
		return plains["Undef"], nil
	}
	of, err := b.wrapped()
	return optional{of}, err
}

func buildNotUndef(b *builder) (shape, error) {
	if !b.ref.brackets {
		return notUndef{plains["Any"]}, nil
	}
	of, err := b.wrapped()
	return notUndef{of}, err
}

func buildSensitive(b *builder) (shape, error) {
	if !b.ref.brackets {
		return sensitive{plains["Any"]}, nil
	}
	if err := b.count(1, 1); err != nil {
		return nil, err
	}
	of, err := b.inner(0)
	return sensitive{of}, err
}

func buildVariant(b *builder) (shape, error) {
	var v variant
	for i := range b.ref.args {
		of, err := b.inner(i)
		if err != nil {
			return nil, err
		}
		v.of = append(v.of, of)
	}
	return v, nil
}

func buildArray(b *builder) (shape, error) {
	if !b.ref.brackets {
		return array{plains["Any"], anySize}, nil
	}
	if err := b.count(1, 3); err != nil {
		return nil, err
	}
	of, err := b.inner(0)
	if err != nil {
		return nil, err
	}
	size, err := b.size(1)
	return array{of, size}, err
}

func buildHash(b *builder) (shape, error) {
	if !b.ref.brackets {
		return hash{plains["Any"], plains["Any"], anySize}, nil
	}
	if err := b.count(2, 4); err != nil {
		return nil, err
	}
	key, err := b.inner(0)
	if err != nil {
		return nil, err
	}
	of, err := b.inner(1)
	if err != nil {
		return nil, err
	}
	size, err := b.size(2)
	return hash{key, of, size}, err
}

func buildCollection(b *builder) (shape, error) {
	size, err := b.size(0)
	return collection{size}, err
}

func buildTuple(b *builder) (shape, error) {
	if !b.ref.brackets {
		return plain{"Tuple", func(v any) bool { _, ok := v.([]any); return ok }}, nil
	}
	var t tuple
	types := 0
	for types < len(b.ref.args) && b.ref.args[types].ref != nil {
		of, err := b.inner(types)
		if err != nil {
			return nil, err
		}
		t.of = append(t.of, of)
		types++
	}
	if types == 0 {
		return nil, b.fail("Tuple takes at least one type")
	}
	size, err := b.size(types)
	t.size, t.said = size, types < len(b.ref.args)
	if !t.said {
		t.size = span{int64(types), int64(types)}
	}
	return t, err
}

func buildStruct(b *builder) (shape, error) {
	var s structure
	for _, e := range b.ref.args {
		if e.fields == nil {
			return nil, &SyntaxError{e.offset, "Struct takes {key => Type, ...}"}
		}
		for _, f := range e.fields {
			m, err := buildMember(f)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(s.members, func(o member) bool { return o.key == m.key }) {
				return nil, &SyntaxError{f.key.offset, fmt.Sprintf("the key %.40q is there twice", m.key)}
			}
			s.members = append(s.members, m)
		}
	}
	return s, nil // without any members: only the empty hash
}

// buildMember reads key => Type; the key may be in Optional or NotUndef.
func buildMember(f field) (m member, err error) {
	key := f.key
	if key.ref != nil && len(key.ref.args) == 1 {
		switch key.ref.name {
		case "Optional":
			m.need = optionalKey
		case "NotUndef":
			m.need = required
		default:
			key.ref = nil
		}
		if key.ref != nil {
			key = key.ref.args[0]
		}
	}
	if key.text == nil || *key.text == "" {
		return m, &SyntaxError{f.key.offset, "a key of Struct is a string, or Optional or NotUndef of one"}
	}
	if f.value.ref == nil {
		return m, &SyntaxError{f.value.offset, fmt.Sprintf("the key %.40q needs a type", *key.text)}
	}
	m.key = *key.text
	m.of, err = build(f.value.ref, f.value.offset)
	return m, err
}

package diff

import (
	"slices"
	"strconv"
	"strings"
)

// Forms in which two compilers may write one value.
const (
	formNumberText = "a number as text"         // 1 and "1"
	formNumber     = "the form of a number"     // 1 and 1.0, 1e3 and 1000.0
	formUndef      = "undef"                    // null, and nothing at all
	formRich       = "the form of a rich value" // a Sensitive, a Regexp, a Timestamp and its plain value
)

// forms says that two values are one value in other forms, and in which, sorted; none: they are different values, or do not differ. Either may be nil: there is
// none. The order of the keys of a hash is no form: it is order.
func forms(a, b *value) []string {
	var found []string
	if !alikeInForm(a, b, &found) {
		return nil
	}
	return setOf(found)
}

// alikeInForm adds the forms in which two values differ that are one value; false: they are not.
func alikeInForm(a, b *value, found *[]string) bool {
	switch {
	case isUndef(a) && isUndef(b):
		if (a == nil) != (b == nil) {
			*found = append(*found, formUndef)
		}
		return true
	case a == nil || b == nil:
		return false
	case isRich(a) != isRich(b):
		*found = append(*found, formRich)
		return alikeInForm(plainOf(a), plainOf(b), found)
	case a.kind == '{' && b.kind == '{':
		return hashesAlike(a, b, found)
	case a.kind == '[' && b.kind == '[':
		return listsAlike(a, b, found)
	case a.kind == '0' && b.kind == '0':
		return numbersAlike(a.text, b.text, found)
	case a.kind == '0' && b.kind == '"' || a.kind == '"' && b.kind == '0':
		*found = append(*found, formNumberText)
		return a.text == b.text
	default:
		return a.kind == b.kind && a.text == b.text
	}
}

func hashesAlike(a, b *value, found *[]string) bool {
	for i, key := range a.keys {
		if !alikeInForm(a.items[i], b.member(key), found) {
			return false
		}
	}
	for i, key := range b.keys {
		if a.member(key) == nil && !alikeInForm(nil, b.items[i], found) {
			return false
		}
	}
	return true
}

func listsAlike(a, b *value, found *[]string) bool {
	if len(a.items) != len(b.items) {
		return false
	}
	for i := range a.items {
		if !alikeInForm(a.items[i], b.items[i], found) {
			return false
		}
	}
	return true
}

func numbersAlike(a, b string, found *[]string) bool {
	if a == b {
		return true
	}
	*found = append(*found, formNumber)
	first, ok := decimalOf(a)
	second, okay := decimalOf(b)
	return ok && okay && first == second
}

func isUndef(v *value) bool { return v == nil || v.kind == 'n' }

// The keys in which catalogs have a value that JSON has no type for.
const (
	richType  = "__ptype"
	richValue = "__pvalue"
)

// isRich says whether a value is one that JSON has no type for, beside nothing but its plain value.
func isRich(v *value) bool {
	if v.kind != '{' || v.member(richType) == nil {
		return false
	}
	return len(v.keys) == 2 && v.member(richValue) != nil || len(v.keys) == 1
}

// plainOf is what a rich value is without its type; of one that is nothing else, such as default, its name.
func plainOf(v *value) *value {
	switch {
	case !isRich(v):
		return v
	case v.member(richValue) != nil:
		return v.member(richValue)
	default:
		return &value{kind: '"', text: strings.ToLower(v.member(richType).text)}
	}
}

// decimal is a number without the ways to write it: 0.digits times ten to the power of exponent.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// decimalOf reads a number as JSON has it; false for an exponent that nobody writes.
func decimalOf(text string) (decimal, bool) {
	text, negative := strings.CutPrefix(text, "-")
	exponent := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil || exponent > 1e6 || exponent < -1e6 {
			return decimal{}, false
		}
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent += len(whole) - (len(whole+fraction) - len(digits))
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return decimal{}, true
	}
	return decimal{negative, digits, exponent}, true
}

// forms says that nothing but the forms of values differs in a resource, beside order, and in which; none: more does.
func (r *resourceChange) forms() []string {
	if r.kind != changed || len(r.files) > 0 {
		return nil
	}
	var found []string
	for i := range r.parameters {
		p := &r.parameters[i]
		if p.isOrder() {
			continue
		}
		some := forms(p.old, p.new)
		if len(some) == 0 {
			return nil
		}
		found = slices.Concat(found, some)
	}
	return setOf(found)
}

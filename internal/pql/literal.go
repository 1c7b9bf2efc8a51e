package pql

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// field = name '?'? | ('facts'|'trusted'|'parameters') step+
func (p *parser) field() (Field, *Error) {
	f := Field{Pos: p.pos()}
	name, ok := p.name("a field")
	if !ok {
		return f, p.fail()
	}
	f.Name = name
	if strings.HasPrefix(p.rest(), "?") {
		p.at++
		f.Name += "?"
	}
	if !isStructured(name) {
		return f, nil
	}
	for {
		if strings.HasPrefix(p.rest(), "[") && len(f.Path) > 0 {
			if err := p.index(&f); err != nil {
				return f, err
			}
			continue
		}
		if !strings.HasPrefix(p.rest(), ".") {
			return f, nil
		}
		p.at++
		if err := p.step(&f); err != nil {
			return f, err
		}
	}
}

// isStructured tells fields that a path may lead into.
func isStructured(name string) bool {
	return name == "facts" || name == "trusted" || name == "parameters"
}

func (p *parser) index(f *Field) *Error {
	p.at++ // the bracket
	start := p.at
	text, ok := p.digits("an index")
	if !ok || !p.take("]") {
		return p.fail()
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return p.failAt(start, "the index is too large", "an index")
	}
	f.Path = append(f.Path, Step{Kind: Index, Index: n})
	return nil
}

func (p *parser) step(f *Field) *Error {
	if pattern, ok := strings.CutPrefix(p.rest(), `match("`); ok {
		pattern, _, ok = strings.Cut(pattern, `")`)
		if !ok {
			return p.failAt(p.at, "match( does not end", `")`)
		}
		f.Path = append(f.Path, Step{Kind: Match, Text: pattern})
		p.at += len(`match("`) + len(pattern) + len(`")`)
		return nil
	}
	if strings.HasPrefix(p.rest(), `"`) {
		return p.quotedKey(f)
	}
	key, ok := p.bare()
	if !ok {
		return p.fail()
	}
	f.Path = append(f.Path, Step{Text: key})
	return nil
}

// quotedKey reads a key up to a quote that something follows which may follow a
// key: a key may hold quotes, and has no other escapes.
func (p *parser) quotedKey(f *Field) *Error {
	start := p.at
	rest := p.rest()
	for i := 1; i < len(rest); i++ {
		if rest[i] == '"' && (i+1 == len(rest) || strings.IndexByte(". \t\r\n[],=<>!~{}()", rest[i+1]) >= 0) {
			p.at += i + 1
			f.Path = append(f.Path, Step{Text: rest[1:i], Quoted: true})
			return nil
		}
	}
	return p.failAt(start, "a quoted key does not end", `"`)
}

// value = string | number | 'true' | 'false' | '[' value (',' value)* ']'
func (p *parser) value() (Value, *Error) {
	at := p.pos()
	switch c := p.peek(); {
	case c == '"' || c == '\'':
		text, err := p.quoted()
		return Value{Pos: at, Text: text}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number(at)
	case c == '[':
		return p.list(at)
	}
	for _, w := range []string{"true", "false"} {
		if p.word(w) {
			return Value{Pos: at, Kind: Boolean, Text: w}, nil
		}
	}
	p.miss("a string")
	p.miss("a number")
	p.miss("a list")
	return Value{}, p.fail()
}

func (p *parser) peek() byte {
	if p.at >= len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) list(at Pos) (Value, *Error) {
	if err := p.enter(); err != nil {
		return Value{}, err
	}
	defer p.leave()
	v := Value{Pos: at, Kind: List, List: []Value{}}
	p.at++ // the bracket
	p.space()
	if p.take("]") {
		return v, nil
	}
	for {
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.List = append(v.List, item)
		if !p.comma() {
			break
		}
	}
	p.space()
	if !p.take("]") {
		return v, p.fail()
	}
	return v, nil
}

// number = '-'? digits ('.' digits ('E' [+-]? digits)?)?
func (p *parser) number(at Pos) (Value, *Error) {
	start := p.at
	v := Value{Pos: at, Kind: Integer}
	if p.peek() == '-' {
		p.at++
		p.space()
	}
	if _, ok := p.digits("a digit"); !ok {
		return v, p.fail()
	}
	if p.peek() == '.' {
		v.Kind = Real
		p.at++
		if _, ok := p.digits("a digit"); !ok {
			return v, p.fail()
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		v.Kind = Real
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if _, ok := p.digits("a digit"); !ok {
			return v, p.fail()
		}
	}
	v.Text = withoutZeros(strings.Join(strings.Fields(p.text[start:p.at]), ""))
	if _, err := strconv.ParseFloat(v.Text, 64); err != nil {
		return v, p.failAt(start, "the number is too large", "a number")
	}
	return v, nil
}

// withoutZeros takes away what JSON does not allow: zeros before other digits.
func withoutZeros(number string) string {
	digits, negative := strings.CutPrefix(number, "-")
	for len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		digits = digits[1:]
	}
	if negative {
		return "-" + digits
	}
	return digits
}

// quoted reads a string. In single quotes a backslash escapes a quote and nothing
// else; double quotes have JSON's escapes, and what is none of them stays as it is
// written, so that "\d" means what people think.
func (p *parser) quoted() (string, *Error) {
	quote := p.peek()
	if quote != '"' && quote != '\'' {
		p.miss("a string")
		return "", p.fail()
	}
	var b strings.Builder
	for i := p.at + 1; i < len(p.text); {
		switch c := p.text[i]; {
		case c == quote:
			p.at = i + 1
			return b.String(), nil
		case c == '\\' && i+1 < len(p.text):
			i += unescape(&b, p.text[i:], quote)
		default:
			b.WriteByte(c)
			i++
		}
	}
	return "", p.failAt(p.at, "a string does not end", string(quote))
}

// unescape writes what the escape at the beginning of text stands for and returns
// its length.
func unescape(b *strings.Builder, text string, quote byte) int {
	if quote == '\'' {
		if text[1] == '\'' {
			b.WriteByte('\'')
			return 2
		}
		b.WriteByte('\\')
		return 1
	}
	if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		return 2
	}
	if text[1] == 'u' {
		if r, size := unicodeEscape(text); size > 0 {
			b.WriteRune(r)
			return size
		}
	}
	b.WriteByte('\\')
	return 1
}

// unicodeEscape reads \uXXXX, or two of them that form one character.
func unicodeEscape(text string) (rune, int) {
	first, ok := hex4(text)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(first) {
		second, ok := hex4(text[6:])
		if whole := utf16.DecodeRune(first, second); ok && whole != utf8.RuneError {
			return whole, 12
		}
		return utf8.RuneError, 6
	}
	return first, 6
}

func hex4(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}

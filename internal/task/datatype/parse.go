package datatype

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

const (
	maxText  = 64 << 10 // bytes of an expression
	maxDepth = 64       // of brackets
)

// expr is an argument of a type, as written: exactly one of the fields says what.
type expr struct {
	offset  int
	ref     *reference
	text    *string // a string or a bare word
	bare    bool    // text is a bare word
	pattern *string
	whole   *big.Int
	float   *float64
	flag    *bool
	def     bool // default
	fields  []field
}

// reference is a type's name with its arguments.
type reference struct {
	name     string
	args     []expr
	brackets bool
}

// field is one line of a Struct.
type field struct{ key, value expr }

type parser struct {
	scanner
	tok   token
	depth int
}

func newParser(text string) (*parser, error) {
	if len(text) > maxText {
		return nil, &SyntaxError{0, fmt.Sprintf("a type has at most %d bytes, this one has %d", maxText, len(text))}
	}
	p := &parser{scanner: scanner{text: text}}
	return p, p.advance()
}

func (p *parser) advance() (err error) {
	p.tok, err = p.next()
	return err
}

func (p *parser) wrong(wanted string) error {
	return p.fail(p.tok.offset, "%s is expected, not %s", wanted, p.tok)
}

func (p *parser) is(text string) bool { return p.tok.kind == punct && p.tok.text == text }

// expect passes one punctuation mark.
func (p *parser) expect(text string) error {
	if !p.is(text) {
		return p.wrong(strconv.Quote(text))
	}
	return p.advance()
}

// reference reads a type: Name or Name[argument, ...].
func (p *parser) reference() (*reference, error) {
	if p.tok.kind != name {
		return nil, p.wrong("a type's name, such as String,")
	}
	if strings.HasSuffix(p.tok.text, ":") || strings.Contains(strings.ReplaceAll(p.tok.text, "::", ""), ":") {
		return nil, p.fail(p.tok.offset, "%s is no type's name", p.tok)
	}
	ref := &reference{name: p.tok.text}
	if err := p.advance(); err != nil || !p.is("[") {
		return ref, err
	}
	ref.brackets = true
	err := p.list("[", "]", func() error {
		arg, err := p.argument()
		ref.args = append(ref.args, arg)
		return err
	})
	if err == nil && len(ref.args) == 0 {
		err = p.fail(p.tok.offset, "there is nothing between the brackets of %s", ref.name)
	}
	return ref, err
}

// list reads items between open and closed, separated by commas; a last comma may stand.
func (p *parser) list(open, closed string, item func() error) error {
	if p.depth++; p.depth > maxDepth {
		return p.fail(p.tok.offset, "brackets are nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	if err := p.expect(open); err != nil {
		return err
	}
	for !p.is(closed) {
		if err := item(); err != nil {
			return err
		}
		if p.is(closed) {
			break
		}
		if err := p.expect(","); err != nil {
			return err
		}
	}
	return p.advance()
}

// argument reads a value; with an arrow after it, it is the first field of a
// Struct without braces.
func (p *parser) argument() (expr, error) {
	e, err := p.value()
	if err != nil || !p.is("=>") {
		return e, err
	}
	f, err := p.after(e)
	return expr{offset: e.offset, fields: []field{f}}, err
}

// after reads the arrow and value that follow a key.
func (p *parser) after(key expr) (field, error) {
	if err := p.expect("=>"); err != nil {
		return field{}, err
	}
	value, err := p.value()
	return field{key, value}, err
}

func (p *parser) value() (expr, error) {
	tok := p.tok
	e := expr{offset: tok.offset}
	var err error
	switch tok.kind {
	case name:
		e.ref, err = p.reference()
		return e, err
	case word:
		e.word(tok.text)
	case quoted:
		e.text = &tok.text
	case pattern:
		e.pattern = &tok.text
	case number:
		err = e.number(tok.text)
	case punct:
		if tok.text == "{" {
			return p.fields(e)
		}
		return e, p.wrong("a type or value")
	case end:
		return e, p.wrong("a type or value")
	}
	if err != nil {
		return e, p.fail(tok.offset, "%s is no number", tok)
	}
	return e, p.advance()
}

func (p *parser) fields(e expr) (expr, error) {
	e.fields = []field{}
	err := p.list("{", "}", func() error {
		key, err := p.value()
		if err != nil {
			return err
		}
		f, err := p.after(key)
		e.fields = append(e.fields, f)
		return err
	})
	return e, err
}

func (e *expr) word(text string) {
	switch text {
	case "default":
		e.def = true
	case "true", "false":
		flag := text == "true"
		e.flag = &flag
	default:
		e.text, e.bare = &text, true
	}
}

// number takes what Puppet takes: decimal, 0x and 0 before octal digits, real.
func (e *expr) number(text string) error {
	digits, negative := strings.CutPrefix(text, "-")
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0' && isDigit(digits[1]):
		digits, base = digits[1:], 8
	}
	if whole, ok := new(big.Int).SetString(digits, base); ok && digits[0] != '+' && digits[0] != '-' && !strings.Contains(digits, "_") {
		if negative {
			whole.Neg(whole)
		}
		e.whole = whole
		return nil
	}
	if base != 10 || strings.ContainsAny(digits, "_xXpP") {
		return strconv.ErrSyntax
	}
	float, err := strconv.ParseFloat(text, 64)
	e.float = &float
	return err
}

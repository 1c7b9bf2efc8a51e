package classify

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
)

// ParseRule reads a rule as people write it:
//
//	rule      = all { "or" all }
//	all       = one { "and" one }
//	one       = "not" one | "(" rule ")" | condition
//	condition = path ( "=" | "!=" | "~" | "!~" | "<" | "<=" | ">" | ">=" ) value
//	path      = "name" | ( "facts" | "trusted" ) step { step }
//	step      = "." ( key | quoted ) | "[" index "]"
//	value     = quoted | number | "true" | "false"
//
// In double quotes a backslash begins an escape; in single quotes only \' and \\
// are escapes, so that patterns are written as they are. An error names line,
// column, and what is expected there.
func ParseRule(text string) (*Rule, error) {
	if len(text) > MaxTextBytes {
		return nil, fault.New(fault.Invalid, "the rule has %d bytes, at most %d are allowed", len(text), MaxTextBytes)
	}
	if !utf8.ValidString(text) {
		return nil, fault.New(fault.Invalid, "the rule is not UTF-8")
	}
	p := textReader{text: text}
	if err := p.next(); err != nil {
		return nil, err
	}
	rule, err := p.either(0)
	if err != nil {
		return nil, err
	}
	if p.token.kind != endToken {
		return nil, p.expected(`"and", "or" or the end`)
	}
	if parts, depth := rule.shape(); parts > maxConditions || depth > maxDepth {
		return nil, fault.New(fault.Invalid, "the rule has %d parts, nested %d deep; at most %d and %d are allowed", parts, depth, maxConditions, maxDepth)
	}
	return &rule, nil
}

type tokenKind uint8

const (
	endToken    tokenKind = iota
	wordToken             // and, name, facts, 2.5
	quotedToken           // text is what is between the quotes
	signToken             // = != ~ ( ) . [ ]
)

type token struct {
	kind  tokenKind
	text  string
	start int
}

// textReader reads one token ahead.
type textReader struct {
	text       string
	pos        int // after token
	token      token
	conditions int
}

// at is a place for people: line and column, in characters.
func (p *textReader) at(offset int) string {
	before := p.text[:offset]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:]) + 1
	return fmt.Sprintf("rule, line %d, column %d", line, column)
}

func (p *textReader) expected(what string) error {
	found := "the end"
	switch p.token.kind {
	case wordToken, signToken:
		found = fmt.Sprintf("%.40q", p.token.text)
	case quotedToken:
		found = fmt.Sprintf("the text %.40q", p.token.text)
	case endToken:
	}
	err := expected(p.at(p.token.start), "%s is expected, not %s", what, found)
	return &fault.Error{Kind: fault.Invalid, Detail: fault.Detail(err), Hint: p.foreign()}
}

// foreign says of what stands here that it belongs to the expressions of policies.
func (p *textReader) foreign() string {
	before, rest := p.text[:p.token.start], p.text[p.token.start:]
	switch {
	case strings.HasPrefix(rest, "=") && strings.HasSuffix(before, "="):
		return "rules of groups compare with one =; == belongs to policies"
	case strings.HasPrefix(rest, "&"):
		return "rules of groups write and, not &&"
	case strings.HasPrefix(rest, "|"):
		return "rules of groups write or, not ||"
	case strings.HasPrefix(rest, "matches"):
		return "rules of groups match a regular expression with ~; matches belongs to policies"
	}
	return ""
}

const spaces = " \t\r\n"

// next reads the next token.
func (p *textReader) next() error {
	p.pos += len(p.text[p.pos:]) - len(strings.TrimLeft(p.text[p.pos:], spaces))
	rest := p.text[p.pos:]
	p.token = token{start: p.pos}
	if rest == "" {
		return nil
	}
	if rest[0] == '"' || rest[0] == '\'' {
		return p.quoted()
	}
	if length := len(rest) - len(strings.TrimLeftFunc(rest, isWord)); length > 0 {
		p.take(wordToken, length)
		return nil
	}
	for _, sign := range []string{"!=", "!~", "<=", ">=", "=", "~", "<", ">", "(", ")", ".", "[", "]"} {
		if strings.HasPrefix(rest, sign) {
			p.take(signToken, len(sign))
			return nil
		}
	}
	first, _ := utf8.DecodeRuneInString(rest)
	return &fault.Error{
		Kind: fault.Invalid, Detail: fmt.Sprintf("%s: the character %q does not belong here; a text needs quotes", p.at(p.pos), first), Hint: p.foreign(),
	}
}

func (p *textReader) take(kind tokenKind, length int) {
	p.token = token{kind: kind, text: p.text[p.pos : p.pos+length], start: p.pos}
	p.pos += length
}

// isWord says what words, keys and numbers are made of. Points are signs: number
// puts 2.5 together again.
func isWord(r rune) bool {
	return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func (p *textReader) quoted() error {
	start, quote := p.pos, p.text[p.pos]
	for i := start + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case quote:
			raw := p.text[start : i+1]
			text, err := unquote(raw)
			if err != nil {
				return expected(p.at(start), "the text %.60s holds an escape that is none; in single quotes a backslash is just that", raw)
			}
			p.pos, p.token = i+1, token{kind: quotedToken, text: text, start: start}
			return nil
		}
	}
	return expected(p.at(start), "the text that begins here has no end: a closing %c is expected", quote)
}

func unquote(raw string) (string, error) {
	if raw[0] == '"' {
		text, err := strconv.Unquote(raw)
		if err == nil && !utf8.ValidString(text) {
			err = strconv.ErrSyntax
		}
		return text, err
	}
	return strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(raw[1 : len(raw)-1]), nil
}

// is says whether the token is this word or sign.
func (p *textReader) is(text string) bool {
	return (p.token.kind == wordToken || p.token.kind == signToken) && p.token.text == text
}

func (p *textReader) either(depth int) (Rule, error) { return p.series("or", Or, p.all, depth) }

func (p *textReader) all(depth int) (Rule, error) { return p.series("and", And, p.one, depth) }

// series reads parts with a word between them.
func (p *textReader) series(word string, op Op, part func(int) (Rule, error), depth int) (Rule, error) {
	rule, err := part(depth)
	if err != nil || !p.is(word) {
		return rule, err
	}
	rules := []Rule{rule}
	for p.is(word) {
		if err := p.next(); err != nil {
			return Rule{}, err
		}
		if rule, err = part(depth); err != nil {
			return Rule{}, err
		}
		rules = append(rules, rule)
	}
	return combine(op, rules), nil
}

func (p *textReader) one(depth int) (Rule, error) {
	if p.conditions++; p.conditions > maxConditions {
		return Rule{}, expected(p.at(p.token.start), "the rule has more than %d parts", maxConditions)
	}
	if depth > maxDepth {
		return Rule{}, expected(p.at(p.token.start), "the rule is nested more than %d deep", maxDepth)
	}
	switch {
	case p.is("not"):
		if err := p.next(); err != nil {
			return Rule{}, err
		}
		rule, err := p.one(depth + 1)
		return Negate(rule), err
	case p.is("("):
		if err := p.next(); err != nil {
			return Rule{}, err
		}
		rule, err := p.either(depth + 1)
		if err != nil {
			return Rule{}, err
		}
		if !p.is(")") {
			return Rule{}, p.expected(`"and", "or" or ")"`)
		}
		return rule, p.next()
	}
	return p.condition()
}

func (p *textReader) condition() (Rule, error) {
	path, err := p.path()
	if err != nil {
		return Rule{}, err
	}
	op, negated := strings.CutPrefix(p.token.text, "!")
	switch Op(op) {
	case Equals, Matches, Less, LessEqual, Greater, GreaterEqual:
	case And, Or, Not:
		fallthrough
	default:
		return Rule{}, p.expected("one of = != ~ !~ < <= > >=")
	}
	if p.token.kind != signToken {
		return Rule{}, p.expected("one of = != ~ !~ < <= > >=")
	}
	if err := p.next(); err != nil {
		return Rule{}, err
	}
	start := p.token.start
	value, err := p.value()
	if err != nil {
		return Rule{}, err
	}
	rule, err := Compare(Op(op), path, value)
	if err != nil {
		return Rule{}, expected(p.at(start), "%s", fault.Detail(err))
	}
	if negated {
		return Negate(rule), nil
	}
	return rule, nil
}

func (p *textReader) path() (Path, error) {
	var path Path
	switch {
	case p.is("name"):
		return Path{Root: Name}, p.next()
	case p.is("facts"), p.is("fact"):
		path.Root = Fact
	case p.is("trusted"):
		path.Root = Trusted
	default:
		return Path{}, p.expected(`"not", "(", name, facts.PATH or trusted.PATH`)
	}
	if err := p.next(); err != nil {
		return Path{}, err
	}
	for p.is(".") || p.is("[") {
		if len(path.Steps) == maxSteps-1 {
			return Path{}, expected(p.at(p.token.start), "at most %d keys are expected in a path", maxSteps-1)
		}
		step, err := p.step()
		if err != nil {
			return Path{}, err
		}
		path.Steps = append(path.Steps, step)
	}
	if len(path.Steps) == 0 {
		return Path{}, p.expected(`a path like facts.os.family: "." or "["`)
	}
	return path, nil
}

func (p *textReader) step() (Step, error) {
	bracket := p.is("[")
	if err := p.next(); err != nil {
		return Step{}, err
	}
	if !bracket {
		if p.token.kind != wordToken && p.token.kind != quotedToken {
			return Step{}, p.expected("a key")
		}
		key := p.token.text
		return Step{Key: key}, p.next()
	}
	index, err := strconv.ParseUint(p.token.text, 10, 32)
	if p.token.kind != wordToken || err != nil || index > maxIndex {
		return Step{}, p.expected(fmt.Sprintf("an index from 0 to %d", maxIndex))
	}
	if err := p.next(); err != nil {
		return Step{}, err
	}
	if !p.is("]") {
		return Step{}, p.expected(`"]"`)
	}
	return Step{Index: int(index), IsIndex: true}, p.next()
}

func (p *textReader) value() (string, error) {
	switch {
	case p.token.kind == quotedToken, p.is("true"), p.is("false"):
		text := p.token.text
		return text, p.next()
	case p.token.kind == wordToken:
		return p.number()
	}
	return "", p.expected(`a value like "Debian", 4 or true`)
}

// number reads 4, -4, 2.5 and 1e6, whose parts are words and signs.
func (p *textReader) number() (string, error) {
	first := p.token
	rest := p.text[first.start:]
	length := len(rest) - len(strings.TrimLeftFunc(rest, func(r rune) bool { return isWord(r) || r == '.' || r == '+' }))
	if !isDecimal(rest[:length]) {
		return "", p.expected("a number, true, false or a value in quotes")
	}
	p.pos = first.start + length
	return rest[:length], p.next()
}

// String writes the rule for people; ParseRule reads it back to the same tree.
func (r Rule) String() string {
	var text strings.Builder
	r.write(&text)
	return text.String()
}

func (r Rule) write(text *strings.Builder) {
	switch r.Op {
	case And, Or:
		for i, sub := range r.Rules {
			if i > 0 {
				text.WriteString(" " + string(r.Op) + " ")
			}
			sub.writeInside(text, r.Op)
		}
	case Not:
		text.WriteString("not ")
		for _, sub := range r.Rules {
			sub.writeInside(text, Not)
		}
	case Less, LessEqual, Greater, GreaterEqual:
		text.WriteString(r.Path.String() + " " + string(r.Op) + " " + r.Value)
	case Equals, Matches:
		text.WriteString(r.Path.String() + " " + string(r.Op) + " " + quote(r.Value))
	}
}

// writeInside puts parentheses where the tree would be another one without.
func (r Rule) writeInside(text *strings.Builder, outer Op) {
	if r.Op != Or && r.Op != And || outer == Or && r.Op == And {
		r.write(text)
		return
	}
	text.WriteString("(")
	r.write(text)
	text.WriteString(")")
}

// String writes the path for people.
func (p Path) String() string {
	var text strings.Builder
	text.WriteString(string(p.Root))
	if p.Root == Fact {
		text.WriteString("s")
	}
	for _, step := range p.Steps {
		switch {
		case step.IsIndex:
			fmt.Fprintf(&text, "[%d]", step.Index)
		case step.Key != "" && strings.TrimLeftFunc(step.Key, isWord) == "":
			text.WriteString("." + step.Key)
		default:
			text.WriteString("." + quote(step.Key))
		}
	}
	return text.String()
}

// quote takes the quotes that need fewer escapes.
func quote(text string) string {
	if !strings.ContainsAny(text, `"\`) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	var out strings.Builder
	out.WriteByte('\'')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'':
			out.WriteString(`\'`)
		case c == '\\' && (i+1 == len(text) || text[i+1] == '\\' || text[i+1] == '\''):
			out.WriteString(`\\`)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('\'')
	return out.String()
}

package ddl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ends says whether arguments without parentheses end before a token.
func (p *parser) ends(t token) bool {
	return t.kind == tokenNewline || t.kind == tokenEnd || t.named("do") || t.named("end")
}

// arguments reads those of a statement, with parentheses or without.
func (p *parser) arguments() ([]value, error) {
	if !p.peek().is("(") {
		return p.list("")
	}
	p.take()
	args, err := p.list(")")
	if err == nil {
		err = p.want(")")
	}
	return args, err
}

// list reads values with commas between them up to a mark, or to the end of the line; keys with values become one table behind them.
func (p *parser) list(end string) ([]value, error) {
	over := func() bool {
		if end == "" {
			return p.ends(p.peek())
		}
		p.newlines()
		return p.peek().is(end) || p.peek().kind == tokenEnd
	}
	var all []value
	var named value
	for first := true; !over(); first = false {
		if !first {
			if err := p.want(","); err != nil {
				return nil, err
			}
			p.newlines()
			if over() { // a comma behind the last
				break
			}
		}
		one, isPair, err := p.element(0)
		switch {
		case err != nil:
			return nil, err
		case isPair:
			if err := named.add(one); err != nil {
				return nil, err
			}
		case named.kind == table:
			return nil, at(one.value.line, "a value without a key follows keys")
		default:
			all = append(all, one.value)
		}
	}
	if named.kind == table {
		all = append(all, named)
	}
	return all, nil
}

// add puts a pair into a table.
func (v *value) add(one pair) error {
	if _, there := v.find(one.key); there {
		return at(one.line, "the key %.80s is given twice", one.key)
	}
	if v.kind != table {
		v.kind, v.line = table, one.line
	}
	v.pairs = append(v.pairs, one)
	return nil
}

// element reads a value, or a key with its value.
func (p *parser) element(depth int) (one pair, isPair bool, err error) {
	if label := p.peek(); label.kind == tokenLabel {
		p.take()
		p.newlines()
		one = pair{key: label.text, line: label.line}
		one.value, err = p.value(depth)
		return one, true, err
	}
	v, err := p.value(depth)
	if err != nil || !p.peek().is("=>") {
		return pair{value: v}, false, err
	}
	p.take()
	p.newlines()
	one = pair{key: v.text, line: v.line}
	switch v.kind {
	case boolean:
		one.key = map[bool]string{true: "true", false: "false"}[v.yes]
	case text, symbol, number:
	case null, regex, list, table:
		return one, true, at(v.line, "a %s cannot be a key here", v.kind)
	}
	one.value, err = p.value(depth)
	return one, true, err
}

// value reads a literal; texts that follow each other, or are added, are one.
func (p *parser) value(depth int) (value, error) {
	v, err := p.literal(depth)
	for err == nil && v.kind == text && (p.peek().kind == tokenText || p.peek().is("+")) {
		if p.peek().is("+") {
			p.take()
			p.newlines()
		}
		var more value
		if more, err = p.literal(depth); err == nil && more.kind != text {
			err = at(more.line, "only a text can be added to a text")
		}
		if err == nil {
			err = p.makes(v.line, len(v.text)+len(more.text))
		}
		if err == nil {
			v.text += more.text
		}
	}
	return v, err
}

// maxMade bounds, in bytes, all texts together that are made of others: a small DDL could say huge ones.
const maxMade = 8 << 20

// makes counts a text that is about to be made.
func (p *parser) makes(line, bytes int) error {
	if p.made += bytes; p.made > maxMade {
		return at(line, "the texts that are put together have more than %d bytes", maxMade)
	}
	return nil
}

func (p *parser) literal(depth int) (value, error) {
	t := p.take()
	v := value{line: t.line, text: t.text}
	if depth > maxDepth {
		return v, at(t.line, "values are nested more than %d deep", maxDepth)
	}
	switch {
	case t.kind == tokenText, t.kind == tokenSymbol:
		v.kind = map[tokenKind]kind{tokenText: text, tokenSymbol: symbol}[t.kind]
		return v, p.fill(&v, t)
	case t.kind == tokenNumber:
		v.kind = number
	case t.kind == tokenRegex:
		v.kind = regex
	case t.kind == tokenWords:
		v.kind = list
		for _, w := range t.words {
			v.elements = append(v.elements, value{line: w.line, kind: map[tokenKind]kind{tokenText: text, tokenSymbol: symbol}[w.kind], text: w.text})
		}
	case t.named("true"), t.named("false"):
		v.kind, v.yes = boolean, t.text == "true"
	case t.named("nil"):
		v.kind = null
	case t.is("["):
		return p.elements(v, "]", depth)
	case t.is("{"):
		return p.elements(v, "}", depth)
	case t.kind == tokenName:
		return p.variable(t)
	default:
		return v, at(t.line, "a literal value is expected here, not %s", t)
	}
	return v, nil
}

// elements reads a list or a table whose bracket is read.
func (p *parser) elements(v value, end string, depth int) (value, error) {
	v.kind, v.text = list, ""
	if end == "}" {
		v.kind = table
	}
	for {
		p.newlines()
		if p.peek().is(end) {
			p.take()
			return v, nil
		}
		one, isPair, err := p.element(depth + 1)
		switch {
		case err != nil:
			return v, err
		case isPair != (end == "}"):
			return v, at(p.peek().line, "keys with values stand in { }, values in [ ]")
		case isPair:
			if err := v.add(one); err != nil {
				return v, err
			}
		default:
			v.elements = append(v.elements, one.value)
		}
		p.newlines()
		if p.peek().is(",") {
			p.take()
		} else if !p.peek().is(end) {
			return v, at(p.peek().line, "%s or a comma is expected here, not %s", end, p.peek())
		}
	}
}

// fill puts variables into the places of a text.
func (p *parser) fill(v *value, t token) error {
	if t.parts == nil {
		return nil
	}
	var b strings.Builder
	for _, part := range t.parts {
		if !part.expression {
			if err := p.makes(t.line, len(part.text)); err != nil {
				return err
			}
			b.WriteString(part.text)
			continue
		}
		words := strings.Split(part.text, ".")
		made, known := p.variables[words[0]]
		if !known {
			return at(t.line, "#{%.80s} is Ruby that is not executed here", part.text)
		}
		if err := p.makes(t.line, len(words)*len(made)); err != nil {
			return err
		}
		for _, method := range words[1:] {
			if made, known = applied(made, method); !known {
				return at(t.line, "#{%.80s} is Ruby that is not executed here", part.text)
			}
		}
		b.WriteString(made)
	}
	v.text = b.String()
	return nil
}

// variable reads a variable of a loop, perhaps with methods.
func (p *parser) variable(t token) (value, error) {
	v := value{line: t.line, kind: text}
	made, known := p.variables[t.text]
	if !known {
		return v, at(t.line, "`%.80s` is Ruby that is not executed here; write the value itself", t.text)
	}
	for p.peek().is(".") {
		p.take()
		method := p.take()
		if err := p.makes(t.line, len(made)); err != nil {
			return v, err
		}
		if made, known = applied(made, method.text); !known || method.kind != tokenName {
			return v, at(method.line, "the method %s is not known here", method)
		}
	}
	v.text = made
	return v, nil
}

// applied is what a method makes of a text.
func applied(of, method string) (made string, known bool) {
	switch method {
	case "to_s", "to_sym", "intern":
		return of, true
	case "upcase":
		return strings.ToUpper(of), true
	case "downcase":
		return strings.ToLower(of), true
	case "capitalize":
		first, size := utf8.DecodeRuneInString(of)
		if size == 0 {
			return of, true
		}
		return string(unicode.ToUpper(first)) + strings.ToLower(of[size:]), true
	}
	return "", false
}

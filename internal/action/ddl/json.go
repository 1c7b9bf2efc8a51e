package ddl

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// JSON reads a DDL of Choria as the description of the module of a name.
func JSON(name string, ddl []byte) (Translated, error) {
	if err := bounded(ddl); err != nil {
		return Translated{}, err
	}
	r := reader{text: ddl, decoder: jsontext.NewDecoder(bytes.NewReader(ddl))}
	document, err := r.value(0)
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return Translated{}, err
	}
	p, err := pluginOf(document)
	if err != nil {
		return Translated{}, err
	}
	return p.translate(name)
}

// reader reads JSON with the lines in which things are.
type reader struct {
	text    []byte
	decoder *jsontext.Decoder
	counted int // bytes up to which lines are counted
	lines   int
}

// line is that of the token read last.
func (r *reader) line() int {
	offset := min(int(r.decoder.InputOffset()), len(r.text))
	r.lines += bytes.Count(r.text[r.counted:offset], []byte("\n"))
	r.counted = offset
	return r.lines + 1
}

func (r *reader) fail(err error) error {
	place := int64(len(r.text))
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		place = min(wrong.ByteOffset, place)
	}
	return fault.Wrap(fault.Invalid, err, "line %d: it is not JSON: %v", 1+bytes.Count(r.text[:place], []byte("\n")), err)
}

func (r *reader) token() (jsontext.Token, error) {
	token, err := r.decoder.ReadToken()
	if err != nil {
		return token, r.fail(err)
	}
	return token, nil
}

func (r *reader) end() error {
	if _, err := r.decoder.ReadToken(); err == nil {
		return at(r.line(), "something comes behind the DDL")
	} else if rest := bytes.TrimSpace(r.text[r.decoder.InputOffset():]); len(rest) > 0 {
		return r.fail(err)
	}
	return nil
}

func (r *reader) value(depth int) (value, error) {
	token, err := r.token()
	if err != nil {
		return value{}, err
	}
	v := value{line: r.line()}
	if depth == maxDepth {
		return v, at(v.line, "values are nested more than %d deep", maxDepth)
	}
	switch token.Kind() {
	case '{':
		v.kind = table
		for r.decoder.PeekKind() == '"' {
			if err := r.pair(&v, depth); err != nil {
				return v, err
			}
		}
		_, err = r.token()
	case '[':
		v.kind = list
		for k := r.decoder.PeekKind(); k != ']' && k != 0; k = r.decoder.PeekKind() {
			element, err := r.value(depth + 1)
			if err != nil {
				return v, err
			}
			v.elements = append(v.elements, element)
		}
		_, err = r.token()
	case '"':
		v.kind, v.text = text, token.String()
	case '0':
		v.kind, v.text = number, token.String()
	case 't', 'f':
		v.kind, v.yes = boolean, token.Bool()
	default:
		v.kind = null
	}
	return v, err
}

func (r *reader) pair(into *value, depth int) error {
	token, err := r.token()
	if err != nil {
		return err
	}
	p := pair{key: token.String(), line: r.line()}
	if p.value, err = r.value(depth + 1); err == nil {
		into.pairs = append(into.pairs, p)
	}
	return err
}

// pluginOf is the plugin that a document describes.
func pluginOf(document value) (plugin, error) {
	p := plugin{line: document.line}
	if document.kind != table {
		return p, at(document.line, "a DDL is an object, not a %s", document.kind)
	}
	for _, member := range document.pairs {
		var err error
		switch member.key {
		case "$schema":
		case "metadata":
			err = p.describe(member.value)
		case "actions":
			err = p.actionsOf(member.value)
		default:
			p.warn(member.line, "%s", unknown("the DDL", member.key))
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *plugin) actionsOf(v value) error {
	if v.kind != list {
		return at(v.line, "actions must be a list")
	}
	for _, one := range v.elements {
		name, err := one.words("action")
		if err != nil {
			return err
		}
		a := &act{line: one.line, name: name}
		for _, member := range one.pairs {
			if err := p.member(a, member); err != nil {
				return err
			}
		}
		p.actions = append(p.actions, a)
	}
	return nil
}

// member takes one key of an action.
func (p *plugin) member(a *act, m pair) (err error) {
	of := value{line: m.line, kind: table, pairs: []pair{m}}
	switch m.key {
	case "action":
	case "description":
		a.description, err = of.words(m.key)
	case "read_only":
		a.readOnly, err = of.truth(m.key)
	case "display":
		if a.display, err = of.words(m.key); err == nil {
			p.display(a, m.line)
		}
	case "input", "output":
		if m.value.kind != table && m.value.kind != null {
			return at(m.value.line, "%s of the action %.80s must be an object", m.key, a.name)
		}
		for _, field := range m.value.pairs {
			if err := p.field(a, m.key, field.line, field.key, field.value); err != nil {
				return err
			}
		}
	case "aggregate":
		return p.aggregatesOf(a, m.value)
	default:
		p.warn(m.line, "%s", unknown("the action "+a.name, m.key))
	}
	return err
}

func (p *plugin) aggregatesOf(a *act, v value) error {
	if v.kind != list && v.kind != null {
		return at(v.line, "aggregate of the action %.80s must be a list", a.name)
	}
	for _, one := range v.elements {
		function, err := one.words("function")
		if err != nil {
			return err
		}
		args, _ := one.find("args")
		if args.kind != list {
			return at(one.line, "an aggregate has a list of args")
		}
		options := []value{}
		if format, there := one.find("format"); there {
			options = append(options, value{line: format.line, kind: table, pairs: []pair{{"format", format.line, format}}})
		}
		if err := p.aggregate(a, one.line, function, append(args.elements, options...)); err != nil {
			return err
		}
	}
	return nil
}

package ddl

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
)

// types are JSON's names of the types of fields.
var types = map[string]string{
	"string": "string", "boolean": "boolean", "integer": "integer", "number": "number", "float": "number", "hash": "object", "array": "array",
	"list": "", "any": "", "": "",
}

// field takes an input or an output.
func (p *plugin) field(a *act, what string, line int, name string, v value) error {
	if err := action.CheckName(what, name); err != nil {
		return at(line, "%s", fault.Detail(err))
	}
	if v.kind != table {
		return at(v.line, "%s %s of the action %.80s must have keys and values", what, name, a.name)
	}
	into := &a.inputs
	if what == "output" {
		into = &a.outputs
	}
	if slices.ContainsFunc(*into, func(f field) bool { return f.name == name }) {
		return at(line, "the action %.80s has the %s %s twice", a.name, what, name)
	}
	made, err := p.read(what, name, v)
	if err == nil {
		*into = append(*into, made)
	}
	return err
}

func (p *plugin) read(what, name string, v value) (field, error) {
	f := field{name: name}
	optional, err := v.truth("optional")
	if err != nil {
		return f, err
	}
	for _, member := range v.pairs {
		if err := p.take(&f, what, member, v); err != nil {
			return f, err
		}
	}
	if f.property.Title == name {
		f.property.Title = ""
	}
	if what == "output" {
		return f, nil
	}
	if kind, _ := v.find("type"); kind.text == "" {
		return f, at(v.line, "the input %s has no type", name)
	}
	if optional && f.property.Default != nil {
		p.warn(v.line, "the default of the input %s is left out: it is optional, so the default never counts", name)
		f.property.Default = nil
	}
	f.required = !optional && f.property.Default == nil
	return f, p.checkDefault(&f, v)
}

// take takes one key of an input or output.
func (p *plugin) take(f *field, what string, m pair, of value) (err error) {
	input := what == "input"
	switch {
	case m.key == "prompt" && input, m.key == "display_as" && !input:
		f.property.Title, err = of.words(m.key)
	case m.key == "description":
		f.property.Description, err = of.words(m.key)
	case m.key == "type":
		err = p.takeType(f, what, m, of)
	case m.key == "optional" && input:
	case m.key == "default":
		if m.value.kind != null {
			f.property.Default = m.value.json()
		}
	case m.key == "validation" && input:
		p.validation(f, m.value)
	case m.key == "maxlength" && input:
		length, err := of.number(m.key)
		if err != nil || length > 1<<30 {
			return at(m.line, "maxlength of the input %s must be a number of characters", f.name)
		}
		f.property.MaxLength = int(length)
	case m.key == "list" && input:
		if m.value.kind != list || len(m.value.elements) == 0 {
			return at(m.line, "list of the input %s must have the allowed values", f.name)
		}
		f.property.Enum = m.value.enum()
	default:
		p.warn(m.line, "%s", unknown(what+" "+f.name, m.key))
	}
	return err
}

func (p *plugin) takeType(f *field, what string, m pair, of value) error {
	words, err := of.words("type")
	if err != nil {
		return err
	}
	kind, known := types[strings.ToLower(words)]
	if !known {
		return at(m.line, "%s %s has the type %.40q; the types are string, list, boolean, integer, float, number, hash, array and any", what, f.name, words)
	}
	f.property.Type = kind
	if allowed, _ := of.find("list"); what == "input" && strings.EqualFold(words, "list") {
		if allowed.kind != list {
			return at(m.line, "the input %s is a list without the allowed values", f.name)
		}
		if !slices.ContainsFunc(allowed.elements, func(v value) bool { return v.kind != text && v.kind != symbol }) {
			f.property.Type = "string"
		}
	}
	return nil
}

// enum are the elements, each once: a schema has no value twice.
func (v value) enum() []jsontext.Value {
	var all []jsontext.Value
	for _, e := range v.elements {
		one := e.json()
		if !slices.ContainsFunc(all, func(other jsontext.Value) bool { return string(other) == string(one) }) {
			all = append(all, one)
		}
	}
	return all
}

// formats are validators that have another name here.
var formats = map[string]string{
	"ipv4address": "ipv4", "ipv6address": "ipv6", "ipv4": "ipv4", "ipv6": "ipv6", "duration": "duration_go", "regex": "regular_expression",
}

// validation takes a regular expression, or the name of a validator. Any text that is no such name is an expression.
func (p *plugin) validation(f *field, v value) {
	name, known := formats[v.text]
	if !known && slices.ContainsFunc(action.Formats(), func(one action.Format) bool { return one.Name == v.text }) {
		name, known = v.text, true
	}
	switch {
	case v.kind == null || v.kind == text && v.text == "":
	case v.kind == symbol && known, v.kind == text && known:
		f.property.Format = name
	case v.kind == text || v.kind == regex:
		expression := portable(v.text)
		if _, err := regexp.Compile(expression); err != nil {
			p.unchecked(v.line, "the validation of the input %s is left out, it has no equivalent: %v", f.name, err)
			return
		}
		f.property.Pattern = expression
	default:
		p.unchecked(v.line, "the validation of the input %s is left out: there is no validator %.80q here", f.name, v.text)
	}
}

// portable writes what Ruby alone knows as Go, too, knows it.
func portable(expression string) string {
	var b strings.Builder
	for i := 0; i < len(expression); i++ {
		if expression[i] != '\\' || i+1 == len(expression) {
			b.WriteByte(expression[i])
			continue
		}
		i++
		switch expression[i] {
		case 'Z':
			b.WriteString(`\z`)
		case '/':
			b.WriteByte('/')
		default:
			b.WriteString(expression[i-1 : i+1])
		}
	}
	return b.String()
}

// checkDefault leaves out a default that the schema does not allow.
func (p *plugin) checkDefault(f *field, v value) error {
	if f.property.Default == nil {
		return nil
	}
	schema, err := action.Compile(data(f.property))
	if err != nil {
		return at(v.line, "the input %s: %s", f.name, fault.Detail(err))
	}
	if schema.Check(f.property.Default) != nil {
		p.warn(v.line, "the default of the input %s is left out: the input's own rules refuse it", f.name)
		f.property.Default, f.required = nil, true
	}
	return nil
}

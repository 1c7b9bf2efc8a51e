package diff

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// declared is a resource that was taken apart.
type declared struct {
	tags       []string // sorted, each once
	parameters map[string]jsontext.Value
	sensitive  []string // parameters that Puppet marks
	file       string
	line       string
}

// declare takes a resource apart.
func declare(raw jsontext.Value) (declared, error) {
	d := declared{parameters: map[string]jsontext.Value{}}
	p := parser{text: raw, dec: newDecoder(raw)}
	err := p.object(func(key string) error {
		switch key {
		case "tags":
			return p.words(&d.tags)
		case "sensitive_parameters":
			return p.words(&d.sensitive)
		case "file":
			return p.word(&d.file)
		case "line":
			return p.scalar(&d.line)
		case "parameters":
			return p.parameters(d.parameters)
		default:
			return p.dec.SkipValue()
		}
	})
	d.tags = setOf(d.tags)
	return d, err
}

func (p *parser) parameters(into map[string]jsontext.Value) error {
	if p.dec.PeekKind() == 'n' {
		return p.dec.SkipValue()
	}
	return p.object(func(name string) error {
		raw, err := p.cut()
		into[name] = raw
		return err
	})
}

// text is a parameter that is a string; empty for none.
func (d declared) text(name string) string {
	raw := d.parameters[name]
	if len(raw) == 0 || raw.Kind() != '"' {
		return ""
	}
	v, err := decode(raw)
	if err != nil {
		return ""
	}
	return v.text
}

// orderOnly are the parameters that only say what comes before what, and what a
// resource can be found by.
var orderOnly = []string{"before", "require", "notify", "subscribe", "tag"}

func isOrder(parameter string) bool { return slices.Contains(orderOnly, parameter) }

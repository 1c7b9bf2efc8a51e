package ddl

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
)

const (
	maxDepth      = 50
	maxStatements = 2000
)

// Translated is a DDL as the description of a module.
type Translated struct {
	Module   action.Module
	Warnings []Warning // what has no equivalent, in the order of the lines
}

// Warning is something of a DDL that has no equivalent.
type Warning struct {
	Line      int    `json:"line"`
	Text      string `json:"text"`
	Unchecked bool   `json:"unchecked,omitzero"` // an input is held to less than the DDL wants
}

// String is the warning with its line.
func (w Warning) String() string { return fmt.Sprintf("line %d: %s", w.Line, w.Text) }

func bounded(ddl []byte) error {
	if len(ddl) > action.MaxMetadataBytes {
		return fault.New(fault.Invalid, "line 1: the DDL has more than %d bytes", action.MaxMetadataBytes)
	}
	return nil
}

// plugin is what a DDL says, in either language.
type plugin struct {
	line        int
	name        string
	description string
	author      string
	license     string
	version     string
	url         string
	timeout     float64
	actions     []*act
	warnings    []Warning
}

// act is an action of a plugin.
type act struct {
	line        int
	name        string
	description string
	display     string
	readOnly    bool
	inputs      fields
	outputs     fields
	aggregates  []action.Aggregate
	lines       []int // of aggregates
}

func (p *plugin) warn(line int, format string, args ...any) {
	p.warnings = append(p.warnings, Warning{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (p *plugin) unchecked(line int, format string, args ...any) {
	p.warn(line, format, args...)
	p.warnings[len(p.warnings)-1].Unchecked = true
}

func unknown(of, key string) string {
	return fmt.Sprintf("%.80s has the key %.80q, which has no equivalent; it is left out", of, key)
}

// describe takes the metadata.
func (p *plugin) describe(v value) (err error) {
	if v.kind != table {
		return at(v.line, "metadata must be keys and values")
	}
	texts := map[string]*string{
		"name": &p.name, "description": &p.description, "author": &p.author, "license": &p.license, "version": &p.version, "url": &p.url,
	}
	for _, member := range v.pairs {
		switch into, known := texts[member.key]; {
		case known:
			*into, err = v.words(member.key)
		case member.key == "timeout":
			p.timeout, err = v.number(member.key)
		case member.key == "provider":
		case member.key == "service":
			if service, _ := v.truth("service"); service {
				p.warn(member.line, "the plugin is a service, which one of many nodes answers; here each node that is asked answers")
			}
		default:
			p.warn(member.line, "%s", unknown("the metadata", member.key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *plugin) display(a *act, line int) {
	if !slices.Contains([]string{"", "ok", "failed", "always"}, a.display) {
		p.warn(line, "display %.40q has no equivalent; answers of the action %s that failed are shown", a.display, a.name)
		a.display = ""
	}
}

// translate makes the description.
func (p *plugin) translate(name string) (Translated, error) {
	m := action.Module{
		Name: name, Description: p.description, Version: p.version, Author: p.author, License: p.license, URL: p.url,
	}
	if p.name != "" && p.name != name {
		p.warn(p.line, "the DDL calls its plugin %.80q; a module has the name of its file, %.80q", p.name, name)
	}
	if len(p.actions) == 0 {
		return Translated{}, at(p.line, "no actions are described: a module needs some, and a DDL of another kind of plugin cannot become one")
	}
	for _, a := range p.actions {
		one, err := p.action(a)
		if err != nil {
			return Translated{}, err
		}
		m.Actions = append(m.Actions, one)
	}
	checked, err := action.Parse(name, m.Text())
	if err != nil {
		return Translated{}, fault.Wrap(fault.Invalid, err, "line %d: %s", p.line, fault.Detail(err))
	}
	slices.SortStableFunc(p.warnings, func(a, b Warning) int { return a.Line - b.Line })
	return Translated{Module: checked, Warnings: p.warnings}, nil
}

func (p *plugin) action(a *act) (action.Action, error) {
	if err := action.CheckName("action", a.name); err != nil {
		return action.Action{}, at(a.line, "%s", fault.Detail(err))
	}
	made := action.Action{
		Name: a.name, Description: a.description, ReadOnly: a.readOnly, Display: action.Display(a.display), Timeout: action.Seconds(p.timeout),
		Input: a.inputs.schema(true), Results: a.outputs.schema(false),
	}
	for i, aggregate := range a.aggregates {
		if !slices.ContainsFunc(a.outputs, func(f field) bool { return f.name == aggregate.Field }) {
			p.warn(a.lines[i], "%s of %.80s is left out: the action %s has no such output", aggregate.Function, aggregate.Field, a.name)
			continue
		}
		made.Aggregates = append(made.Aggregates, aggregate)
	}
	return made, nil
}

// aggregate takes one function over an output.
func (p *plugin) aggregate(a *act, line int, function string, args []value) error {
	if len(args) == 0 || args[0].kind != text && args[0].kind != symbol {
		return at(line, "the aggregate %.80s needs the name of an output", function)
	}
	made := action.Aggregate{Function: action.Function(function), Field: args[0].text}
	switch function {
	case "chart":
		made.Function = action.Distribution
	case "summary", "average", "sum", "boolean_summary":
	default:
		p.warn(line, "the aggregate function %.80s has no equivalent; it is left out", function)
		return nil
	}
	for _, option := range args[1:] {
		if option.kind == null {
			continue
		}
		if option.kind != table {
			return at(option.line, "what follows the output of an aggregate must be keys and values")
		}
		if err := p.option(&made, option); err != nil {
			return err
		}
	}
	a.aggregates, a.lines = append(a.aggregates, made), append(a.lines, line)
	return nil
}

// option takes a format, or the labels of a boolean_summary.
func (p *plugin) option(into *action.Aggregate, options value) error {
	for _, o := range options.pairs {
		words, err := options.words(o.key)
		if err != nil {
			return err
		}
		switch {
		case o.key == "format" && words == "":
		case o.key == "format":
			format, ok := formatOf(into.Function, words)
			if !ok {
				p.warn(o.line, "the format %.80q of the aggregate has no equivalent; the usual one is taken", words)
			}
			into.Format = format
		case into.Function == action.BooleanSummary:
			if into.Labels == nil {
				into.Labels = map[string]string{}
			}
			into.Labels[o.key] = words
		default:
			p.warn(o.line, "%s", unknown("the aggregate", o.key))
		}
	}
	return nil
}

// fields are inputs or outputs, in their order.
type fields []field

type field struct {
	name     string
	required bool
	property property
}

// property is the schema of one field.
type property struct {
	Type        string           `json:"type,omitzero"`
	Title       string           `json:"title,omitzero"`
	Description string           `json:"description,omitzero"`
	Format      string           `json:"format,omitzero"`
	Pattern     string           `json:"pattern,omitzero"`
	MaxLength   int              `json:"maxLength,omitzero"`
	Enum        []jsontext.Value `json:"enum,omitzero"`
	Default     jsontext.Value   `json:"default,omitzero"`
	Order       int              `json:"x-order,omitzero"`
}

// schema is that of the object with these fields.
func (f fields) schema(closed bool) jsontext.Value {
	s := struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties,omitzero"`
		Required   []string            `json:"required,omitzero"`
		More       *bool               `json:"additionalProperties,omitzero"`
	}{Type: "object"}
	if closed {
		s.More = new(bool)
	}
	for i, one := range f {
		if s.Properties == nil {
			s.Properties = map[string]property{}
		}
		one.property.Order = i + 1
		s.Properties[one.name] = one.property
		if one.required {
			s.Required = append(s.Required, one.name)
		}
	}
	return data(s)
}

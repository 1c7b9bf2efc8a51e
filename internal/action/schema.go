package action

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tutti-project/tutti/internal/fault"
)

// Schema says which JSON fits.
type Schema struct {
	compiled *jsonschema.Schema
	fields   []Field
}

// Field is one property of an object, as its schema has it.
type Field struct {
	Name        string
	Title       string   // what people call it; the name if the schema says nothing
	Description string   // one sentence, or empty
	Type        string   // of JSON; empty: several, or any
	Format      string   // or empty
	Enum        []string // allowed values as text; nil: not listed
	Default     any      // nil: there is none
	Required    bool
	MaxLength   int  // of a text; 0: no bound
	Hidden      bool // its values are secret
	order       float64
}

// Compile makes a schema usable.
func Compile(text jsontext.Value) (*Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "it is not JSON")
	}
	const name = "schema.json"
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft4)
	compiler.UseLoader(closed{})
	compiler.AssertFormat()
	for _, format := range Formats() {
		compiler.RegisterFormat(&jsonschema.Format{Name: format.Name, Validate: format.validate})
	}
	if err := compiler.AddResource(name, document); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%v", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%v", err)
	}
	return &Schema{compiled: compiled, fields: fieldsOf(compiled, text)}, nil
}

// closed loads nothing.
type closed struct{}

func (closed) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, which is outside", url)
}

// Fields are the properties of the object that the schema describes, in the order in which they are asked for and shown.
func (s *Schema) Fields() []Field { return s.fields }

// Field is one of them.
func (s *Schema) Field(name string) (Field, bool) {
	i := slices.IndexFunc(s.fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return s.fields[i], true
}

// Check is an Invalid fault that says where a value does not fit; CodeOf tells missing data from data that is wrong.
func (s *Schema) Check(text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "it is not JSON")
	}
	if err := s.compiled.Validate(value); err != nil {
		return fault.Wrap(fault.Invalid, err, "%s", where(err))
	}
	return nil
}

// extra are the annotations that are Tutti's own, beside those that the library knows.
type extra struct {
	Properties map[string]struct {
		Order *float64 `json:"x-order"`
	} `json:"properties"`
}

func fieldsOf(s *jsonschema.Schema, text []byte) []Field {
	for s.Ref != nil {
		s = s.Ref
	}
	var own extra
	_ = json.Unmarshal(text, &own) // what has another shape has no order
	hidden := hiddenFields(text)
	var fields []Field
	for name, p := range s.Properties {
		field := fieldOf(name, p)
		field.Hidden = hidden[name]
		field.Required = slices.Contains(s.Required, name)
		field.order = math.Inf(1)
		if order := own.Properties[name].Order; order != nil {
			field.order = *order
		}
		fields = append(fields, field)
	}
	slices.SortFunc(fields, func(a, b Field) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Name, b.Name)) })
	return fields
}

func fieldOf(name string, s *jsonschema.Schema) Field {
	for s.Ref != nil {
		s = s.Ref
	}
	f := Field{Name: name, Title: cmp.Or(s.Title, name), Description: s.Description}
	if s.Types != nil {
		if types := s.Types.ToStrings(); len(types) == 1 {
			f.Type = types[0]
		}
	}
	if s.Format != nil {
		f.Format = s.Format.Name
	}
	if s.Default != nil {
		f.Default = *s.Default
	}
	if s.MaxLength != nil {
		f.MaxLength = *s.MaxLength
	}
	if s.Enum != nil {
		for _, value := range s.Enum.Values {
			f.Enum = append(f.Enum, text(value))
		}
	}
	return f
}

// text is a value as people write it on a command line.
func text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(b)
}

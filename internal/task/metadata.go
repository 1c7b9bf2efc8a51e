package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/task/datatype"
)

// maxMetadata is how long a metadata file may be, in bytes.
const maxMetadata = 1 << 20

// Metadata is what a task says of itself.
type Metadata struct {
	Description  string `json:"description,omitempty"`
	Private      bool   `json:"private,omitempty"` // not listed; may be run by name
	SupportsNoop bool   `json:"supports_noop,omitempty"`
	Remote       bool   `json:"remote,omitempty"`       // runs on a proxy, for a target that cannot
	InputMethod  string `json:"input_method,omitempty"` // stdin, environment, both, powershell; empty: by the file's name

	// Parameters is nil when the task takes whatever it is given.
	Parameters      map[string]Parameter `json:"parameters,omitempty"`
	Implementations []Implementation     `json:"implementations,omitempty"`
	Files           []string             `json:"files,omitempty"`
	Extensions      json.RawMessage      `json:"extensions,omitempty"` // of other tools, untouched
}

// Parameter is one parameter of a task.
type Parameter struct {
	Description string          `json:"description,omitempty"`
	Type        string          `json:"type,omitempty"`    // a data type; empty: Any
	Default     json.RawMessage `json:"default,omitempty"` // nil: there is none
	Sensitive   bool            `json:"sensitive,omitempty"`

	kind *datatype.Type
}

// Required says whether a value must be given. Aliases count as required: what
// they stand for is only known with the version.
func (p Parameter) Required() bool { return p.Default == nil && !p.kind.Optional(nil) }

// Secret says whether the value must not be shown.
func (p Parameter) Secret() bool { return p.Sensitive || p.kind.Sensitive() }

// Implementation is one executable among several, with what the node must have.
type Implementation struct {
	Name         string   `json:"name"`
	Requirements []string `json:"requirements,omitempty"`
	Files        []string `json:"files,omitempty"`
	InputMethod  string   `json:"input_method,omitempty"`
}

// ParseMetadata reads a metadata file; an empty one says nothing. Keys that are not
// known are passed over, as Puppet does.
func ParseMetadata(source []byte) (Metadata, error) {
	if len(source) > maxMetadata {
		return Metadata{}, fault.New(fault.Invalid, "task metadata has at most %d bytes, this has %d", maxMetadata, len(source))
	}
	var m Metadata
	if len(bytes.TrimSpace(source)) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(source, &m); err != nil {
		return m, fault.New(fault.Invalid, "task metadata is not as expected: %s", reason(err))
	}
	if err := m.checkMethods(); err != nil {
		return m, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Parameters)) {
		p := m.Parameters[name]
		if err := p.read(name); err != nil {
			return m, err
		}
		m.Parameters[name] = p
	}
	return m, nil
}

// reason says what is wrong with JSON in words of the file, not of Go.
func reason(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err.Error()
	case wrong.Field == "":
		return "it must be an object, not a " + wrong.Value
	default:
		return "the field " + wrong.Field + " must not be a " + wrong.Value
	}
}

var inputMethods = []string{"", "stdin", "environment", "both", "powershell"}

func (m *Metadata) checkMethods() error {
	if !slices.Contains(inputMethods, m.InputMethod) {
		return fault.New(fault.Invalid, "input_method is stdin, environment, both or powershell, not %.40q", m.InputMethod)
	}
	for i, implementation := range m.Implementations {
		switch {
		case implementation.Name == "":
			return fault.New(fault.Invalid, "implementations[%d] has no name", i)
		case !slices.Contains(inputMethods, implementation.InputMethod):
			return fault.New(fault.Invalid, "implementations[%d]: input_method is stdin, environment, both or powershell, not %.40q", i, implementation.InputMethod)
		}
	}
	return nil
}

// read completes a parameter after it was decoded.
func (p *Parameter) read(name string) error {
	if !isName(name) {
		return fault.New(fault.Invalid, "the parameter %.80q: names start with a lower-case letter and have only those, digits and underscores", name)
	}
	text := p.Type
	if text == "" {
		text = "Any"
	}
	kind, err := datatype.Parse(text)
	if err != nil {
		return fault.New(fault.Invalid, "the type %.200q of the parameter %s is wrong %s", text, name, err)
	}
	p.kind = kind
	return nil
}

// isName is Puppet's rule for names of tasks and their parameters.
func isName(name string) bool {
	if name == "" || len(name) > 200 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

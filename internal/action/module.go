package action

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// The bounds of a description.
const (
	MaxMetadataBytes = 1 << 20
	MaxActions       = 200
	MaxTimeout       = 24 * time.Hour
)

// Module is what a module says of itself.
type Module struct {
	Name          string         `json:"name"`
	Description   string         `json:"description"`
	Version       string         `json:"version,omitzero"`
	Author        string         `json:"author,omitzero"`
	License       string         `json:"license,omitzero"`
	URL           string         `json:"url,omitzero"`
	Provider      Provider       `json:"provider,omitzero"`
	Configuration jsontext.Value `json:"configuration,omitzero"` // schema of the module's configuration file
	Actions       []Action       `json:"actions"`                // by name
}

// Provider says what answers for a module.
type Provider string

// The providers.
const (
	BuiltIn  Provider = "built-in" // the agent itself
	External Provider = "external" // an executable, as pxp-agent runs it
	Choria   Provider = "choria"   // an executable, as Choria runs it
	FromCode Provider = "code"     // an executable that the code of the node's environment supplies
)

// Action is one thing that a module does.
type Action struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	ReadOnly    bool           `json:"read_only,omitzero"` // it changes nothing on the node
	Display     Display        `json:"display,omitzero"`   // which answers people see; empty: Failed
	Timeout     Seconds        `json:"timeout,omitzero"`   // how long it may run; 0: DefaultTimeout if it is built in, else as long as any order
	Input       jsontext.Value `json:"input"`              // schema
	Results     jsontext.Value `json:"results"`            // schema
	Aggregates  []Aggregate    `json:"aggregates,omitzero"`
}

// Display says which answers people see.
type Display string

// The rules.
const (
	OK     Display = "ok"     // of nodes that did it
	Failed Display = "failed" // of the others
	Always Display = "always"
)

// Seconds is a duration in a description.
type Seconds float64

// DefaultTimeout is how long an action may run that does not say it.
const DefaultTimeout Seconds = 60

// Duration is the same as Go has it.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// Limit is how long an action may run.
func (a Action) Limit() time.Duration { return cmp.Or(a.Timeout, DefaultTimeout).Duration() }

// CheckInput holds an input to what the action takes. It compiles the schema each time: whoever is idle keeps none.
func (a Action) CheckInput(input jsontext.Value) error {
	schema, err := Compile(a.Input)
	if err != nil {
		return err
	}
	return schema.Check(input)
}

// Shown is the display rule that counts.
func (a Action) Shown() Display { return cmp.Or(a.Display, Failed) }

// Find is an action by its name.
func (m Module) Find(name string) (Action, bool) {
	i, found := slices.BinarySearchFunc(m.Actions, name, func(a Action, name string) int { return cmp.Compare(a.Name, name) })
	if !found {
		return Action{}, false
	}
	return m.Actions[i], true
}

// Text is the description in its one stored form: equal modules have equal texts.
func (m Module) Text() []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // schemas were checked to be JSON
	}
	value := jsontext.Value(text)
	if err := value.Canonicalize(); err != nil {
		panic(err)
	}
	return value
}

// Digest names the description.
func (m Module) Digest() fleet.Digest {
	sum := sha256.Sum256(m.Text())
	return fleet.Digest(hex.EncodeToString(sum[:]))
}

// Parse reads and checks the description of the module of a name, as Text or as an external module of pxp-agent gives it. A name inside
// the text must be the same.
func Parse(name string, text []byte) (Module, error) {
	m, err := Decode(name, text)
	if err != nil {
		return m, err
	}
	return m, m.check()
}

// Decode reads a description that was checked before: its schemas are not looked at.
func Decode(name string, text []byte) (Module, error) {
	if len(text) > MaxMetadataBytes {
		return Module{}, fault.New(fault.Invalid, "its metadata has more than %d bytes", MaxMetadataBytes)
	}
	var m struct {
		Module
		Description *string `json:"description"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(text), &m); err != nil {
		return Module{}, fault.Wrap(fault.Invalid, err, "its metadata is not JSON of the right shape: %v", err)
	}
	if m.Description == nil {
		return Module{}, fault.New(fault.Invalid, "its metadata has no description")
	}
	m.Module.Description = *m.Description
	if m.Name == "" {
		m.Name = name
	}
	if m.Name != name {
		return Module{}, fault.New(fault.Invalid, "its metadata is that of a module %.80q, not of %.80q", m.Name, name)
	}
	slices.SortFunc(m.Actions, func(a, b Action) int { return cmp.Compare(a.Name, b.Name) })
	return m.Module, nil
}

var nameForm = regexp.MustCompile(`\A[A-Za-z0-9_][A-Za-z0-9_.-]*\z`)

// CheckName holds the name of a module or an action to what is allowed.
func CheckName(field, name string) error {
	if len(name) > pxp.MaxNameBytes || !nameForm.MatchString(name) {
		return fault.New(fault.Invalid, "field %s: %.80q is no name: 1 to %d letters, digits, _, - and ., not - or . first", field, name, pxp.MaxNameBytes)
	}
	return nil
}

func (m Module) check() error {
	if err := CheckName("name", m.Name); err != nil {
		return err
	}
	switch {
	case len(m.Actions) == 0:
		return fault.New(fault.Invalid, "its metadata has no actions")
	case len(m.Actions) > MaxActions:
		return fault.New(fault.Invalid, "its metadata has %d actions, at most %d are allowed", len(m.Actions), MaxActions)
	}
	if m.Configuration != nil {
		if _, err := Compile(m.Configuration); err != nil {
			return fault.Wrap(fault.Invalid, err, "its schema for its configuration: %s", fault.Detail(err))
		}
	}
	for i, a := range m.Actions {
		if i > 0 && m.Actions[i-1].Name == a.Name {
			return fault.New(fault.Invalid, "its metadata has the action %s twice", a.Name)
		}
		if err := a.check(); err != nil {
			return err
		}
	}
	return nil
}

func (a Action) check() error {
	if err := CheckName("actions: name", a.Name); err != nil {
		return err
	}
	if a.Timeout < 0 || a.Timeout > Seconds(MaxTimeout.Seconds()) {
		return fault.New(fault.Invalid, "its metadata gives the action %s a timeout that is not 0 to %g seconds", a.Name, MaxTimeout.Seconds())
	}
	if !slices.Contains([]Display{"", OK, Failed, Always}, a.Display) {
		return fault.New(fault.Invalid, "its metadata shows answers of the action %s by %.40q; the rules are ok, failed and always", a.Name, a.Display)
	}
	if a.Input.Kind() != '{' || a.Results.Kind() != '{' {
		return fault.New(fault.Invalid, "its metadata gives no schema for input and results of the action %s", a.Name)
	}
	if _, err := Compile(a.Input); err != nil {
		return fault.Wrap(fault.Invalid, err, "its schema for the input of %s: %s", a.Name, fault.Detail(err))
	}
	results, err := Compile(a.Results)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "its schema for the results of %s: %s", a.Name, fault.Detail(err))
	}
	for _, aggregate := range a.Aggregates {
		if err := aggregate.check(results); err != nil {
			return fault.Wrap(fault.Invalid, err, "its metadata sums up answers of %s: %s", a.Name, fault.Detail(err))
		}
	}
	return nil
}

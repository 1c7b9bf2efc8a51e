package classify

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
)

// ExternalName is what the answer of an external node classifier is called where
// groups have names.
const ExternalName = "external node classifier"

// External makes the answer of an external node classifier a root that gives what
// it says. The answer is a JSON object with classes (a list of names, or an object
// of names to parameters), parameters (top-scope variables) and environment; other
// fields are passed over, as Puppet does. Names of variables are Puppet's business.
func External(answer json.RawMessage) (Group, error) {
	var said struct {
		Environment string          `json:"environment"`
		Classes     json.RawMessage `json:"classes"`
		Parameters  Values          `json:"parameters"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return Group{}, fault.New(fault.Invalid, "an object with classes, parameters and environment is expected: %v", err)
	}
	if said.Environment == "" && said.Classes == nil && said.Parameters == nil {
		return Group{}, fault.New(fault.Invalid, "it knows no such node: classes, parameters or environment are expected")
	}
	g := NewRoot()
	g.Name, g.Environment = ExternalName, said.Environment
	if err := g.checkEnvironment(); err != nil {
		return Group{}, err
	}
	classes, err := externalClasses(said.Classes)
	if err != nil {
		return Group{}, err
	}
	if g.Classes, err = g.checkedClasses("classes", classes, true); err != nil {
		return Group{}, err
	}
	g.Variables = Values{}
	for _, name := range slices.Sorted(maps.Keys(said.Parameters)) {
		if slices.Contains(reserved, name) {
			return Group{}, g.bad("parameters", "$%s is Puppet's own", name)
		}
		g.Variables[name] = said.Parameters[name]
	}
	return g, nil
}

// externalClasses reads both forms.
func externalClasses(text json.RawMessage) (Classes, error) {
	var names []string
	if json.Unmarshal(text, &names) == nil {
		classes := Classes{}
		for _, name := range names {
			classes[name] = nil
		}
		return classes, nil
	}
	var classes Classes
	if len(text) == 0 {
		return classes, nil
	}
	if err := json.Unmarshal(text, &classes); err != nil {
		return nil, fault.New(fault.Invalid, "classes: a list of names, or names with parameters, is expected: %v", err)
	}
	return classes, nil
}

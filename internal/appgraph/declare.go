package appgraph

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Component is a part of an application on a node.
type Component struct {
	Environment fleet.Environment
	Application Ref
	Name        Ref
	Node        fleet.Certname
	Produces    []Ref // sorted, each once
	Consumes    []Ref // the same
}

// described is what a catalog says of a whole application.
type described struct {
	environment fleet.Environment
	name        Ref
	node        fleet.Certname
	description string
	parameters  json.RawMessage
	components  []Ref // that there should be
}

// Problem is something wrong with what catalogs declare.
type Problem struct {
	Environment fleet.Environment
	Application Ref            // empty: nobody knows of which
	Node        fleet.Certname // empty: of none in particular
	Text        string
}

// read makes components and descriptions of what catalogs declare. What cannot be read is a problem.
func read(declared []Declared) (components []Component, apps []described, problems []Problem) {
	for _, d := range declared {
		var err error
		if d.Type == ComponentType {
			var c Component
			if c, err = d.component(); err == nil {
				components = append(components, c)
			}
		} else {
			var a described
			if a, err = d.application(); err == nil {
				apps = append(apps, a)
			}
		}
		if err != nil {
			problems = append(problems, Problem{
				Environment: d.Environment, Node: d.Node, Text: fmt.Sprintf("%s[%.200s] on %s: %s", d.Type, d.Title, d.Node, fault.Detail(err)),
			})
		}
	}
	return components, apps, problems
}

func (d Declared) component() (c Component, err error) {
	var given struct {
		Application string `json:"application"`
		Produces    refs   `json:"produces"`
		Consumes    refs   `json:"consumes"`
	}
	if err := json.Unmarshal(d.Parameters, &given); err != nil {
		return c, fault.Wrap(fault.Invalid, err, "its parameters cannot be read: %s", reason(err))
	}
	c = Component{Environment: d.Environment, Node: d.Node, Produces: given.Produces, Consumes: given.Consumes}
	if c.Name, err = ParseRef(d.Title); err == nil {
		c.Application, err = ParseRef(given.Application)
	}
	return c, err
}

func (d Declared) application() (a described, err error) {
	var given struct {
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Components  refs            `json:"components"`
	}
	if err := json.Unmarshal(d.Parameters, &given); err != nil {
		return a, fault.Wrap(fault.Invalid, err, "its parameters cannot be read: %s", reason(err))
	}
	a = described{
		environment: d.Environment, node: d.Node, description: given.Description, parameters: given.Parameters, components: given.Components,
	}
	a.name, err = ParseRef(d.Title)
	return a, err
}

// reason is what is wrong with parameters, for people.
func reason(err error) string {
	if detail := fault.Detail(err); detail != "" {
		return detail
	}
	return "one of them has another type than the module's"
}

// refs is one reference, or a list of them.
type refs []Ref

// UnmarshalJSON implements json.Unmarshaler.
func (r *refs) UnmarshalJSON(text []byte) error {
	var list []string
	var one string
	if json.Unmarshal(text, &one) == nil && string(text) != "null" {
		list = []string{one}
	} else if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*r = nil
	for _, name := range list {
		ref, err := ParseRef(name)
		if err != nil {
			return err
		}
		*r = append(*r, ref)
	}
	slices.SortFunc(*r, Ref.Compare)
	*r = slices.Compact(*r)
	return nil
}

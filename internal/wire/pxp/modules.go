package pxp

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// Modules and its actions are Tutti's own: a server asks which modules a node has, and what one of them can do; with Changed it says that the
// node's code may supply others. They are blocking requests.
const (
	Modules  = "modules"
	List     = "list"
	Describe = "describe"
)

// AgentTold is the data of the message with which an agent says what it is, as soon as it is connected.
type AgentTold struct {
	Modules string `json:"modules"` // digest of the set of modules that it has
	Version string `json:"version"` // of the agent
	OS      string `json:"os"`      // as Go calls it
	Arch    string `json:"arch"`
	Begun   bool   `json:"begun,omitzero"` // its process began, and no server was told of that yet
}

// ListResults are the results of modules list.
type ListResults struct {
	Modules jsontext.Value `json:"modules"` // a set of package action
}

// DescribeParams are the parameters of modules describe.
type DescribeParams struct {
	Name string `json:"name"`
}

// DescribeResults are the results of modules describe.
type DescribeResults struct {
	Metadata jsontext.Value `json:"metadata"` // as package action has it
}

// ParseAgentTold reads the data of a message in which an agent says what it is.
func ParseAgentTold(data jsontext.Value) (AgentTold, error) {
	var t AgentTold
	if err := parse(data, &t); err != nil {
		return t, err
	}
	if !sha256Form.MatchString(t.Modules) {
		return t, fault.New(fault.Invalid, "field modules: it must be 64 hexadecimal digits in lower case")
	}
	for field, text := range map[string]string{"version": t.Version, "os": t.OS, "arch": t.Arch} {
		if text == "" {
			return t, missing(field, "a text")
		}
		if err := plain(field, text); err != nil {
			return t, err
		}
	}
	return t, nil
}

// plain refuses what cannot be shown in a line.
func plain(field, text string) error {
	if len(text) > maxWordBytes {
		return fault.New(fault.Invalid, "field %s: it has %d bytes, at most %d are allowed", field, len(text), maxWordBytes)
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == 0xFFFD {
			return fault.New(fault.Invalid, "field %s: it holds a control character", field)
		}
	}
	return nil
}

// maxWordBytes bounds versions and the names of platforms.
const maxWordBytes = 100

// ParseList reads the parameters of modules list, and of modules changed; there are none.
func ParseList(params jsontext.Value) (struct{}, error) {
	var p struct{}
	return p, parse(params, &p)
}

// ParseDescribe reads the parameters of modules describe.
func ParseDescribe(params jsontext.Value) (DescribeParams, error) {
	var p DescribeParams
	if err := parse(params, &p); err != nil {
		return p, err
	}
	if p.Name == "" {
		return p, missing("name", "the name of a module")
	}
	return p, bounded("name", p.Name, MaxNameBytes)
}

// ParseListResults reads the results of modules list.
func ParseListResults(results jsontext.Value) (ListResults, error) {
	var r ListResults
	if err := parse(results, &r); err != nil {
		return r, err
	}
	if r.Modules.Kind() != '[' {
		return r, missing("modules", "a list")
	}
	return r, nil
}

// ParseDescribeResults reads the results of modules describe.
func ParseDescribeResults(results jsontext.Value) (DescribeResults, error) {
	var r DescribeResults
	if err := parse(results, &r); err != nil {
		return r, err
	}
	if r.Metadata.Kind() != '{' {
		return r, missing("metadata", "an object")
	}
	return r, nil
}

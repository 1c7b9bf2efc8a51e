package resource

import (
	"context"
	_ "embed"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

var (
	//go:embed metadata.json
	metadata []byte
	//go:embed puppetral.json
	puppetral []byte
)

// The bounds of a list.
const (
	MaxRows  = 5000
	MaxBytes = 4 << 20
)

// Config says where Puppet is, and what the owner of the node lets be changed.
type Config struct {
	Puppet   func() (string, error) // finds its executable
	Dir      string                 // of the agent's own, where the application for Puppet is put
	NSSwitch string                 // says whom the machine asks for users and groups; empty: /etc/nsswitch.conf

	TypesAllowed []string // for apply; with neither of these two nothing is allowed
	TypesDenied  []string
	NamesAllowed []string // type[name]; for a type that is among them only these names
	NamesDenied  []string
	AllowManaged bool // also resources that Puppet manages
}

// Check is an Invalid fault if the settings contradict each other.
func (c Config) Check() error {
	if len(c.TypesAllowed) > 0 && len(c.TypesDenied) > 0 {
		return fault.New(fault.Invalid, "settings resource_types_allowed and resource_types_denied: only one of them may be set")
	}
	for _, list := range [][]string{c.NamesAllowed, c.NamesDenied} {
		for _, entry := range list {
			if _, _, ok := cutName(entry); !ok {
				return fault.New(fault.Invalid, "settings resource_names_allowed and resource_names_denied: %.80q is not of the form type[name]", entry)
			}
		}
	}
	for _, entry := range c.NamesAllowed {
		if kind, _, _ := cutName(entry); namesOf(c.NamesDenied, kind) != nil {
			return fault.New(fault.Invalid, "settings resource_names_allowed and resource_names_denied: only one of them may name resources of the type %s", kind)
		}
	}
	return nil
}

// cutName takes type[name] apart.
func cutName(entry string) (kind, name string, ok bool) {
	kind, rest, opened := strings.Cut(entry, "[")
	name, closed := strings.CutSuffix(rest, "]")
	return strings.ToLower(kind), name, opened && closed && kind != "" && name != ""
}

// namesOf are the names of a type in a list; nil: there are none.
func namesOf(list []string, kind string) []string {
	var names []string
	for _, entry := range list {
		if of, name, _ := cutName(entry); of == kind {
			names = append(names, name)
		}
	}
	return names
}

// Module is the module resource.
func Module(c Config) builtin.Module {
	r := newReader(c)
	return builtin.Module{
		Name: "resource", Metadata: metadata,
		Calls:    map[string]builtin.Call{"find": builtin.Typed(r.find), "list": builtin.Typed(r.list)},
		Programs: map[string]orders.Action{"apply": Apply(c)},
	}
}

// Puppetral is the module puppetral.
func Puppetral(c Config) builtin.Module {
	r := newReader(c)
	return builtin.Module{Name: "puppetral", Metadata: puppetral, Calls: map[string]builtin.Call{"find": builtin.Typed(r.find), "search": builtin.Typed(r.list)}}
}

// request is what the application is asked.
type request struct {
	Do         string                    `json:"do"`
	Type       string                    `json:"type"`
	Title      string                    `json:"title,omitzero"`
	Rows       int                       `json:"rows,omitzero"`
	Bytes      int                       `json:"bytes,omitzero"`
	Parameters map[string]jsontext.Value `json:"parameters,omitzero"`
	Managed    bool                      `json:"managed,omitzero"` // it may be one that Puppet manages
	Allowed    []string                  `json:"allowed,omitempty"`
	Denied     []string                  `json:"denied,omitempty"`
}

type findInput struct {
	Type  string `json:"type"`
	Title string `json:"title"`
}

func (r reader) find(ctx context.Context, in findInput) (any, error) {
	return r.ask(ctx, request{Do: "find", Type: strings.ToLower(in.Type), Title: in.Title})
}

type listInput struct {
	Type      string `json:"type"`
	Expensive bool   `json:"expensive"`
}

func (r reader) list(ctx context.Context, in listInput) (any, error) {
	kind := strings.ToLower(in.Type)
	if why := r.costs(kind); why != "" && !in.Expensive {
		return nil, builtin.Abort("resources of the type %s are not listed: %s; give expensive=true to list them all the same, or find one by its title", kind, why)
	}
	return r.ask(ctx, request{Do: "list", Type: kind, Rows: MaxRows, Bytes: MaxBytes})
}

// Apply is the action that makes one resource as it is given.
func Apply(c Config) orders.Action {
	return orders.Action{
		Prepare: func(_ context.Context, o orders.Order) (orders.Command, error) { return c.apply(o) },
		Results: results,
	}
}

func (c Config) apply(o orders.Order) (orders.Command, error) {
	q, err := c.application(o.Params)
	if err != nil {
		return orders.Command{}, err
	}
	if err := c.permit(q.Type); err != nil {
		return orders.Command{}, err
	}
	return c.command(q)
}

// application is the request for an input: type and name, and parameters beside them.
func (c Config) application(input jsontext.Value) (request, error) {
	var in struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	q := request{Do: "apply", Managed: c.AllowManaged, Parameters: map[string]jsontext.Value{}}
	err := json.Unmarshal(input, &in)
	if err == nil {
		err = json.Unmarshal(input, &q.Parameters)
	}
	if err != nil {
		return q, fault.Wrap(fault.Invalid, err, "the input is not what the action takes")
	}
	delete(q.Parameters, "type")
	delete(q.Parameters, "name")
	q.Type, q.Title = strings.ToLower(in.Type), in.Name
	q.Allowed, q.Denied = namesOf(c.NamesAllowed, q.Type), namesOf(c.NamesDenied, q.Type)
	return q, nil
}

// permit is a Denied fault for a type that the owner of the node does not let be changed.
func (c Config) permit(kind string) error {
	has := func(list []string) bool {
		for _, entry := range list {
			if strings.EqualFold(entry, kind) {
				return true
			}
		}
		return false
	}
	switch {
	case len(c.TypesAllowed) == 0 && len(c.TypesDenied) == 0:
		return builtin.Abort("the owner of this node does not allow resources to be changed; resource_types_allowed in agent.yaml names types that may be")
	case len(c.TypesAllowed) > 0 && !has(c.TypesAllowed), has(c.TypesDenied):
		return builtin.Abort("the owner of this node does not allow resources of the type %s to be changed", kind)
	}
	return nil
}

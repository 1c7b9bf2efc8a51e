package orders

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Policy is what the owner of a node allows. It can only narrow: who is let through
// to a node is the broker's rules. A list that is absent allows everything, an empty one nothing; extra_actions
// allows nothing when it is absent.
type Policy struct {
	// Requesters may order: PCP URIs, in which * may replace either part. Brokers are pcp:///server.
	Requesters []string `yaml:"requesters"`
	// Actions may be ordered: "module action", or "module" for all its actions.
	Actions []string `yaml:"actions"`
	// Extra are actions that are off unless they are named here, as in Actions: see Action.Off.
	Extra []string `yaml:"extra_actions"`
	// Tasks may be run: names, in which * stands for any text without slashes.
	Tasks []string `yaml:"tasks"`
	// Rules narrow further; nil: there are none.
	Rules Rules `yaml:"-"`

	path string
}

// Rules say who may ask for which action of a module on this node as it is now. It may be called concurrently.
type Rules interface {
	// Allow says whether a caller may; if not, why is a part of a sentence that says which rule is against it.
	Allow(caller, module, action string) (allowed bool, why string)
}

// ParsePolicy reads a policy file in YAML; path is named where the policy refuses.
// Its error is of kind Invalid.
func ParsePolicy(path string, text []byte) (Policy, error) {
	p := Policy{path: path}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return p, fault.New(fault.Invalid, "policy %s: %v", path, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return p, fault.New(fault.Invalid, "policy %s: it must be one document", path)
	}
	return p, p.check()
}

func (p Policy) check() error {
	for _, uri := range p.Requesters {
		if _, err := wire.ParseURI(uri); err != nil {
			return fault.New(fault.Invalid, "policy %s: requesters: %s", p.path, fault.Detail(err))
		}
	}
	for _, pattern := range p.Tasks {
		if _, err := path.Match(pattern, ""); err != nil {
			return fault.New(fault.Invalid, "policy %s: tasks: %.200q is no pattern", p.path, pattern)
		}
	}
	return nil
}

// Allow returns a Denied fault if o may not be carried out; subject is what it is about, a task's name.
// Ping, status queries and questions for the node's modules are always answered to those who may ask anything.
func (p Policy) Allow(o Order, subject string) error {
	switch {
	case p.Requesters != nil && !slices.ContainsFunc(p.Requesters, func(r string) bool { return wire.URI(r).Matches(o.Requester) }):
		return p.refuse("%s may order nothing here", o.Requester)
	case o.Module == pxp.Ping || o.Module == pxp.Status || o.Module == pxp.Modules:
		return nil
	case p.Actions != nil && !names(p.Actions, o):
		return p.refuse("%s %s is not among its actions", o.Module, o.Action)
	case o.Module == pxp.Task && p.Tasks != nil && !slices.ContainsFunc(p.Tasks, func(t string) bool { ok, _ := path.Match(t, subject); return ok }):
		return p.refuse("task %s is not among its tasks", subject)
	}
	if p.Rules == nil {
		return nil
	}
	if allowed, why := p.Rules.Allow(cmp.Or(o.Caller, string(o.Requester)), o.Module, o.Action); !allowed {
		return fault.New(fault.Denied, "%s: %s", pxp.Refused, why)
	}
	return nil
}

// names says whether a list of actions has the one that is ordered.
func names(actions []string, o Order) bool {
	return slices.Contains(actions, o.Module) || slices.Contains(actions, o.Module+" "+o.Action)
}

// allowOff is Allow for an action that is off.
func (p Policy) allowOff(o Order) error {
	if names(p.Extra, o) {
		return nil
	}
	return p.refuse("%s %s is off; the node's owner allows it with extra_actions in the agent's policy.yaml", o.Module, o.Action)
}

func (p Policy) refuse(format string, args ...any) error {
	where := ""
	if p.path != "" {
		where = " (" + p.path + ")"
	}
	return fault.New(fault.Denied, "%s%s: %s", pxp.Refused, where, fmt.Sprintf(format, args...))
}

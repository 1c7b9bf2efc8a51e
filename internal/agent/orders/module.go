package orders

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Module is actions under a name.
type Module struct {
	Name        string
	Description *action.Module // what it tells others of itself; nil: what this package says of its own, or nothing
	Actions     map[string]Action
}

// modules are those of a node, by name.
type modules struct {
	mu     sync.RWMutex
	now    map[string]Module
	former map[string]Module // that it has no more: what was begun with them ends with them
}

// replace puts others in the place of those that there are.
func (b *modules) replace(all map[string]Module) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.former == nil {
		b.former = map[string]Module{}
	}
	maps.Copy(b.former, b.now)
	for name := range all {
		delete(b.former, name)
	}
	b.now = all
}

// all are those that the node has now, by name.
func (b *modules) all() []Module {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]Module, 0, len(b.now))
	for _, name := range slices.Sorted(maps.Keys(b.now)) {
		list = append(list, b.now[name])
	}
	return list
}

// get is the module of a name, now.
func (b *modules) get(name string) (Module, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	m, there := b.now[name]
	return m, there
}

// known is the module of a name, now or formerly.
func (b *modules) known(name string) (Module, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	m, there := b.now[name]
	if !there {
		m, there = b.former[name]
	}
	return m, there
}

// of is the action of a kept transaction; the zero Action if it is not there any more.
func (b *modules) of(r Record) Action {
	m, _ := b.known(r.Module)
	return m.Actions[r.Action]
}

// has says whether a transaction of a module can still be told of.
func (b *modules) has(name string) bool {
	_, there := b.known(name)
	return there
}

// find is the action that an order asks for, or why there is none in the original's words.
func (b *modules) find(o Order) (a Action, err error) {
	m, ok := b.get(o.Module)
	if !ok {
		return a, fault.New(fault.NotFound, "%s: %s", pxp.UnknownModule, o.Module)
	}
	if a, ok = m.Actions[o.Action]; !ok {
		return a, fault.New(fault.NotFound, "%s '%s' for module '%s'", pxp.UnknownAction, o.Action, o.Module)
	}
	return a, nil
}

// Action is one thing that an agent can be asked to do. Exactly one of Answer, Read,
// Prepare and Do is there, but Read may be beside Prepare: then only blocking requests are read. Only actions with Answer are blocking only.
type Action struct {
	Lane    Lane
	Timeout time.Duration // how long it may take once it has its turn; 0: as long as any order
	Off     bool          // refused unless the node's policy names it among its extra_actions
	// Check says what is wrong with parameters, which are an object.
	Check func(params jsontext.Value) error
	// Subject names what the action is about, for policy and audit log: a task's name.
	Subject func(params jsontext.Value) string

	// Answer gives the results at once.
	Answer func(Order) (jsontext.Value, error)
	// Read gives the results of what changes nothing. Asked for in a blocking request, nothing is kept of it.
	Read func(context.Context, Order) (jsontext.Value, error)
	// Prepare gets what a program needs, and returns the program.
	Prepare func(context.Context, Order) (Command, error)
	// Do does the work inside the agent.
	Do func(context.Context, Order) (Output, error)

	// Results makes results of what a program left; nil: a pxp.Outcome. An error's
	// text is what the requester is told after "The task executed for ... ".
	Results func(Output) (jsontext.Value, error)
	// Ended is told once what a program left, for the node's own log; nil: nobody wants to know.
	Ended func(context.Context, Output)
}

// limit is how long the action may take.
func (a Action) limit(most time.Duration) time.Duration {
	if a.Timeout > 0 {
		return min(a.Timeout, most)
	}
	return most
}

// Order is a request, checked as far as one can without its module.
type Order struct {
	Transaction string
	Blocking    bool
	Notify      bool
	Requester   wire.URI
	Caller      string // who the requester asks for; empty: it does not say
	Message     string // the request's ID
	Module      string
	Action      string
	Params      jsontext.Value // an object
	Place       string         // where its files go; only for Prepare and Do
}

// mode is how requests are called in messages for people.
func (o Order) mode() string {
	if o.Blocking {
		return "blocking"
	}
	return "non blocking"
}

// label names the request as the original does.
func (o Order) label() string {
	return o.mode() + " '" + o.Module + " " + o.Action + "' request (transaction " + o.Transaction + ")"
}

// Lane is which queue an action waits in.
type Lane uint8

// The lanes.
const (
	General   Lane = iota // as many at a time as the agent allows
	PuppetRun             // one at a time
	lanes
)

// nothing is the results of an action that has none to give.
var nothing = jsontext.Value("null")

// outcome is the results of actions that run a program of somebody's own, which writes what it likes: what is no text becomes U+FFFD.
func outcome(o Output) (jsontext.Value, error) {
	return pxp.Data(pxp.Outcome{ExitCode: *o.Exit, Stdout: readable(o.Stdout), Stderr: readable(o.Stderr), Ended: o.Ended}), nil
}

package orders

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// metadata are the descriptions of the modules of this package.
//
//go:embed metadata/*.json
var metadata embed.FS

// ownMetadata are read when somebody wants to know them: an agent that nobody asks reads none.
var ownMetadata = sync.OnceValue(func() map[string]*described {
	files, err := metadata.ReadDir("metadata")
	own := map[string]*described{}
	for _, file := range files {
		var text []byte
		text, err = metadata.ReadFile("metadata/" + file.Name())
		name := file.Name()[:len(file.Name())-len(".json")]
		m, wrong := action.Decode(name, text)
		if err = cmp.Or(err, wrong); err != nil {
			break
		}
		m.Provider = action.BuiltIn
		own[name] = &described{m, action.ListedOf(m)}
	}
	if err != nil {
		panic(fmt.Sprintf("the metadata of the agent's own modules: %v", err)) // a test reads all
	}
	return own
})

// described is a description and what is listed of it.
type described struct {
	action.Module
	listed action.Listed
}

// describedOf is what a module says of itself; nil: nothing.
func describedOf(m Module) *described {
	if m.Description != nil {
		return &described{*m.Description, action.ListedOf(*m.Description)}
	}
	return ownMetadata()[m.Name]
}

// shadowed is a module whose name another one has already.
func shadowed(by Module, m action.Module) action.Listed {
	provider := action.BuiltIn
	if by.Description != nil {
		provider = by.Description.Provider
	}
	return action.Listed{
		Name: m.Name, Version: m.Version, Provider: m.Provider,
		Problem: fmt.Sprintf("the node has a module of this name already (%s), and that one is used", provider),
	}
}

// join adds modules to others. Of two with one name the first counts; the other is told as a problem if it has a description.
func join(to map[string]Module, more []Module, problems []action.Listed) (map[string]Module, []action.Listed) {
	all, problems := maps.Clone(to), slices.Clone(problems)
	if all == nil {
		all = map[string]Module{}
	}
	for _, m := range more {
		first, there := all[m.Name]
		if !there {
			all[m.Name] = m
		} else if m.Description != nil {
			problems = append(problems, shadowed(first, *m.Description))
		}
	}
	return all, problems
}

// Supply replaces the modules that the node has beside those of Config: those that code supplies. Problems are those that cannot be used. What runs
// goes on; of a module that is gone nothing new is begun.
func (e *Engine) Supply(supplied []Module, problems []action.Listed) {
	all, cannot := join(e.own, supplied, append(slices.Clone(e.ownSet), problems...))
	e.telling.Lock()
	defer e.telling.Unlock()
	e.modules.replace(all)
	e.cannot, e.set = cannot, ""
}

// Set is what this node tells of its modules: those that it has, and those that cannot be used.
func (e *Engine) Set() action.Set {
	e.telling.Lock()
	defer e.telling.Unlock()
	return e.list()
}

// list is Set. The caller holds the lock.
func (e *Engine) list() action.Set {
	var found []action.Listed
	for _, m := range e.modules.all() {
		if d := describedOf(m); d != nil {
			found = append(found, d.listed)
		}
	}
	return action.NewSet(append(found, e.cannot...))
}

// Modules are those that the node has now, by name.
func (e *Engine) Modules() []Module { return e.modules.all() }

// Introduction is the message that says over a new connection what this agent is, and which modules it has: the digest of Set, not the set,
// of which the server has mostly heard. Only Tutti's own servers know it.
func (e *Engine) Introduction(told pxp.AgentTold) wire.Message {
	e.telling.Lock()
	if e.set == "" {
		e.set = string(e.list().Digest())
	}
	told.Modules = e.set
	e.telling.Unlock()
	return e.answers.message(wire.Broker, wire.AgentTold, pxp.Data(told))
}

// listModules answers modules list.
func (e *Engine) listModules(Order) (jsontext.Value, error) {
	return pxp.Data(pxp.ListResults{Modules: pxp.Data(e.Set())}), nil
}

// describeModule answers modules describe.
func (e *Engine) describeModule(o Order) (jsontext.Value, error) {
	p, err := pxp.ParseDescribe(o.Params)
	if err != nil {
		return nil, err
	}
	m, _ := e.modules.get(p.Name)
	if d := describedOf(m); d != nil {
		return pxp.Data(pxp.DescribeResults{Metadata: d.Text()}), nil
	}
	return nil, fault.New(fault.NotFound, "%s: %s", pxp.UnknownModule, p.Name)
}

// suppliesChanged answers modules changed.
func (e *Engine) suppliesChanged(Order) (jsontext.Value, error) {
	if e.cfg.SuppliesChanged != nil {
		e.cfg.SuppliesChanged()
	}
	return jsontext.Value("{}"), nil
}

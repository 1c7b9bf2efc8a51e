package agent

import (
	"context"
	"io"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/filemgr"
	"github.com/tutti-project/tutti/internal/agent/builtin/packages"
	"github.com/tutti-project/tutti/internal/agent/builtin/processes"
	"github.com/tutti-project/tutti/internal/agent/builtin/puppet"
	"github.com/tutti-project/tutti/internal/agent/builtin/resource"
	"github.com/tutti-project/tutti/internal/agent/builtin/self"
	"github.com/tutti-project/tutti/internal/agent/builtin/service"
	"github.com/tutti-project/tutti/internal/agent/orders"
)

// builtins are the built-in modules that stand on the system and on Puppet alone, and their data functions. An agent has them, and a process that
// does one action; that runs no Puppet, so p is without Run there.
func builtins(p puppet.Config) ([]builtin.Module, map[string]builtin.Data) {
	services := service.Config{Puppet: p.Puppet}
	modules := []builtin.Module{
		service.Module(services), packages.Module(packages.Config{}), processes.Module(), filemgr.Module(), puppet.Module(p),
	}
	return modules, map[string]builtin.Data{
		"service": service.Data(services), "package": packages.Data(packages.Config{}), "process": processes.Data(), "fstat": filemgr.Data(),
		"file": filemgr.FileData(), "puppet": puppet.Data(p), "resource": puppet.ResourceData(p),
	}
}

// BuiltIns describe the built-in modules of every agent.
func BuiltIns() ([]action.Module, error) {
	modules, _ := builtins(puppet.Config{})
	var all []action.Module
	for _, m := range append(modules, self.Module(self.Config{}), resource.Module(resource.Config{}), resource.Puppetral(resource.Config{})) {
		described, err := m.Describe()
		if err != nil {
			return nil, err
		}
		all = append(all, described)
	}
	return all, nil
}

// builtins are those of this agent, on a node.
func (d *daemon) builtins(n orders.Node) ([]orders.Module, error) {
	all, data := builtins(puppet.Config{
		Puppet: func() (string, error) { return findPuppet(d.Puppet) }, Settings: d.settingsFile(),
		Run: orders.PreparePuppet(n), Resource: resource.Apply(d.resources()),
	})
	all = append(all, resource.Module(d.resources()), resource.Puppetral(d.resources()), self.Module(self.Config{
		Version: d.Version, ConfigFile: filepath.Join(d.Dir, ConfigFile), Started: d.started, Data: data,
		Facts: d.facts.last, Classes: d.classes, Counts: d.counts, Modules: func() []action.Module { return described(d.engine.Modules()) },
	}))
	program := []string{d.Binary, "errand", "action", "--settings", d.settingsFile()}
	if d.Puppet != "" {
		program = append(program, "--puppet", d.Puppet)
	}
	return builtin.Orders(all, program)
}

// RunAction is what the agent starts its own binary for to do one action of a built-in module. False: it was not done, and errs has the reason.
// path is that of Puppet, and settings the file that keeps what Puppet said of its settings; both may be empty.
func RunAction(ctx context.Context, path, settings, module, name string, in io.Reader, out, errs io.Writer) bool {
	modules, _ := builtins(puppet.Config{Puppet: func() (string, error) { return findPuppet(path) }, Settings: settings})
	return builtin.Main(ctx, modules, module, name, in, out, errs)
}

// described are modules as they tell of themselves; those that tell nothing have a name.
func described(modules []orders.Module) []action.Module {
	var all []action.Module
	for _, m := range modules {
		if m.Description != nil {
			all = append(all, *m.Description)
			continue
		}
		all = append(all, action.Module{Name: m.Name})
	}
	return all
}

// counts are of the transactions that are kept.
func (d *daemon) counts() (self.Counts, error) {
	s, err := d.status()
	t := s.Transactions
	return self.Counts{Kept: t.Kept, Running: t.Running, Waiting: t.Waiting, Undelivered: t.Undelivered}, err
}

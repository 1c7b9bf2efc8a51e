package puppet

import (
	"context"
	_ "embed"
	"time"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
)

//go:embed metadata.json
var metadata []byte

// The names that others know of.
const (
	Name    = "puppet"
	RunOnce = "runonce"
)

// Config says where Puppet is.
type Config struct {
	Puppet   func() (string, error) // finds its executable
	Settings string                 // the file that keeps its settings; empty: it is asked each time
	// Run prepares a Puppet run: orders.PreparePuppet. It is nil where nothing is run, in the program that enables and disables.
	Run func(context.Context, orders.Order) (orders.Command, error)
	// Resource makes one resource as it is given: resource.Apply. It has no Prepare where Run is nil.
	Resource orders.Action
}

// Module is the module.
func Module(c Config) builtin.Module {
	m := builtin.Module{Name: Name, Metadata: metadata, Calls: map[string]builtin.Call{
		"status":           builtin.Typed(c.status),
		"enable":           builtin.Typed(c.enable),
		"disable":          builtin.Typed(c.disable),
		"last_run_summary": builtin.Typed(c.summary),
	}}
	if c.Run != nil {
		m.Programs = map[string]orders.Action{
			RunOnce:    {Lane: orders.PuppetRun, Check: checkRun, Prepare: c.prepare, Results: runResults},
			"resource": c.Resource,
		}
	}
	return m
}

// nothing is the input of actions that take none.
type nothing struct{}

// settingsTime bounds the question where Puppet's files are.
const settingsTime = time.Minute

// settings are those of Puppet's agent.
func (c Config) settings(ctx context.Context) (puppetenv.Settings, error) {
	path, err := c.Puppet()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, settingsTime)
	defer cancel()
	found, err := puppetenv.Asker{Puppet: path, Kept: c.Settings}.Settings(limited)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "Puppet does not tell its settings; run `puppet agent --configprint statedir` on the node to see why: %v", err)
	}
	return found, nil
}

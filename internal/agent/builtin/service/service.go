package service

import (
	"context"
	_ "embed" // the module's description
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

//go:embed module.json
var metadata []byte

// Config is what the module stands on.
type Config struct {
	Puppet func() (string, error) // finds puppet; nil: there is none
	Tools  tool.Box
	Root   string // of the file system; empty: the system's own
}

// Name is the module's.
const Name = "service"

// Metadata is the module's description.
func Metadata() []byte { return metadata }

// Module makes the module.
func Module(cfg Config) builtin.Module {
	calls := map[string]builtin.Call{"status": builtin.Typed(cfg.status)}
	for _, verb := range []verb{start, stop, restart, enable, disable} {
		calls[string(verb)] = builtin.Typed(func(ctx context.Context, in input) (any, error) { return cfg.act(ctx, verb, in.Service) })
	}
	return builtin.Module{Name: Name, Metadata: metadata, Calls: calls}
}

type input struct {
	Service string `json:"service"`
}

// State is how a service is.
type State struct {
	Status   string `json:"status"`            // running, stopped
	Enabled  string `json:"enabled,omitempty"` // enabled, disabled, or a word of the system's; empty: nobody knows
	State    string `json:"state,omitempty"`   // what the system says
	Provider string `json:"provider"`
}

// What a service can be.
const (
	running  = "running"
	stopped  = "stopped"
	absent   = "absent" // only for data functions
	enabled  = "enabled"
	disabled = "disabled"
)

// verb is what is done to a service.
type verb string

const (
	start   verb = "start"
	stop    verb = "stop"
	restart verb = "restart"
	enable  verb = "enable"
	disable verb = "disable"
)

// manager is who looks after a service.
type manager interface {
	// state returns errUnknown for a service that there is not.
	state(ctx context.Context, name string) (State, error)
	// act returns why the service did not do it; empty: it did.
	act(ctx context.Context, do verb, name string) (why string, err error)
}

var errUnknown = errors.New("there is no such service")

// manager finds who looks after a service.
func (c Config) manager(name string) (manager, error) {
	if info, err := os.Stat(c.path("/run/systemd/system")); err == nil && info.IsDir() {
		return systemd{c.Tools}, nil
	}
	if strings.HasPrefix(name, "-") { // programs would take it for an option
		return nil, errUnknown
	}
	if script := c.path("/etc/init.d/" + name); !strings.Contains(name, "/") && isScript(script) { // a path would be any program of the node
		return initScript{c, script}, nil
	}
	if c.Puppet != nil {
		if puppet, err := c.Puppet(); err == nil {
			return puppetService{puppet}, nil
		}
	}
	return nil, errUnknown
}

func (c Config) path(absolute string) string {
	return filepath.Join(c.Root, filepath.FromSlash(absolute))
}

func (c Config) find(ctx context.Context, name string) (manager, State, error) {
	m, err := c.manager(name)
	if err != nil {
		return nil, State{}, err
	}
	s, err := m.state(ctx, name)
	return m, s, err
}

// told makes an answer of an error.
func told(name string, err error) error {
	if errors.Is(err, errUnknown) {
		return builtin.Abort("this node has no service %s", name)
	}
	return err
}

func (c Config) status(ctx context.Context, in input) (any, error) {
	_, s, err := c.find(ctx, in.Service)
	if err != nil {
		return nil, told(in.Service, err)
	}
	return s, nil
}

func (c Config) act(ctx context.Context, do verb, name string) (any, error) {
	m, _, err := c.find(ctx, name)
	if err != nil {
		return nil, told(name, err)
	}
	why, err := m.act(ctx, do, name)
	if err != nil {
		return nil, err
	}
	s, err := m.state(ctx, name)
	if err != nil {
		return nil, told(name, err)
	}
	if why != "" {
		return nil, builtin.AbortWith(s, "%s of the service %s failed: %s", do, name, why)
	}
	return s, nil
}

// Data answers the data function service: a service that there is not has the status absent.
func Data(cfg Config) builtin.Data {
	return func(ctx context.Context, query string) (any, error) {
		_, s, err := cfg.find(ctx, query)
		if errors.Is(err, errUnknown) {
			return State{Status: absent}, nil
		}
		return s, err
	}
}

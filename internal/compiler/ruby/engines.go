package ruby

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Engine is an installation of Puppet with the Ruby that runs it.
type Engine struct {
	Name string
	Ruby string   // the interpreter
	Gems []string // directories of gems in which Puppet lies, or what it needs
}

// The engines that are found without being configured.
const (
	Packaged = "puppetlabs" // the packages of Puppet and OpenVox, which bring their Ruby along
	System   = "system"     // the distribution's Ruby and Puppet
)

// FindEngines looks for the usual installations on this machine: the first is the default where nobody says another one.
func FindEngines() (found []Engine) {
	if _, err := os.Stat(puppetRuby); err == nil {
		found = append(found, Engine{Name: Packaged, Ruby: puppetRuby})
	}
	if path, err := exec.LookPath("ruby"); err == nil && path != puppetRuby {
		found = append(found, Engine{Name: System, Ruby: path})
	}
	return found
}

// errNone is why nothing compiles on a machine without Puppet.
var errNone = fault.New(fault.Unavailable, "no Ruby with Puppet here: apt-get install puppet-agent, or openvox-agent from OpenVox's packages")

// Chooser names the engine that compiles a version; empty: the default.
type Chooser func(ctx context.Context, env fleet.Environment, version fleet.Digest) (string, error)

// Engines compiles each version with the engine that it is for. Nothing is shared between engines but the directory and the limits.
// It does nothing before Run, and may be used concurrently.
type Engines struct {
	pools    []*Pool // the first is the default
	choose   Chooser
	checks   string // the directory of checks of code
	checkout code.Checkout
}

var _ compile.Compiler = (*Engines)(nil)

// NewEngines returns the compilers of engines, of which the first is the default; Unavailable if there is none.
func NewEngines(cfg Config, engines []Engine, choose Chooser, checkout code.Checkout, known compile.Inventory, log *slog.Logger) (*Engines, error) {
	if len(engines) == 0 {
		return nil, errNone
	}
	e := &Engines{choose: choose, checks: cfg.checkDir(), checkout: checkout}
	for _, engine := range engines {
		own := cfg
		own.Name, own.Ruby, own.Gems = engine.Name, engine.Ruby, engine.Gems
		own.Dir = filepath.Join(cfg.Dir, engine.Name)
		e.pools = append(e.pools, New(own, checkout, known, log))
	}
	return e, nil
}

// Run runs all engines until ctx is done. One that cannot be used is no error: what is for it is refused, and says why.
func (e *Engines) Run(ctx context.Context) error {
	if err := os.RemoveAll(e.checks); err != nil { // what an earlier life left
		return fmt.Errorf("empty the directory of checks of code: %w", err)
	}
	running, ctx := errgroup.WithContext(ctx)
	for _, pool := range e.pools {
		running.Go(func() error { return pool.Run(ctx) })
	}
	return running.Wait()
}

// named finds an engine, or nothing; the empty name is the default.
func (e *Engines) named(name string) *Pool {
	for _, pool := range e.pools {
		if name == "" || pool.cfg.Name == name {
			return pool
		}
	}
	return nil
}

func (e *Engines) names() string {
	names := make([]string, len(e.pools))
	for i, pool := range e.pools {
		names[i] = pool.cfg.Name
	}
	return strings.Join(names, ", ")
}

// Check tells whether there is an engine of that name, or why it cannot be used.
func (e *Engines) Check(ctx context.Context, name string) error {
	pool := e.named(name)
	if pool == nil {
		return fault.New(fault.NotFound, "engine %.80q: this server has only %s; see `tutti engine list`", name, e.names())
	}
	_, err := pool.installed(ctx)
	return err
}

func (e *Engines) pool(ctx context.Context, env fleet.Environment, version fleet.Digest) (*Pool, error) {
	name, err := e.choose(ctx, env, version)
	if err != nil {
		return nil, fmt.Errorf("find out which engine version %s is for: %w", version.Short(), err)
	}
	if pool := e.named(name); pool != nil {
		return pool, nil
	}
	return nil, fault.New(fault.Unavailable, "there is no engine %s on this server, only %s", name, e.names())
}

// Compile implements compile.Compiler.
func (e *Engines) Compile(ctx context.Context, order compile.Order) (compile.Outcome, error) {
	pool, err := e.pool(ctx, order.Environment, order.Version)
	if err != nil {
		return compile.Outcome{}, err
	}
	return pool.Compile(ctx, order)
}

// Warm implements compile.Compiler.
func (e *Engines) Warm(ctx context.Context, env fleet.Environment, version fleet.Digest, samples []compile.Order) error {
	pool, err := e.pool(ctx, env, version)
	if err != nil {
		return err
	}
	return pool.Warm(ctx, env, version, samples)
}

// Engine implements compile.Compiler.
func (e *Engines) Engine(ctx context.Context, env fleet.Environment, version fleet.Digest) string {
	pool, err := e.pool(ctx, env, version)
	if err != nil {
		return ""
	}
	return pool.Engine(ctx, env, version)
}

// Await waits until the engine that compiles a version has said what it is, or that it cannot be used.
func (e *Engines) Await(ctx context.Context, env fleet.Environment, version fleet.Digest) {
	if pool, err := e.pool(ctx, env, version); err == nil {
		_, _ = pool.installed(ctx) // Engine says which it is, and a compilation why there is none
	}
}

// supply gives what a process for a version is started with.
func (e *Engines) supply(ctx context.Context, env fleet.Environment, version fleet.Digest) (Config, *installation, error) {
	pool, err := e.pool(ctx, env, version)
	if err != nil {
		return Config{}, nil, err
	}
	engine, err := pool.installed(ctx)
	return pool.cfg, engine, err
}

// NewPlain returns plain Puppet of the same engines: see NewPlain.
func (e *Engines) NewPlain(cfg Config, modulePath ModulePath) *Plain {
	p := NewPlain(cfg, e.checkout, modulePath)
	p.supply = e.supply
	return p
}

// NewChecker returns a checker that reads with the same engines: see NewChecker.
func (e *Engines) NewChecker(cfg Config) *Checker {
	c := NewChecker(cfg)
	c.supply = e.supply
	return c
}

// ByPuppet says that an engine is Puppet itself, which has no word for whose it is.
const ByPuppet = "puppet"

// Puppet is the version of Puppet that compiles a version, and whose Puppet it is: ByPuppet, or openvox. It waits until the engine has said so.
func (e *Engines) Puppet(ctx context.Context, env fleet.Environment, version fleet.Digest) (puppet, by string, err error) {
	_, engine, err := e.supply(ctx, env, version)
	if err != nil {
		return "", "", err
	}
	return engine.puppet, engine.by, nil
}

// Default names the engine that compiles what names none.
func (e *Engines) Default() string { return e.pools[0].cfg.Name }

// DefaultPuppet is the default engine's version of Puppet; empty: not known.
func (e *Engines) DefaultPuppet() string {
	if engine := e.pools[0].engine.Load(); engine != nil {
		return engine.puppet
	}
	return ""
}

// Standing is how an engine is.
type Standing struct {
	Engine
	Puppet  string // its version; empty: it cannot be used
	By      string // puppet or openvox
	Version string // of Ruby
	JIT     bool
	Trouble error // why it cannot be used
}

// Standings says how the engines are, the default first.
func (e *Engines) Standings() []Standing {
	all := make([]Standing, len(e.pools))
	for i, pool := range e.pools {
		s := Standing{Engine: Engine{pool.cfg.Name, pool.cfg.Ruby, pool.cfg.Gems}}
		if engine := pool.engine.Load(); engine != nil {
			s.Puppet, s.By, s.Version, s.JIT = engine.puppet, engine.by, engine.ruby, len(engine.jit) > 0
		} else {
			s.Trouble = pool.why()
		}
		all[i] = s
	}
	return all
}

// installed waits until the installation was asked what it is; Unavailable if it cannot be used.
func (p *Pool) installed(ctx context.Context) (*installation, error) {
	select {
	case <-p.asked:
	case <-p.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if engine := p.engine.Load(); engine != nil {
		return engine, nil
	}
	return nil, p.unusable()
}

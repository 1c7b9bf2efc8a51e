package ruby

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

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

// FindEngines looks for the usual installations on this machine.
func FindEngines() (found []Engine) {
	if _, err := os.Stat(puppetRuby); err == nil {
		found = append(found, Engine{Name: Packaged, Ruby: puppetRuby})
	}
	if path, err := exec.LookPath("ruby"); err == nil && path != puppetRuby {
		found = append(found, Engine{Name: System, Ruby: path})
	}
	return found
}

// Chooser names the engine that compiles a version; empty: the default.
type Chooser func(ctx context.Context, env fleet.Environment, version fleet.Digest) (string, error)

// Engines compiles each version with the engine that it is for. Nothing is shared between engines but the directory and the limits.
// It does nothing before Run, and may be used concurrently.
type Engines struct {
	pools    map[string]*Pool
	fallback *Pool
	choose   Chooser
	checks   string // the directory of checks of code
	checkout code.Checkout
}

var _ compile.Compiler = (*Engines)(nil)

// NewEngines returns the compilers of engines, of which the first is the default. There must be one.
func NewEngines(cfg Config, engines []Engine, choose Chooser, checkout code.Checkout, known compile.Inventory, log *slog.Logger) *Engines {
	e := &Engines{pools: map[string]*Pool{}, choose: choose, checks: cfg.checkDir(), checkout: checkout}
	for _, engine := range engines {
		own := cfg
		own.Name, own.Ruby, own.Gems = engine.Name, engine.Ruby, engine.Gems
		own.Dir = filepath.Join(cfg.Dir, engine.Name)
		pool := New(own, checkout, known, log)
		if e.fallback == nil {
			e.fallback = pool
		}
		e.pools[engine.Name] = pool
	}
	return e
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

// named finds an engine; the empty name is the default.
func (e *Engines) named(name string) (*Pool, error) {
	if name == "" {
		return e.fallback, nil
	}
	pool := e.pools[name]
	if pool == nil {
		return nil, fault.New(fault.Unavailable, "there is no engine %s on this server, only %s", name, e.names())
	}
	return pool, nil
}

func (e *Engines) names() string {
	return fmt.Sprint(slices.Sorted(maps.Keys(e.pools)))
}

// Check tells whether there is an engine of that name, or why it cannot be used.
func (e *Engines) Check(ctx context.Context, name string) error {
	pool := e.pools[name]
	if pool == nil {
		return fault.New(fault.Invalid, "engine %.80q: this server has only %s; see `tutti engine list`", name, e.names())
	}
	return pool.await(ctx)
}

func (e *Engines) pool(ctx context.Context, env fleet.Environment, version fleet.Digest) (*Pool, error) {
	name, err := e.choose(ctx, env, version)
	if err != nil {
		return nil, fmt.Errorf("find out which engine version %s is for: %w", version.Short(), err)
	}
	return e.named(name)
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

// supply gives what a process for a version is started with.
func (e *Engines) supply(ctx context.Context, env fleet.Environment, version fleet.Digest) (Config, *installation, error) {
	pool, err := e.pool(ctx, env, version)
	if err != nil {
		return Config{}, nil, err
	}
	if err := pool.await(ctx); err != nil {
		return Config{}, nil, err
	}
	if engine := pool.engine.Load(); engine != nil {
		return pool.cfg, engine, nil
	}
	return Config{}, nil, pool.unusable()
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

// Puppet is the version of Puppet that compiles a version. It waits until the engine has said so.
func (e *Engines) Puppet(ctx context.Context, env fleet.Environment, version fleet.Digest) (string, error) {
	pool, err := e.pool(ctx, env, version)
	if err != nil {
		return "", err
	}
	return pool.puppet(ctx)
}

// DefaultPuppet is the default engine's version of Puppet; empty: not known.
func (e *Engines) DefaultPuppet() string {
	if engine := e.fallback.engine.Load(); engine != nil {
		return engine.puppet
	}
	return ""
}

// Standing is how an engine is.
type Standing struct {
	Engine
	Default bool
	Puppet  string // its version; empty: it cannot be used
	By      string // puppet or openvox
	Version string // of Ruby
	JIT     bool
	Trouble error // why it cannot be used
}

// Standings says how the engines are, the default first.
func (e *Engines) Standings() []Standing {
	var all []Standing
	for _, name := range slices.Sorted(maps.Keys(e.pools)) {
		pool := e.pools[name]
		s := Standing{Engine: Engine{name, pool.cfg.Ruby, pool.cfg.Gems}, Default: pool == e.fallback}
		if engine := pool.engine.Load(); engine != nil {
			s.Puppet, s.By, s.Version, s.JIT = engine.puppet, engine.by, engine.ruby, len(engine.jit) > 0
		} else {
			s.Trouble = pool.unusable()
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b Standing) int {
		switch {
		case a.Default:
			return -1
		case b.Default:
			return 1
		}
		return 0
	})
	return all
}

// await waits until the installation was asked what it is; Unavailable if it cannot be used.
func (p *Pool) await(ctx context.Context) error {
	select {
	case <-p.asked:
	case <-p.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.engine.Load() == nil {
		return p.unusable()
	}
	return nil
}

func (p *Pool) puppet(ctx context.Context) (string, error) {
	if err := p.await(ctx); err != nil {
		return "", err
	}
	if engine := p.engine.Load(); engine != nil {
		return engine.puppet, nil
	}
	return "", p.unusable()
}

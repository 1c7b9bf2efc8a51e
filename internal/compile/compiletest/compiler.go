package compiletest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Script plays a compiler for one order.
type Script func(ctx context.Context, o compile.Order) (compile.Outcome, error)

// Compiler is a compile.Compiler that follows a script and remembers what it was
// asked. Like the real one it takes a while for some orders, fails others, and
// stops when its context does.
type Compiler struct {
	mu      sync.Mutex
	script  Script
	nodes   map[fleet.Certname]Script
	warm    func(ctx context.Context, w Warming) error
	orders  []compile.Order
	warmed  []Warming
	running int
	peak    int
}

var _ compile.Compiler = (*Compiler)(nil)

// Warming is one call of Warm.
type Warming struct {
	Environment fleet.Environment
	Version     fleet.Digest
	Samples     []compile.Order
}

// NewCompiler returns a compiler that gives every order the catalog of Catalog
// at once.
func NewCompiler() *Compiler {
	return &Compiler{script: Gives(), nodes: map[fleet.Certname]Script{}}
}

// Play makes s the script for all orders without a script of their own.
func (c *Compiler) Play(s Script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script = s
}

// PlayFor makes s the script for one node.
func (c *Compiler) PlayFor(node fleet.Certname, s Script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[node] = s
}

// OnWarm makes f answer Warm; without it Warm succeeds at once.
func (c *Compiler) OnWarm(f func(ctx context.Context, w Warming) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warm = f
}

// Orders are those that were compiled, in the order in which they came.
func (c *Compiler) Orders() []compile.Order {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.orders)
}

// Warmings are the calls of Warm so far.
func (c *Compiler) Warmings() []Warming {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.warmed)
}

// Running is how many orders are being compiled, and how many ever were at once.
func (c *Compiler) Running() (now, peak int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.peak
}

// Compile implements compile.Compiler.
func (c *Compiler) Compile(ctx context.Context, o compile.Order) (compile.Outcome, error) {
	c.mu.Lock()
	script := c.script
	if own := c.nodes[o.Node]; own != nil {
		script = own
	}
	c.orders = append(c.orders, o)
	c.running++
	c.peak = max(c.peak, c.running)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
	}()
	out, err := script(ctx, o)
	out.Engine = c.Engine(ctx, o.Environment, o.Version)
	return out, err
}

// Warm implements compile.Compiler.
func (c *Compiler) Warm(ctx context.Context, env fleet.Environment, version fleet.Digest, samples []compile.Order) error {
	w := Warming{env, version, samples}
	c.mu.Lock()
	c.warmed = append(c.warmed, w)
	warm := c.warm
	c.mu.Unlock()
	if warm == nil {
		return ctx.Err()
	}
	return warm(ctx, w)
}

// Gives compiles at once.
func Gives() Script {
	return func(ctx context.Context, o compile.Order) (compile.Outcome, error) {
		if err := ctx.Err(); err != nil {
			return compile.Outcome{}, err
		}
		return compile.Outcome{Catalog: Catalog(o), Cost: compile.Cost{Wall: time.Second, CPU: time.Second, PeakBytes: 1 << 26}}, nil
	}
}

// Takes compiles in d.
func Takes(d time.Duration) Script {
	return func(ctx context.Context, o compile.Order) (compile.Outcome, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return compile.Outcome{}, ctx.Err()
		case <-timer.C:
		}
		return compile.Outcome{Catalog: Catalog(o), Cost: compile.Cost{Wall: d, CPU: d}}, nil
	}
}

// Hangs compiles until it is killed.
func Hangs() Script {
	return func(ctx context.Context, _ compile.Order) (compile.Outcome, error) {
		<-ctx.Done()
		return compile.Outcome{}, ctx.Err()
	}
}

// Fails gives err: a *compile.Error for code that has no catalog, anything else
// for a compiler that could not try.
func Fails(err error) Script {
	return func(context.Context, compile.Order) (compile.Outcome, error) { return compile.Outcome{}, err }
}

// Then plays the scripts one after the other, the last one for ever.
func Then(scripts ...Script) Script {
	var mu sync.Mutex
	return func(ctx context.Context, o compile.Order) (compile.Outcome, error) {
		mu.Lock()
		s := scripts[0]
		if len(scripts) > 1 {
			scripts = scripts[1:]
		}
		mu.Unlock()
		return s(ctx, o)
	}
}

// Catalog is a small catalog that depends on all of the order but its
// transaction and version.
func Catalog(o compile.Order) json.RawMessage {
	facts, _ := json.Marshal(string(o.Facts))
	return fmt.Appendf(nil, `{"name":%q,"environment":%q,"version":%q,"code_id":%q,"catalog_uuid":"made-up","catalog_format":2,`+
		`"tags":["settings"],"classes":["settings"],"edges":[{"source":"Stage[main]","target":"Class[Main]"}],`+
		`"resources":[{"type":"Stage","title":"main","exported":false},{"type":"Class","title":"main","exported":false,"parameters":{"facts":%s}}]}`,
		o.Node, o.Environment, o.Version, o.Version, facts)
}

// Engine implements compile.Compiler.
func (c *Compiler) Engine(context.Context, fleet.Environment, fleet.Digest) string {
	return "made-up 1"
}

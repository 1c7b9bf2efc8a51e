package orders

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/wire"
)

// Config is what an Engine is made of. Zero limits mean the defaults.
type Config struct {
	URI     wire.URI // who sends the answers; empty: who owns the connection
	Spool   Spool
	Runner  Runner
	Cache   Cache // what was not used for long is thrown away; nil: there is none
	Modules []Module
	// Problems are modules that were found and cannot be used: the server is told why.
	Problems []action.Listed
	// SuppliesChanged is told when a server says that the node's code may supply other modules; it must not wait. nil: nobody wants to know.
	SuppliesChanged func()
	Policy          Policy // zero: everything is allowed
	Log             *slog.Logger
	Audit           *slog.Logger // a line for each order, and one for its end, without parameters and output; nil: Log

	MaxConcurrent    int           // programs at a time beside a Puppet run; 8
	MaxWaiting       int           // orders that wait for their turn; 100
	MaxPuppetWaiting int           // Puppet runs that wait for theirs; 5
	MaxRun           time.Duration // of one order, from its turn to its end; 24 hours
	MaxMessageBytes  int           // of the data of an answer; 64 MB
	Retention        time.Duration // of what is over; 14 days
	CacheRetention   time.Duration // of files since they were used; 14 days
}

func (c *Config) fill() {
	for _, limit := range []struct {
		value *int
		usual int
	}{{&c.MaxConcurrent, 8}, {&c.MaxWaiting, 100}, {&c.MaxPuppetWaiting, 5}, {&c.MaxMessageBytes, 64 << 20}} {
		if *limit.value <= 0 {
			*limit.value = limit.usual
		}
	}
	if c.MaxRun <= 0 {
		c.MaxRun = 24 * time.Hour
	}
	if c.Retention <= 0 {
		c.Retention = 14 * 24 * time.Hour
	}
	if c.CacheRetention <= 0 {
		c.CacheRetention = 14 * 24 * time.Hour
	}
	if c.Audit == nil {
		c.Audit = c.Log
	}
}

// Engine handles the requests to one node: it decides, does what is asked for, and looks after what an earlier process left.
type Engine struct {
	cfg      Config
	modules  *modules
	turns    *turns
	answers  answers
	outcomes *outcomes
	status   status
	works    *sync.WaitGroup

	own     map[string]Module // the modules that stay
	ownSet  []action.Listed   // what of them cannot be used
	telling sync.Mutex        // guards the rest
	cannot  []action.Listed   // what cannot be used
	set     string            // digest of Set; empty: it is not known yet
}

// New returns an engine. Of two modules with one name the first counts; the other is told as a problem if it has a description.
func New(cfg Config) *Engine {
	cfg.fill()
	e := &Engine{cfg: cfg, modules: &modules{}, works: new(sync.WaitGroup)}
	box := &outbox{}
	e.answers = answers{uri: cfg.URI, most: cfg.MaxMessageBytes, outbox: box, log: cfg.Log}
	e.outcomes = &outcomes{outbox: box, answers: e.answers, spool: cfg.Spool, modules: e.modules, works: e.works, log: cfg.Log}
	e.turns = newTurns(cfg, e.works)
	e.status = status{spool: cfg.Spool, runner: cfg.Runner, modules: e.modules, turns: e.turns}
	e.own, e.ownSet = join(nil, append(e.ownModules(), cfg.Modules...), cfg.Problems)
	e.Supply(nil, nil)
	return e
}

// purging is how often Run looks for what is too old.
const purging = time.Hour

// Run is the life of an agent's engine: Start, then throw away what is too old from
// time to time, and Close when ctx is done.
func (e *Engine) Run(ctx context.Context) error {
	defer e.Close()
	if err := e.Start(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(purging)
	defer tick.Stop()
	for {
		e.Purge(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Purge throws away what ended, or was used, longer ago than its retention. Run does
// it by itself.
func (e *Engine) Purge(ctx context.Context) {
	now := time.Now()
	transactions, err := e.cfg.Spool.Purge(now.Add(-e.cfg.Retention), e.turns.isActive)
	if err != nil {
		e.cfg.Log.ErrorContext(ctx, "spool not purged, will retry", "err", err)
	}
	files := 0
	if e.cfg.Cache != nil {
		if files, err = e.cfg.Cache.Purge(ctx, now.Add(-e.cfg.CacheRetention)); err != nil {
			e.cfg.Log.ErrorContext(ctx, "cache not purged, will retry", "err", err)
		}
	}
	if transactions+files > 0 {
		e.cfg.Log.InfoContext(ctx, "old transactions and files thrown away", "transactions", transactions, "files", files)
	}
}

// errClosing ends the work of an engine that is closed: another one goes on.
var errClosing = errors.New("the agent ends")

// Close ends all work inside the agent, and waits for it. Programs go on: the
// next engine on the same spool adopts them. Handle does nothing from then on.
func (e *Engine) Close() {
	e.turns.close()
	e.outcomes.outbox.close()
	e.works.Wait()
}

package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/schedule"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Options is what an agent gets from its caller besides its settings.
type Options struct {
	Version string
	Binary  string    // this program: it watches over what it runs
	Err     io.Writer // the log
}

// agentType is the type of client that agents are.
const agentType = "agent"

func userAgent(version string) string { return "tutti-agent/" + version }

// daemon is an agent that runs.
type daemon struct {
	Config
	Options
	log        *slog.Logger
	id         *Identity
	uri        wire.URI
	spool      orders.Spool
	runner     orders.Runner
	cache      orders.Cache
	engine     *orders.Engine
	link       *connection.Link
	started    time.Time
	sender     atomic.Pointer[events.Sender] // nil until events can be sent
	begun      atomic.Bool                   // a server was told that the process began
	introduced atomic.Value                  // ID of the newest message that said what this agent is: a string

	catalogs *catalogs
	reports  *reports
	facts    *submitter
	problems []action.Problem // modules of modules_dir that cannot be used
	supplied *supplied
	schedule *schedule.Engine // nil: runs are off
	changed  signal           // there may be another catalog
	applyNow atomic.Bool      // and it shall be applied at once
	supplies signal           // the environment's code may supply other modules
	unsent   signal           // there may be reports to deliver, and somebody to take them
}

// Run is the life of an agent: until ctx is done.
func Run(ctx context.Context, c Config, o Options) (err error) {
	log := newLogger(c, o.Err)
	id, err := LoadIdentity(c)
	if err != nil {
		return err
	}
	id.Log = log
	d := &daemon{
		Config: c, Options: o, log: log, id: id, uri: wire.NewURI(string(id.Name()), agentType), started: time.Now().UTC(), changed: newSignal(),
		supplies: newSignal(), unsent: newSignal(),
	}
	if err := makeDir(c.Data); err != nil {
		return err
	}
	end, err := d.assemble(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	socket, err := openSocket(ctx, c.Data, d.status, d.facts.wanted)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "agent started", "node", id.Name(), "servers", strings.Join(c.brokers(), " "), "data", c.Data, "version", o.Version)
	return d.serve(ctx, socket)
}

// serve runs the parts, and ends them outside in: no more orders, then the engine lets go of its programs, then
// the connection is closed.
func (d *daemon) serve(ctx context.Context, socket *statusSocket) error {
	if err := d.engine.Start(ctx); err != nil {
		return err
	}
	linked, unlink := context.WithCancel(context.WithoutCancel(ctx))
	defer unlink()
	ending, end := context.WithCancelCause(ctx)
	defer end(nil)
	var parts sync.WaitGroup
	start := func(of context.Context, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(of); err != nil {
				end(err)
			}
		})
	}
	start(linked, d.link.Run)
	start(ending, socket.run)
	start(ending, d.keepHouse)
	start(ending, d.keepCertificates)
	start(ending, d.keepCatalogs)
	start(ending, d.keepSupplied)
	start(ending, d.keepReports)
	start(ending, d.facts.Run)
	start(ending, d.keepEvents)
	if d.schedule != nil {
		start(ending, d.schedule.Run)
	}
	<-ending.Done()
	d.log.Info("agent ends; programs that run go on")
	d.engine.Close()
	unlink()
	parts.Wait()
	if ctx.Err() == nil {
		return context.Cause(ending)
	}
	return nil
}

// connectSpread is how long after connecting the catalog is asked for, at most: a fleet that comes back at
// once must not ask at once, too.
const connectSpread = 30 * time.Second

// connected is told by the link.
func (d *daemon) connected() {
	d.engine.Connected(d.send)
	d.introduce()
	d.unsent.give()
	time.AfterFunc(rand.N(min(d.CatalogPoll, connectSpread)), func() { //nolint:gosec // no secret
		d.changed.give()
		d.supplies.give()
	})
	d.facts.back.give()
	if r := d.sender.Load(); r != nil {
		r.Connected()
	}
}

// send writes a message of the engine. What is too large for the server can never be sent: its
// requester is told so instead.
func (d *daemon) send(m wire.Message) error {
	err := d.link.Send(m)
	if m.Type == wire.NonBlockingResponse {
		d.unsent.give() // of a Puppet run it may be, whose report no server took
	}
	if fault.Of(err) != fault.Invalid || err == nil {
		return err
	}
	d.log.Warn("message cannot be sent", "message_type", m.Type, "bytes", len(m.Data), "err", err)
	response, unread := pxp.ParseResponse(m.Data)
	if unread != nil {
		return nil //nolint:nilerr // nothing that is waited for
	}
	return d.link.Send(wire.Message{Type: wire.RPCError, Target: m.Target, Data: pxp.Data(pxp.Failure{
		Transaction: response.Transaction, ID: m.ID, Description: "the outcome cannot be sent: " + fault.Detail(err),
	})})
}

// keepHouse throws away what is too old from time to time.
func (d *daemon) keepHouse(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		d.engine.Purge(ctx)
		if files, err := d.cache.Purge(ctx, time.Now().Add(-d.CacheTTL)); err != nil {
			d.log.WarnContext(ctx, "old files not removed, will retry", "err", err)
		} else if files > 0 {
			d.log.InfoContext(ctx, "old files removed", "count", files)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// status is how the agent stands now.
func (d *daemon) status() (Status, error) {
	records, err := d.spool.List()
	if err != nil {
		return Status{}, err
	}
	link := d.link.State()
	s := Status{
		Name: string(d.id.Name()), Version: d.Version, Process: os.Getpid(), Started: d.started, Servers: d.brokers(), Data: d.Data,
		Connection: Connection{
			Connected: link.Connected, Server: link.Server, Attempts: link.Attempts, Problem: link.Problem, Lost: link.Lost,
		},
		CertificateExpires: d.id.Certificate().NotAfter.UTC(),
	}
	d.standing(&s)
	if !link.Since.IsZero() {
		since := link.Since.UTC()
		s.Connection.Since = &since
	}
	s.Facts = d.facts.status()
	s.ModuleProblems = slices.Concat(d.problems, d.supplied.unusable())
	s.count(records, func(r orders.Record) bool { return d.runner.Alive(d.spool.Place(r.Transaction)) })
	return s, nil
}

// count looks through what is kept.
func (s *Status) count(records []orders.Record, alive func(orders.Record) bool) {
	s.Transactions.Kept = len(records)
	for _, r := range records {
		switch {
		case r.Status.Over() && !r.Delivered:
			s.Transactions.Undelivered++
		case r.Status.Over():
		case alive(r):
			s.Transactions.Running++
		default:
			s.Transactions.Waiting++
		}
		if !isPuppetRun(r) || s.LastPuppetRun != nil && r.Start.Before(s.LastPuppetRun.Start) {
			continue
		}
		s.LastPuppetRun = &LastRun{Transaction: r.Transaction, Status: string(r.Status), Start: r.Start}
		if r.Status.Over() {
			s.LastPuppetRun.End = &r.End
		}
	}
}

func newLogger(c Config, out io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // Check has seen it
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

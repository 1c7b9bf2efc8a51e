package sim

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// node is a simulated node: a machine, and an agent on it that dies and starts again.
type node struct {
	fleet    *Fleet
	name     string
	identity *tls.Config
	machine  machine.Machine

	in, out traffic
	shelf   shelf
	log     *machine.Log   // of what runs say; nil: they say nothing
	runs    sync.WaitGroup // that go on

	mu    sync.Mutex // for what is here
	agent *agent     // nil: none runs
	conn  net.Conn   // that the agent opened last
}

// simulated is the version of simulated agents.
const simulated = "simulated"

// agent is one process of a node's agent.
type agent struct {
	engine *orders.Engine
	link   *connection.Link
	sender *events.Sender // nil: there is nothing to tell
	stop   context.CancelFunc
	look   func()         // for a catalog
	works  sync.WaitGroup // on catalogs and events
	killed bool           // under the node's lock
}

// traffic is the messages of a node in one direction.
type traffic struct {
	mu    sync.Mutex
	fates *fates
}

func (t *traffic) next() fate {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fates.next()
}

func newNode(f *Fleet, index int, name string) *node {
	n := &node{fleet: f, name: name}
	n.machine.Program = n.program
	n.machine.Vanished = func(place string) { f.cfg.Recorder.vanished(Execution{name, path.Base(place)}) }
	if f.cfg.Events {
		n.log = machine.NewLog()
	}
	n.in.fates = newFates(f.cfg.Faults, f.cfg.Seed, index, toNode)
	n.out.fates = newFates(f.cfg.Faults, f.cfg.Seed, index, fromNode)
	return n
}

// run is the node's life: one agent after the other.
func (n *node) run(ctx context.Context) error {
	defer n.runs.Wait()
	for ctx.Err() == nil {
		if err := n.runAgent(ctx); err != nil {
			return err
		}
	}
	return nil
}

// runAgent runs an agent until it is killed or ctx is done.
func (n *node) runAgent(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a, err := n.boot(ctx, stop)
	if err != nil {
		return err
	}
	defer func() {
		a.engine.Close()
		stop()
		n.shelf.settle()
		a.works.Wait()
	}()
	if err := a.engine.Start(ctx); err != nil {
		if n.over(ctx, a) {
			return nil
		}
		return fmt.Errorf("start the agent of %s: %w", n.name, err)
	}
	if a.sender != nil {
		a.works.Go(func() { _ = a.sender.Run(ctx) }) // it ends with ctx
	}
	if n.fleet.cfg.CatalogPoll > 0 {
		a.works.Go(func() { n.poll(ctx, a) })
	}
	return a.link.Run(ctx)
}

// boot makes an agent and tells the machine that the one before is gone.
func (n *node) boot(ctx context.Context, stop context.CancelFunc) (*agent, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	spool, runner := n.machine.Boot()
	c := &n.fleet.cfg
	a := &agent{stop: stop}
	a.look = func() { n.told(ctx, a, false) }
	a.engine = orders.New(orders.Config{Spool: spool, Runner: runner, Log: c.Log, Modules: append(append(modules(), n.hints(ctx, a)), n.actions()...)})
	if n.log != nil {
		a.sender = n.newSender(a)
	}
	var err error
	a.link, err = connection.New(connection.Config{
		URLs: c.URLs, URI: wire.NewURI(n.name, "agent"), TLS: Fixed(n.identity),
		Dial: n.dial, UserAgent: c.UserAgent, Log: c.Log,
		Receive: func(m wire.Message) { n.receive(ctx, a, m) },
		Connected: func() {
			a.engine.Connected(func(m wire.Message) error { return n.send(a, m) })
			_ = n.send(a, a.engine.Introduction(pxp.AgentTold{Version: simulated, OS: "linux", Arch: "amd64"})) // a connection that is lost already is made again
			n.told(ctx, a, false)
			if a.sender != nil {
				a.sender.Connected()
			}
		},
		ConnectTimeout: c.ConnectTimeout, FirstPause: c.FirstPause, LongestPause: c.LongestPause,
	})
	n.agent = a
	return a, err
}

// over says whether an agent has a reason not to work.
func (n *node) over(ctx context.Context, a *agent) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return a.killed || ctx.Err() != nil
}

// dial opens a connection that can be cut.
func (n *node) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := n.fleet.cfg.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn = conn
	return conn, nil
}

// receive lets a message that came meet its fate.
func (n *node) receive(ctx context.Context, a *agent, m wire.Message) {
	switch f := n.in.next(); {
	case f.drop:
	case f.delay > 0:
		time.AfterFunc(f.delay, func() { n.handle(ctx, a, m) })
	default:
		n.handle(ctx, a, m)
		if f.repeat {
			n.handle(ctx, a, m)
		}
		if f.cut {
			n.cut()
		}
	}
}

func (n *node) handle(ctx context.Context, a *agent, m wire.Message) {
	switch {
	case ctx.Err() != nil:
	case m.Type == wire.RunEventsTaken && a.sender != nil:
		if taken, err := pxp.ParseRunEventsTaken(m.Data); err == nil { // else what was sent is sent again
			a.sender.Taken(taken)
		}
	default:
		a.engine.Handle(ctx, m)
	}
}

// send lets a message that goes out meet its fate. What is dropped or late counts as
// sent: so it is with a network.
func (n *node) send(a *agent, m wire.Message) error {
	f := n.out.next()
	switch {
	case f.drop:
		return nil
	case f.delay > 0:
		time.AfterFunc(f.delay, func() { _ = a.link.Send(m) }) // of an agent that is gone, nothing
		return nil
	}
	err := a.link.Send(m)
	if err == nil && f.repeat {
		err = a.link.Send(m)
	}
	if f.cut {
		n.cut()
	}
	return err
}

// cut breaks the connection without a word: the other side gets a reset.
func (n *node) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn == nil {
		return
	}
	if tcp, ok := n.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = n.conn.Close()
	n.conn = nil
}

// crash kills the agent; the node starts another one. What the agent had started goes on.
func (n *node) crash() { n.kill(n.machine.Crash) }

// reboot also ends what the agent had started.
func (n *node) reboot() {
	n.kill(func() {
		n.machine.Reboot()
		n.halt()
	})
}

func (n *node) kill(how func()) {
	n.mu.Lock()
	a := n.agent
	if a == nil || a.killed {
		n.mu.Unlock()
		return
	}
	a.killed = true
	how()
	n.mu.Unlock()
	n.cut()
	a.stop()
}

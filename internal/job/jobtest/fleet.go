package jobtest

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Manner is how a node treats what it is sent. The zero value is a good node.
type Manner struct {
	ExitCode  int
	Stdout    string
	Results   string        // what it ends with instead of exit code and output, as Puppet runs do; JSON
	Takes     time.Duration // until a run ends; 0: at once
	Silent    bool          // it says nothing at all
	Mute      bool          // it never tells an outcome by itself; asked, it does
	Twice     bool          // it says everything twice
	Refuses   string        // it answers orders with this failure
	CannotEnd bool          // it does not know how to stop a run
	Forgets   bool          // asked, it does not know the run any more
	Puzzled   bool          // asked, it answers that it cannot
	Lag       time.Duration // of everything it says
	Loses     int           // so many of the messages to and from it, the first ones, disappear
}

// Fleet is nodes that run what they are ordered to, each transaction once. It is the
// fake of job.Sender. Its nodes tell their answers to the server that they know.
type Fleet struct {
	mu    sync.Mutex
	knows Server
	nodes map[fleet.Certname]*node
	tells sync.WaitGroup
}

var _ job.Sender = (*Fleet)(nil)

type node struct {
	manner    Manner
	connected bool
	lost      int
	begun     map[string]int // how often each transaction began
	over      map[string]pxp.Outcome
	requests  []pxp.Request
	link      job.Link
}

// Server is to whom nodes speak.
type Server interface {
	Observe(ctx context.Context, a job.Answer) error
	Came(nodes ...fleet.Certname)
	Went(nodes ...fleet.Certname)
}

// Know makes nodes speak to a server, from now on.
func (f *Fleet) Know(s Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.knows = s
}

func (f *Fleet) server() Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knows
}

// NewFleet returns nodes that are connected.
func NewFleet(names ...fleet.Certname) *Fleet {
	f := &Fleet{nodes: map[fleet.Certname]*node{}}
	for _, name := range names {
		f.nodes[name] = &node{connected: true, link: job.Link{Since: time.Now()}, begun: map[string]int{}, over: map[string]pxp.Outcome{}}
	}
	return f
}

// NeverCame makes a node one that has no agent.
func (f *Fleet) NeverCame(name fleet.Certname) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[name].connected, f.nodes[name].link = false, job.Link{}
}

// Behave gives a node its manner.
func (f *Fleet) Behave(name fleet.Certname, m Manner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[name].manner = m
}

// Connect connects a node.
func (f *Fleet) Connect(name fleet.Certname) {
	f.mu.Lock()
	f.nodes[name].connected = true
	f.nodes[name].link.Since, f.nodes[name].link.Until = time.Now(), time.Time{}
	f.mu.Unlock()
	f.server().Came(name)
}

// Disconnect ends a node's connection; what runs there goes on.
func (f *Fleet) Disconnect(name fleet.Certname) {
	f.mu.Lock()
	f.nodes[name].connected, f.nodes[name].link.Until = false, time.Now()
	f.mu.Unlock()
	f.server().Went(name)
}

// Requests is what a node was sent, in order.
func (f *Fleet) Requests(name fleet.Certname) []pxp.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]pxp.Request(nil), f.nodes[name].requests...)
}

// Begun is how often each transaction began on a node.
func (f *Fleet) Begun(name fleet.Certname) map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.nodes[name].begun)
}

// Wait returns when all that nodes began to tell is told.
func (f *Fleet) Wait() { f.tells.Wait() }

// Connected implements job.Sender.
func (f *Fleet) Connected(name fleet.Certname) (job.Link, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	if n == nil {
		return job.Link{}, false
	}
	link := n.link
	link.Agent = "fake-agent/1"
	return link, n.connected
}

// Detach makes it known that nothing can be sent to a node, which is connected nevertheless; with no words it can again.
func (f *Fleet) Detach(name fleet.Certname, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[name].link.Unreachable = why
}

// Share makes it known that several agents have a node's certificate, or no more with no words for it.
func (f *Fleet) Share(name fleet.Certname, shared string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[name].link.Shared = shared
}

// Supersede connects a node over the connection that it has: the agent that comes knows nothing of what the other one does.
func (f *Fleet) Supersede(name fleet.Certname, m Manner) {
	f.mu.Lock()
	n := f.nodes[name]
	n.connected, n.manner = true, m
	n.link.Since, n.link.Superseded = time.Now(), time.Now()
	f.mu.Unlock()
	f.server().Came(name)
}

// Order implements job.Sender.
func (f *Fleet) Order(ctx context.Context, name fleet.Certname, r pxp.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.receive(name, r)
	if err != nil || n == nil {
		return err
	}
	if n.manner.Refuses != "" {
		f.tell(ctx, name, n, n.manner.Lag, job.Answer{Kind: job.Failure, Transaction: r.Transaction, Description: n.manner.Refuses})
		return nil
	}
	f.tell(ctx, name, n, n.manner.Lag, job.Answer{Kind: job.Provisional, Transaction: r.Transaction})
	if n.begun[r.Transaction] > 0 {
		return nil // it has it already
	}
	n.begun[r.Transaction]++
	f.tells.Go(func() {
		<-time.After(n.manner.Takes)
		f.end(ctx, name, r.Transaction, pxp.Outcome{ExitCode: n.manner.ExitCode, Stdout: n.manner.Stdout})
	})
	return nil
}

// receive is what a node does first with what it is sent; nil: the node does not see it.
func (f *Fleet) receive(name fleet.Certname, r pxp.Request) (*node, error) {
	n := f.nodes[name]
	if n == nil || !n.connected {
		return nil, fault.New(fault.NotFound, "not connected")
	}
	if n.link.Unreachable != "" {
		return nil, fault.New(fault.Unavailable, "%s", n.link.Unreachable)
	}
	if n.lost < n.manner.Loses {
		n.lost++
		return nil, nil
	}
	n.requests = append(n.requests, r)
	if n.manner.Silent {
		return nil, nil
	}
	return n, nil
}

// end ends a transaction, once.
func (f *Fleet) end(ctx context.Context, name fleet.Certname, transaction string, o pxp.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	if _, over := n.over[transaction]; over {
		return
	}
	n.over[transaction] = o
	results := pxp.Data(o)
	if n.manner.Results != "" {
		results = []byte(n.manner.Results)
	}
	if !n.manner.Mute {
		f.tell(ctx, name, n, n.manner.Lag, job.Answer{Kind: job.Response, Transaction: transaction, Results: results})
	}
}

// tell says something, if the node is connected then. The caller holds f.mu.
func (f *Fleet) tell(ctx context.Context, name fleet.Certname, n *node, lag time.Duration, a job.Answer) {
	a.Node = name
	times := 1
	if n.manner.Twice {
		times = 2
	}
	for range times {
		if n.lost < n.manner.Loses {
			n.lost++
			continue
		}
		f.tells.Go(func() {
			<-time.After(lag)
			if _, connected := f.Connected(name); connected {
				_ = f.server().Observe(context.WithoutCancel(ctx), a) // as an agent: what the server says to it is its own business
			}
		})
	}
}

// Ask implements job.Sender.
func (f *Fleet) Ask(ctx context.Context, name fleet.Certname, r pxp.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.receive(name, r)
	if err != nil || n == nil {
		return err
	}
	var about struct {
		Transaction string `json:"transaction_id"`
	}
	if err := json.Unmarshal(r.Params, &about); err != nil {
		return err
	}
	switch {
	case r.Module == pxp.Status && n.manner.Puzzled:
		f.tell(ctx, name, n, n.manner.Lag, job.Answer{Kind: job.Failure, Transaction: r.Transaction, Description: pxp.UnknownModule + ": status"})
	case r.Module == pxp.Status:
		f.tell(ctx, name, n, n.manner.Lag, job.Answer{Kind: job.Reply, Transaction: r.Transaction, Results: pxp.Data(n.status(about.Transaction))})
	case n.manner.CannotEnd:
		f.tell(ctx, name, n, n.manner.Lag, job.Answer{Kind: job.Failure, Transaction: r.Transaction, Description: pxp.UnknownModule + ": transaction"})
	default:
		status := n.status(about.Transaction).Status
		f.tell(ctx, name, n, n.manner.Lag, job.Answer{
			Kind: job.Reply, Transaction: r.Transaction, Results: pxp.Data(pxp.CancelResults{Transaction: about.Transaction, Status: status}),
		})
		if status == pxp.Running {
			f.tells.Go(func() { f.end(ctx, name, about.Transaction, pxp.Outcome{ExitCode: 143, Ended: pxp.EndedByOrder}) })
		}
	}
	return nil
}

func (n *node) status(transaction string) pxp.StatusResults {
	s := pxp.StatusResults{Transaction: transaction, Status: pxp.Unknown}
	o, over := n.over[transaction]
	switch {
	case n.manner.Forgets || n.begun[transaction] == 0:
	case !over:
		s.Status = pxp.Running
	default:
		s.Status, s.ExitCode, s.Stdout, s.Stderr = pxp.Success, &o.ExitCode, o.Stdout, o.Stderr
		if o.ExitCode != 0 {
			s.Status = pxp.Failed
		}
	}
	return s
}

// Everybody is the fake of job.Resolver: it knows the named nodes and these.
type Everybody []fleet.Certname

// Resolve implements job.Resolver.
func (e Everybody) Resolve(_ context.Context, t job.Targets) ([]fleet.Certname, error) {
	if t.All {
		return e, nil
	}
	return t.Nodes, nil
}

// Edges is the fake of job.Graph.
type Edges []graph.Edge[fleet.Certname]

// Edges implements job.Graph.
func (e Edges) Edges(context.Context, []fleet.Certname) ([]graph.Edge[fleet.Certname], error) {
	return e, nil
}

// OpenGate is the fake of job.Gate: it refuses the nodes that it names.
type OpenGate map[fleet.Certname]string

// Refused implements job.Gate.
func (g OpenGate) Refused(context.Context, fleet.Actor, job.Spec, []fleet.Certname) (map[fleet.Certname]string, error) {
	return g, nil
}

// Ends is the fake of job.Certificates: what is the matter with those of nodes that have no good one.
type Ends map[fleet.Certname]string

// Ended implements job.Certificates.
func (e Ends) Ended(_ context.Context, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	told := map[fleet.Certname]string{}
	for _, node := range nodes {
		if why, ended := e[node]; ended {
			told[node] = why
		}
	}
	return told, nil
}

// Seals is the fake of job.Sealer.
type Seals struct{}

const mark = "sealed:"

// Seal implements job.Sealer.
func (Seals) Seal(plain []byte) ([]byte, error) {
	return []byte(mark + strings.ToUpper(string(plain))), nil
}

// Open implements job.Sealer.
func (Seals) Open(sealed []byte) ([]byte, error) {
	text, ok := strings.CutPrefix(string(sealed), mark)
	if !ok {
		return nil, fmt.Errorf("not sealed here")
	}
	return []byte(strings.ToLower(text)), nil
}

// NewID is a random UUID.
func NewID() string { return uuid.NewString() }

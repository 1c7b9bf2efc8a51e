package call

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// transactions of calls begin with this: they are no runs.
const prefix = "call-"

// AnswerBytes bounds the answers that are kept until they are handed over.
const AnswerBytes = 64 << 20

// Sender brings a blocking request to the agent of a node. NotFound: it is not connected. Unavailable: too much is on its way to be sent now.
type Sender interface {
	Ask(ctx context.Context, node fleet.Certname, r pxp.Request) error
}

// Question is an action that is asked of nodes.
type Question struct {
	Module  string
	Action  string
	Input   jsontext.Value   // an object; nil is an empty one
	Caller  string           // who asks, for policies and logs of nodes; empty: nobody says
	Nodes   []fleet.Certname // each once
	Timeout time.Duration    // from the moment that a node is asked to its answer
	Batch   int              // nodes that are asked at a time; 0: all
	Sleep   time.Duration    // between two batches
}

// By is how nodes are told that somebody asks.
func By(who fleet.Actor) string { return "tutti=" + who.Name }

// Caller asks questions. Start from New.
type Caller struct {
	sender Sender
	newID  func() string
	budget *semaphore.Weighted

	mu    sync.Mutex
	calls map[string]*round
}

// New returns a Caller; newID gives random UUIDs.
func New(sender Sender, newID func() string) *Caller {
	return &Caller{sender: sender, newID: newID, budget: semaphore.NewWeighted(AnswerBytes), calls: map[string]*round{}}
}

// Ask asks, and tells the answer of each node soon after it comes, together with others that came meanwhile. It returns when all are told, which
// is soon after ctx is done.
func (c *Caller) Ask(ctx context.Context, q Question, tell func([]action.Answer)) {
	batch := q.Batch
	if batch <= 0 {
		batch = len(q.Nodes)
	}
	for nodes := q.Nodes; len(nodes) > 0; {
		part := nodes[:min(batch, len(nodes))]
		nodes = nodes[len(part):]
		if ctx.Err() != nil {
			tellAll(part, action.Unasked, "the call ended before its turn", tell)
			continue
		}
		c.ask(ctx, q, part, tell)
		if len(nodes) > 0 {
			pause(ctx, q.Sleep)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func tellAll(nodes []fleet.Certname, code action.Code, why string, tell func([]action.Answer)) {
	answers := make([]action.Answer, len(nodes))
	for i, node := range nodes {
		answers[i] = action.Answer{Node: node, Code: code, Message: why}
	}
	tell(answers)
}

// ask asks one batch, and waits for it.
func (c *Caller) ask(ctx context.Context, q Question, nodes []fleet.Certname, tell func([]action.Answer)) {
	limited, cancel := context.WithTimeout(ctx, q.Timeout)
	r := newRound(limited, pxp.Request{Transaction: prefix + c.newID(), Module: q.Module, Action: q.Action, Params: q.Input, Caller: q.Caller}, nodes)
	c.open(r)
	defer func() {
		cancel()
		c.close(r)
	}()
	go r.send(limited, c.sender)
	for left := len(nodes); left > 0; {
		select {
		case a := <-r.answers:
			came := r.with(a)
			c.hand(came, tell)
			if left -= len(came); left > few {
				pause(limited, gathers)
			}
		case <-limited.Done():
			c.hand(r.end(ctx.Err() == nil), tell)
			return
		}
	}
}

// What is told together while more than a few have not answered: answers that came within so long, up to about so many bytes. To tell
// each of thousands alone costs more than to take it.
const (
	few      = 16
	gathers  = 2 * time.Millisecond
	together = 256 << 10
)

// hand hands over answers, and frees the room that they took.
func (c *Caller) hand(all []kept, tell func([]action.Answer)) {
	for len(all) > 0 {
		var answers []action.Answer
		var bytes int64
		for len(answers) < len(all) && bytes < together {
			next := all[len(answers)]
			answers, bytes = append(answers, next.Answer), bytes+next.bytes
		}
		all = all[len(answers):]
		tell(answers)
		if bytes > 0 {
			c.budget.Release(bytes)
		}
	}
}

func (c *Caller) open(r *round) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[r.request.Transaction] = r
}

func (c *Caller) close(r *round) {
	c.mu.Lock()
	delete(c.calls, r.request.Transaction)
	c.mu.Unlock()
	<-r.over
}

func (c *Caller) find(transaction string) *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[transaction]
}

// rounds are the calls that go on.
func (c *Caller) rounds() []*round {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*round
	for _, r := range c.calls {
		all = append(all, r)
	}
	return all
}

// Reply is what a node says: results, or a failure.
type Reply struct {
	Node        fleet.Certname // proved by its certificate
	Transaction string
	Results     jsontext.Value // of a response; of a failure, what an aborted action gave
	Failed      bool
	Description string // of a failure
	Code        uint8  // of a failure, as its agent says it; 0: it does not
}

// Answered takes what a node says; false: it is about no call. An answer that comes too late, or twice, is one to a call, too. It waits
// while there is no room, but not longer than the call goes on.
func (c *Caller) Answered(ctx context.Context, reply Reply) bool {
	if !strings.HasPrefix(reply.Transaction, prefix) {
		return false
	}
	r := c.find(reply.Transaction)
	if r == nil || !r.waitsFor(reply.Node) {
		return true
	}
	a := kept{Answer: answerOf(reply), bytes: int64(len(reply.Results) + len(reply.Description))}
	if a.bytes > AnswerBytes {
		a = kept{Answer: action.Answer{Code: action.Other, Message: "its answer is too large"}}
	}
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)() //nolint:contextcheck // it ends with the call, or with ctx
	if a.bytes > 0 && c.budget.Acquire(either, a.bytes) != nil {
		return true // the call is over
	}
	if !r.take(reply.Node, a) && a.bytes > 0 {
		c.budget.Release(a.bytes)
	}
	return true
}

// answerOf is a reply as an answer.
func answerOf(reply Reply) action.Answer {
	a := action.Answer{Node: reply.Node, Data: reply.Results}
	if !reply.Failed {
		return a
	}
	a.Code, a.Message = action.Other, reply.Description
	switch {
	case reply.Code > 0 && reply.Code <= uint8(action.Other):
		a.Code = action.Code(reply.Code)
	case strings.HasPrefix(reply.Description, pxp.UnknownModule), strings.HasPrefix(reply.Description, pxp.UnknownAction):
		a.Code = action.UnknownAction
	case strings.HasPrefix(reply.Description, pxp.Refused):
		a.Code = action.Aborted
	case strings.HasPrefix(reply.Description, pxp.InvalidInput):
		a.Code = action.InvalidData
	}
	return a
}

// Came hints that a node has connected: calls that wait for it ask it again. It never blocks.
func (c *Caller) Came(node fleet.Certname) {
	for _, r := range c.rounds() {
		r.came(node)
	}
}

// Went hints that the connection of a node has ended. It never blocks.
func (c *Caller) Went(node fleet.Certname) {
	for _, r := range c.rounds() {
		r.went(node)
	}
}

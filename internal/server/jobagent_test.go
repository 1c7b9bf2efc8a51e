package server

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// agent is a node's agent that survives connections and servers. It runs each transaction once.
type agent struct {
	name   fleet.Certname
	manner manner

	mu       sync.Mutex
	begun    map[string]int
	over     map[string]pxp.Outcome
	requests []pxp.Request
}

// manner is how an agent treats orders.
type manner struct {
	exit    int
	stdout  string
	silent  bool            // it says nothing
	twice   bool            // it says everything twice
	refuses string          // it answers with this failure
	holds   <-chan struct{} // runs end when it is closed; nil: at once
	speaks  wire.URI        // as whom; empty: as itself
}

func newAgent(name fleet.Certname, m manner) *agent {
	return &agent{name: name, manner: m, begun: map[string]int{}, over: map[string]pxp.Outcome{}}
}

// line is one connection of an agent to a broker.
type line struct {
	*agent
	session *broker.Session
	woken   chan struct{}
	gone    chan struct{}
	once    sync.Once
}

// Wake implements broker.Conn.
func (l *line) Wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// Close implements broker.Conn.
func (l *line) Close(broker.Farewell) { l.drop() }

// Oust implements broker.Conn. Who sees its connection go leaves.
func (l *line) Oust(func()) { l.drop() }

func (l *line) drop() { l.once.Do(func() { close(l.gone) }) }

// join connects an agent; it serves until the connection or the test ends.
func (a *agent) join(tb testing.TB, b *broker.Broker, serving *sync.WaitGroup) *line {
	tb.Helper()
	l := &line{agent: a, woken: make(chan struct{}, 1), gone: make(chan struct{})}
	who := broker.Presence{URI: agentOf(a.name), Certname: a.name, Version: wire.V2, Agent: "test-agent/1", Remote: "192.0.2.1:1"}
	ready := make(chan struct{})
	serving.Go(func() {
		<-ready
		for {
			select {
			case <-l.gone:
				return
			case <-l.woken:
				l.read()
			}
		}
	})
	session, err := b.Join(who, false, l)
	if err != nil {
		tb.Fatal(err)
	}
	l.session = session
	close(ready)
	return l
}

func (l *line) read() {
	for {
		m, ok := l.session.Next()
		if !ok {
			return
		}
		if m.Type == wire.ErrorMessage { // it was told off
			continue
		}
		r, err := pxp.ParseRequest(m.Data)
		if err != nil {
			panic(err) // the server sends good requests
		}
		if notify := bytes.Contains(m.Data, []byte(`"notify_outcome"`)); notify != (m.Type == wire.NonBlockingRequest) {
			panic("the original agent refuses a blocking request with notify_outcome, and a non-blocking one without")
		}
		l.mu.Lock()
		l.requests = append(l.requests, r)
		l.mu.Unlock()
		if l.manner.silent {
			continue
		}
		if m.Type == wire.BlockingRequest {
			l.answer(r)
		} else {
			l.obey(r)
		}
	}
}

// obey runs an order, once.
func (l *line) obey(r pxp.Request) {
	if l.manner.refuses != "" {
		l.say(wire.RPCError, pxp.Failure{Transaction: r.Transaction, ID: uuid.NewString(), Description: l.manner.refuses})
		return
	}
	l.mu.Lock()
	first := l.begun[r.Transaction] == 0
	if first {
		l.begun[r.Transaction]++
	}
	l.mu.Unlock()
	l.say(wire.ProvisionalResponse, pxp.Provisional{Transaction: r.Transaction})
	if !first {
		return
	}
	if l.manner.holds == nil {
		l.end(r.Transaction)
		return
	}
	go func() {
		<-l.manner.holds
		l.end(r.Transaction)
	}()
}

func (l *line) end(transaction string) {
	o := pxp.Outcome{ExitCode: l.manner.exit, Stdout: l.manner.stdout}
	l.mu.Lock()
	l.over[transaction] = o
	l.mu.Unlock()
	l.say(wire.NonBlockingResponse, pxp.Response{Transaction: transaction, Results: pxp.Data(o)})
}

// answer says how a transaction stands; this agent cannot stop one.
func (l *line) answer(r pxp.Request) {
	if r.Module != pxp.Status {
		l.say(wire.RPCError, pxp.Failure{Transaction: r.Transaction, ID: uuid.NewString(), Description: pxp.UnknownModule + ": " + r.Module})
		return
	}
	var about pxp.StatusParams
	if err := json.Unmarshal(r.Params, &about); err != nil {
		panic(err)
	}
	l.mu.Lock()
	s := pxp.StatusResults{Transaction: about.Transaction, Status: pxp.Unknown}
	if o, over := l.over[about.Transaction]; over {
		s.Status, s.ExitCode, s.Stdout = pxp.Success, &o.ExitCode, o.Stdout
		if o.ExitCode != 0 {
			s.Status = pxp.Failed
		}
	} else if l.begun[about.Transaction] > 0 {
		s.Status = pxp.Running
	}
	l.mu.Unlock()
	l.say(wire.BlockingResponse, pxp.Response{Transaction: r.Transaction, Results: pxp.Data(s)})
}

// say sends a message to the server.
func (l *line) say(messageType string, data any) {
	payload, err := wire.V2.Append(nil, wire.Message{ID: uuid.NewString(), Type: messageType, Sender: l.manner.speaks, Target: wire.Broker, Data: pxp.Data(data)})
	if err != nil {
		panic(err)
	}
	for range 1 + count(l.manner.twice) {
		l.session.Receive(context.Background(), payload, false)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

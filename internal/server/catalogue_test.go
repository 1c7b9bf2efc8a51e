package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// realAgent is the engine of an agent on connections without a network.
type realAgent struct {
	name   fleet.Certname
	engine *orders.Engine
	asked  func(what string)
	// lies changes what it says; nil: it tells the truth.
	lies func(m wire.Message) wire.Message
}

// realLine is one connection of such an agent.
type realLine struct {
	*realAgent
	session *broker.Session
	woken   chan struct{}
	gone    chan struct{}
	once    sync.Once
}

// newRealAgent has the modules of every agent, and external ones.
func newRealAgent(name fleet.Certname, asked func(string), external ...action.Module) *realAgent {
	spool, runner := (&machine.Machine{}).Boot()
	modules := append(orders.Modules(orders.Node{OS: "linux", Cache: &machine.Cache{}}), orders.Catalog(func(pxp.CatalogChange) {}))
	for _, m := range external {
		modules = append(modules, orders.Module{Name: m.Name, Description: &m})
	}
	return &realAgent{
		name: name, asked: asked,
		engine: orders.New(orders.Config{Spool: spool, Runner: runner, Log: slog.New(slog.DiscardHandler), Modules: modules}),
	}
}

// Wake implements broker.Conn.
func (a *realLine) Wake() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// Close implements broker.Conn.
func (a *realLine) Close(broker.Farewell) { a.once.Do(func() { close(a.gone) }) }

// Oust implements broker.Conn.
func (a *realLine) Oust(func()) { a.Close(broker.Farewell{}) }

// join connects the agent, which says at once what it is.
func (a *realAgent) join(t *testing.T, s *orderer) {
	t.Helper()
	l := &realLine{realAgent: a, woken: make(chan struct{}, 1), gone: make(chan struct{})}
	who := broker.Presence{URI: agentOf(a.name), Certname: a.name, Version: wire.V2, Agent: "tutti-agent/1.4.0", Remote: "192.0.2.1:1"}
	session, err := s.broker.Join(who, false, l)
	if err != nil {
		t.Fatal(err)
	}
	l.session = session
	a.engine.Connected(func(m wire.Message) error { l.say(m); return nil })
	l.say(a.engine.Introduction(pxp.AgentTold{Version: "1.4.0", OS: "linux", Arch: "amd64"}))
	s.serving.Go(func() {
		for {
			select {
			case <-l.gone:
				return
			case <-l.woken:
				l.read()
			}
		}
	})
}

func (a *realLine) say(m wire.Message) {
	if a.lies != nil {
		m = a.lies(m)
	}
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	text, err := wire.V2.Append(nil, m)
	if err != nil {
		panic(err) // messages of engines can be written
	}
	a.session.Receive(context.Background(), text, false)
}

func (a *realLine) read() {
	for {
		m, ok := a.session.Next()
		if !ok {
			return
		}
		if r, err := pxp.ParseRequest(m.Data); err == nil && a.asked != nil {
			a.asked(r.Module + " " + r.Action + " " + string(r.Params))
		}
		a.engine.Handle(context.Background(), m)
	}
}

func lamp(version string) action.Module {
	return action.Module{
		Name: "lamp", Description: "Switches lamps", Version: version, Provider: action.External,
		Actions: []action.Action{{Name: "on", Input: jsontext.Value(`{"type":"object"}`), Results: jsontext.Value(`{}`)}},
	}
}

// A fleet of 200 agents with three sets of modules, on a real broker and database: three lists are asked for, and the metadata of each module once.
// When all connect again, also to another process on the same data, nothing is asked. An agent that lies gives the answer to nobody's question.
func TestAFleetTellsItsModules(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard)
	running := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.catalogue.Run(ctx) // it ends with ctx
		}()
		return func() { cancel(); <-done }
	}
	stop := running()
	var mu sync.Mutex
	questions := map[string]int{}
	asked := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		questions[what]++
	}
	kinds := [][]action.Module{nil, {lamp("1.2")}, {lamp("1.10")}}
	agents := make([]*realAgent, 200)
	for i := range agents {
		agents[i] = newRealAgent(fleet.Certname(fmt.Sprintf("n%03d.example", i)), asked, kinds[i%3]...)
		agents[i].join(t, s)
	}
	own := len(agents[0].engine.Set())
	known := func() bool {
		modules := s.catalogue.Modules(func(fleet.Certname) bool { return true })
		count := 0
		for _, m := range modules {
			for _, v := range m.Versions {
				if v.Known {
					count++
				}
			}
		}
		return len(modules) == own+1 && count == own+2
	}
	for !known() {
		<-time.After(5 * time.Millisecond)
	}
	want := map[string]int{"modules list {}": 3, `modules describe {"name":"lamp"}`: 2}
	for _, l := range agents[0].engine.Set() {
		want[`modules describe {"name":"`+l.Name+`"}`] = 1
	}
	check := func(when string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, questions); diff != "" {
			t.Errorf("%s: questions (-want +got):\n%s", when, diff)
		}
	}
	check("at first")
	if having := s.catalogue.Having("lamp"); len(having) != 133 {
		t.Errorf("%d nodes have a lamp", len(having))
	}

	liar := newRealAgent("liar.example", nil, lamp("6.66"))
	liar.lies = func(m wire.Message) wire.Message {
		if m.Type == wire.BlockingResponse {
			said, err := pxp.ParseResponse(m.Data)
			if err != nil {
				t.Error(err)
			}
			m.Data = pxp.Data(pxp.Response{Transaction: said.Transaction, Results: pxp.Data(pxp.ListResults{Modules: pxp.Data(agents[0].engine.Set())})})
		}
		return m
	}
	told := make(chan struct{})
	liar.asked = func(string) { close(told) }
	liar.join(t, s)
	<-told
	if err := s.catalogue.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, set, there := s.catalogue.OfNode("liar.example"); !there || len(set) != 0 {
		t.Errorf("a list that is not of the digest is believed: %v", set)
	}

	again := func(when string) {
		t.Helper()
		for _, a := range agents {
			a.join(t, s)
		}
		s.catalogue.Step(t.Context())
		check(when)
	}
	again("connected again")
	before, err := s.store.Catalogue.Catalogue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stop()
	s.halt()
	s.start()
	stop = running()
	defer func() { stop() }()
	again("another process")
	after, err := s.store.Catalogue.Catalogue(t.Context())
	if err != nil || len(after.Agents) != 201 || len(after.Sets) != 3 || len(after.Modules) != own+2 {
		t.Errorf("%d agents, %d sets, %d modules, %v", len(after.Agents), len(after.Sets), len(after.Modules), err)
	}
	times := func(k []time.Time) map[time.Time]int {
		m := map[time.Time]int{}
		for _, at := range k {
			m[at]++
		}
		return m
	}
	var toldBefore, toldAfter []time.Time
	for i := range before.Agents {
		toldBefore, toldAfter = append(toldBefore, before.Agents[i].Told), append(toldAfter, after.Agents[i].Told)
	}
	if !maps.Equal(times(toldBefore), times(toldAfter)) {
		t.Error("rows were written though nothing changed")
	}
}

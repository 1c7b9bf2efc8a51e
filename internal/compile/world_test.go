package compile_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fleet"
)

const production = fleet.Environment("production")

// world is a dispatcher and a service over fakes.
type world struct {
	queue      *compiletest.Queue
	compiler   *compiletest.Compiler
	facts      *compiletest.Facts
	docs       *compiletest.Documents
	results    *compiletest.Results
	gate       *compiletest.Gate
	versions   *compiletest.Versions
	dispatcher *compile.Dispatcher
	service    *compile.Service
}

// fataler is a *testing.T or *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newWorld(t fataler, change ...func(*compile.DispatcherConfig, *compile.ServiceConfig)) *world {
	t.Helper()
	queue := compiletest.NewQueue()
	w := &world{
		queue: queue, compiler: compiletest.NewCompiler(), facts: &compiletest.Facts{Queue: queue}, docs: compiletest.NewDocuments(),
		results: &compiletest.Results{Queue: queue}, gate: &compiletest.Gate{}, versions: &compiletest.Versions{},
	}
	w.versions.Set(production, version1)
	dispatch, serve := compile.DefaultDispatcher("host:/data", 2), compile.DefaultService()
	for _, f := range change {
		f(&dispatch, &serve)
	}
	w.restart(t, dispatch, serve)
	return w
}

// restart makes new parts over the same stores, as a new process would.
func (w *world) restart(t fataler, dispatch compile.DispatcherConfig, serve compile.ServiceConfig) {
	t.Helper()
	var err error
	w.service, err = compile.NewService(compile.ServiceParts{
		Queue: w.queue, Versions: w.versions, Documents: w.docs, Wake: func() { w.dispatcher.Wake() }, Pauses: w.queue,
	}, serve)
	if err != nil {
		t.Fatalf("%v", err)
	}
	w.dispatcher = w.newDispatcher(t, nil, dispatch)
}

// newDispatcher makes one more of those that share the queue. A nil clock is this process's.
func (w *world) newDispatcher(t fataler, clock func() time.Time, config compile.DispatcherConfig) *compile.Dispatcher {
	t.Helper()
	d, err := compile.NewDispatcher(compile.DispatcherParts{
		Queue: w.queue, Compiler: w.compiler, Orders: compile.Orders{Inputs: w.facts}, Documents: w.docs,
		Results: w.results, Gate: w.gate, History: w.queue, Turns: w.queue, Finished: w.service.Finished, Now: clock,
	}, config)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d
}

// start runs the dispatcher; stop ends it and returns when it has ended.
func (w *world) start(ctx context.Context) (stop func()) { return run(ctx, w.dispatcher) }

func run(ctx context.Context, d *compile.Dispatcher) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// ask gives node facts, if it has none, and makes its question.
func (w *world) ask(node fleet.Certname, transaction string) compile.Ask {
	seq := w.facts.Seq(node)
	if seq == 0 {
		seq = w.facts.Set(node, `{"os":"debian"}`)
	}
	return compile.Ask{
		Node: node, Environment: production, FactsSeq: seq, Transaction: transaction,
		Trusted: json.RawMessage(`{"authenticated":"remote"}`), Static: true,
	}
}

// want wants a compilation of node that nobody waits for.
func (w *world) want(t fataler, node fleet.Certname, priority compile.Priority) compile.Compilation {
	t.Helper()
	c, err := w.queue.Want(context.Background(), compile.Want{
		Node: node, Environment: production, Version: version1, FactsSeq: w.ask(node, "").FactsSeq, Priority: priority, At: time.Now(),
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

func (w *world) row(t fataler, id int64) compile.Compilation {
	t.Helper()
	c, err := w.queue.Compilation(context.Background(), id)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// offer is of a worker that takes a row for a while.
func offer(worker string, lasts time.Duration) compile.Offer {
	now := time.Now()
	return compile.Offer{Worker: worker, Rows: 1, Worst: compile.Background, Now: now, Until: now.Add(lasts)}
}

var version1 = fleet.DigestOf([]byte("code"))

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/hint/bus/bustest"
	"github.com/tutti-project/tutti/internal/hint/natsbus/natsbustest"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/sql"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// mortal is a server's row that nobody renews any more once it is dead.
type mortal struct {
	*sql.Leases
	dead atomic.Bool
}

func (m *mortal) SeeServer(ctx context.Context, id string) (lease.Server, error) {
	if m.dead.Load() {
		return lease.Server{}, errors.New("this server is dead")
	}
	return m.Leases.SeeServer(ctx, id)
}

// joint is a server with its broker and its jobs, of several with the same records.
type joint struct {
	*parts
	roll *mortal
}

// anyContent is a store of content that servers share.
type anyContent struct{ cas.Store }

func (anyContent) Link(context.Context, fleet.Digest, string, bool) error {
	return errors.New("it is no directory")
}
func (anyContent) Guard(func() error) {}
func (anyContent) Close() error       { return nil }

// kill ends what others can notice of a server.
func (j *joint) kill(t *testing.T) {
	t.Helper()
	j.roll.dead.Store(true)
	if err := j.bus.Close(); err != nil {
		t.Error(err)
	}
}

// openJoint starts a server on records that others use, too.
func openJoint(t *testing.T, id, database, nats string, content cas.Store) *joint {
	t.Helper()
	c := settings.Default()
	c.Data, c.Database, c.NATSURL, c.JobReconnect, c.LogLevel = t.TempDir(), database, nats, time.Millisecond, "warn"
	p := &parts{id: id, log: newLogger(c, t.Output()), metrics: newMetrics()}
	p.config.Store(&c)
	p.blobs = anyContent{content}
	p.agents = openAgents(p)
	p.calls = call.New(sender{p.agents}, askID(p.id))
	var err error
	if p.store, err = sql.Open(t.Context(), c.Records(c.Data), p.log.Logger); err != nil {
		t.Fatal(err)
	}
	j := &joint{parts: p, roll: &mortal{Leases: p.store.Leases}}
	if err := j.roll.EnrolServer(t.Context(), lease.Server{ID: id, Address: "https://" + id, Version: "1"}); err != nil {
		t.Fatal(err)
	}
	if err = openBus(p, c); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := connectedElsewhere(t.Context(), id, p.store.Leases, p.store.Presence)
	if err != nil {
		t.Fatal(err)
	}
	if p.register, err = broker.OpenRegister(t.Context(), p.store.Attendances, elsewhere, p.log.Logger); err != nil {
		t.Fatal(err)
	}
	if p.catalogue, err = openCatalogue(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	jobs := job.DefaultSettings()
	jobs.Reconnect, jobs.Resend = time.Millisecond, time.Second
	p.jobs, err = job.New(job.Parts{
		Store: p.store.Jobs, Sender: sender{p.agents}, Resolver: named{}, Gate: everybody{}, Ends: nobodyEnded{}, NewID: uuid.NewString, Now: time.Now,
		Relay: p.relay, Log: p.log.Logger,
	}, jobs)
	if err != nil {
		t.Fatal(err)
	}
	p.openEvents()
	if err := p.openBroker(c, new(atomic.Bool)); err != nil {
		t.Fatal(err)
	}
	running := start(context.WithoutCancel(t.Context()), stage{
		"relay": p.relay.Run, "seats": p.broker.RunSeats, "broker": p.broker.Run, "answers": p.jobs.Run, "events": p.events.Run, "register": p.register.Run,
		"roll": lease.Attendance{
			Roll: j.roll, Server: lease.Server{ID: id, Address: "https://" + id, Version: "1"}, Every: lease.Shared().Renew, Log: p.log.Logger,
		}.Run,
	})
	t.Cleanup(func() {
		if err := running.stop(nil); err != nil {
			t.Error(err)
		}
		if err := p.bus.Close(); err != nil {
			t.Error(err)
		}
		_ = p.store.Close()
	})
	return j
}

// dispatch has a server dispatch jobs.
func (j *joint) dispatch(t *testing.T) {
	t.Helper()
	running := start(context.WithoutCancel(t.Context()), stage{"jobs": j.jobs.Dispatch})
	t.Cleanup(func() {
		if err := running.stop(nil); err != nil {
			t.Error(err)
		}
	})
}

// named is job.Resolver for jobs whose nodes are named.
type named struct{}

func (named) Resolve(_ context.Context, targets job.Targets) ([]fleet.Certname, error) {
	return targets.Nodes, nil
}

type everybody struct{}

func (everybody) Refused(context.Context, fleet.Actor, job.Spec, []fleet.Certname) (map[fleet.Certname]string, error) {
	return nil, nil
}

type nobodyEnded struct{}

func (nobodyEnded) Ended(context.Context, []fleet.Certname) (map[fleet.Certname]string, error) {
	return nil, nil
}

// puppetAgent is an agent that does at once what it is asked, as often as it is connected.
type puppetAgent struct {
	name    fleet.Certname
	session *broker.Session
	conn    *answering
	ran     *atomic.Int64 // orders, of all its connections
}

// answering is the connection of one.
type answering struct {
	brokertest.Conn
	agent *puppetAgent
	work  chan struct{}
}

func (c *answering) Wake() {
	select {
	case c.work <- struct{}{}:
	default:
	}
}

// connect connects an agent to a server.
func connect(t *testing.T, j *joint, name fleet.Certname, ran *atomic.Int64) *puppetAgent {
	t.Helper()
	a := &puppetAgent{name: name, ran: ran}
	a.conn = &answering{agent: a, work: make(chan struct{}, 1)}
	a.conn.Gone = true
	var err error
	a.session, err = j.broker.Join(broker.Presence{
		URI: agentOf(name), Certname: name, Version: wire.V2, Agent: ownAgent + "1", Remote: "192.0.2.1:1",
	}, false, a.conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-a.conn.work:
			case <-ctx.Done():
				return
			}
			for m, more := a.session.Next(); more; m, more = a.session.Next() {
				a.answer(ctx, m)
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return a
}

func (a *puppetAgent) answer(ctx context.Context, m wire.Message) {
	switch m.Type {
	case wire.NonBlockingRequest:
		a.ran.Add(1)
		r, _ := pxp.ParseRequest(m.Data)
		a.say(ctx, wire.ProvisionalResponse, pxp.Data(pxp.Provisional{Transaction: r.Transaction}))
		a.say(ctx, wire.NonBlockingResponse, pxp.Data(pxp.Response{Transaction: r.Transaction, Results: []byte(`{"exitcode":0,"stdout":"done"}`)}))
	case wire.BlockingRequest:
		r, _ := pxp.ParseRequest(m.Data)
		results := []byte(`{"at":"` + string(a.name) + `"}`)
		if r.Params != nil { // it gives back what it is given
			results = r.Params
		}
		a.say(ctx, wire.BlockingResponse, pxp.Data(pxp.Response{Transaction: r.Transaction, Results: results}))
	}
}

func (a *puppetAgent) say(ctx context.Context, kind string, data []byte) {
	text, err := wire.V2.Append(nil, wire.Message{ID: uuid.NewString(), Type: kind, Sender: agentOf(a.name), Target: wire.Broker, Data: data})
	if err == nil {
		a.session.Receive(ctx, text, false)
	}
}

// order orders a command on nodes.
func (j *joint) order(t *testing.T, nodes ...fleet.Certname) job.Job {
	t.Helper()
	made, err := j.jobs.Create(t.Context(), fleet.Actor{Name: "test", Kind: fleet.UserActor}, job.Spec{
		Kind: job.Command, Targets: job.Targets{Nodes: nodes}, Command: &job.CommandSpec{Command: "true"}, WaitOffline: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// ends waits for the end of a job, and returns how long it took.
func (j *joint) ends(t *testing.T, id int64) time.Duration {
	t.Helper()
	began := time.Now()
	bustest.Until(t, fmt.Sprint("job ", id, " ends"), func() bool {
		made, err := j.store.Jobs.Job(t.Context(), id)
		return err == nil && made.Status.Final()
	})
	runs, err := j.store.Jobs.Runs(t.Context(), id, job.RunPage{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.State != job.Succeeded {
			t.Errorf("the run on %s is %s: %s", r.Node, r.State, r.Reason)
		}
	}
	return time.Since(began)
}

// sees waits until a server knows that a node is connected, or not, and returns how long it took.
func (j *joint) sees(t *testing.T, node fleet.Certname, want bool) time.Duration {
	t.Helper()
	began := time.Now()
	bustest.Until(t, fmt.Sprintf("%s knows that %s is connected: %t", j.id, node, want), func() bool {
		_, there := sender{j.agents}.Connected(node)
		return there == want
	})
	return time.Since(began)
}

// startPostgres starts a PostgreSQL that ends with the test.
func startPostgres(t *testing.T) *rivals.Postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "tutti-postgres-") //nolint:usetesting // its user is another one, and must get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	postgres, err := rivals.StartPostgres(context.WithoutCancel(t.Context()), dir, "fsync=off", "shared_buffers=32MB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = postgres.Stop() })
	return postgres
}

// Two servers have one PostgreSQL and one NATS: what is ordered on one reaches nodes of the other, also while NATS is away, and after one died.
func TestTwoBrokersOnOneDatabase(t *testing.T) {
	t.Parallel()
	postgres := startPostgres(t)
	nats := natsbustest.Start(t, "")
	content := castest.New()
	a := openJoint(t, "a.example/1", postgres.URL("postgres"), nats.Config().URL, content)
	b := openJoint(t, "b.example/1", postgres.URL("postgres"), nats.Config().URL, content)
	a.dispatch(t)
	bustest.Until(t, "both are on the bus", func() bool { return a.bus.State().Up && b.bus.State().Up })

	// An order given on a, of nodes of both.
	var ran1, ran2, ran3 atomic.Int64
	connect(t, a, "web-1", &ran1)
	second := connect(t, b, "web-2", &ran2)
	t.Logf("a knows of b's node after %s", a.sees(t, "web-2", true))
	b.sees(t, "web-1", true)
	t.Logf("a job over both took %s", a.ends(t, a.order(t, "web-1", "web-2").ID))
	t.Logf("a job that was ordered on the other server took %s", b.ends(t, b.order(t, "web-1", "web-2").ID))

	// An action called on a is answered on b, and comes back.
	var answers []action.Answer
	a.calls.Ask(t.Context(), call.Question{Module: "m", Action: "a", Nodes: []fleet.Certname{"web-1", "web-2"}, Timeout: 20 * time.Second},
		func(some []action.Answer) { answers = append(answers, some...) })
	if len(answers) != 2 || slices.ContainsFunc(answers, func(x action.Answer) bool {
		return x.Code != action.Done || string(x.Data) != `{"at":"`+string(x.Node)+`"}`
	}) {
		t.Errorf("answers: %+v", answers)
	}

	// What is larger than NATS carries reaches the other server, and the answer to it comes back.
	large := jsontext.Value(`{"text":"` + strings.Repeat("x", 2*bus.MaxBytes) + `"}`)
	a.calls.Ask(t.Context(), call.Question{Module: "m", Action: "a", Nodes: []fleet.Certname{"web-2"}, Timeout: 20 * time.Second, Input: large},
		func(some []action.Answer) {
			if answer := some[0]; answer.Code != action.Done || string(answer.Data) != string(large) {
				t.Errorf("a large answer of another server's node: %v, %d bytes, want %d; %.200s", answer.Code, len(answer.Data), len(large), answer.Message)
			}
		})

	// The node comes again on a: b's connection ends.
	connect(t, a, "web-2", &ran2)
	bustest.Until(t, "the earlier connection is ended", second.conn.Ousted)
	if b.broker.Here(agentOf("web-2")) || !a.broker.Here(agentOf("web-2")) {
		t.Error("web-2 is where it was")
	}
	a.ends(t, a.order(t, "web-2").ID)

	// Many agents come at once.
	const storm = 10_000
	began := time.Now()
	for i := range storm {
		name := fleet.Certname(fmt.Sprintf("storm-%d", i))
		if _, err := b.broker.Join(broker.Presence{URI: agentOf(name), Certname: name, Version: wire.V2, Agent: ownAgent + "1"}, false,
			new(brokertest.Conn)); err != nil {
			t.Fatal(err)
		}
	}
	joined := time.Since(began)
	bustest.Until(t, "a knows of all", func() bool { return len(a.broker.Connected(wire.NewURI("*", "agent"))) == storm+2 })
	t.Logf("%d agents came within %s, and the other server knew of all after %s", storm, joined, time.Since(began))

	// The way of an order to another server.
	took := make([]time.Duration, 1000)
	for i := range took {
		began := time.Now()
		name := fleet.Certname(fmt.Sprintf("storm-%d", i))
		if err := (sender{a.agents}).Order(t.Context(), name, pxp.Request{Transaction: fmt.Sprint("t-", i), Module: "m", Action: "a"}); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	t.Logf("an order to another server takes %s, one of a hundred more than %s", took[500], took[990])

	// NATS is away: the records tell who is there. What cannot be delivered is, later.
	nats.Kill()
	bustest.Until(t, "it is away", func() bool { return !a.bus.State().Up && !b.bus.State().Up })
	connect(t, b, "web-3", &ran3)
	t.Logf("without NATS a knows of b's node after %s", a.sees(t, "web-3", true))
	waiting := a.order(t, "web-1", "web-3")
	bustest.Until(t, "the order on a is done", func() bool {
		made, err := a.store.Jobs.Job(t.Context(), waiting.ID)
		return err == nil && made.Counts[job.Succeeded] == 1
	})
	if err := (sender{a.agents}).Order(t.Context(), "web-3", pxp.Request{Transaction: "t"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an order to b without NATS: %v", err)
	}
	nats.Again()
	t.Logf("the order to b is done %s after NATS is back", a.ends(t, waiting.ID))
	if ran1.Load() != 3 || ran2.Load() != 3 || ran3.Load() != 1 {
		t.Errorf("orders ran %d, %d and %d times", ran1.Load(), ran2.Load(), ran3.Load())
	}

	// b dies.
	b.kill(t)
	noticed := a.sees(t, "web-3", false)
	t.Logf("a knows %s after b's death that its nodes are not connected", noticed)
	if noticed > lease.Shared().TTL+2*time.Second {
		t.Errorf("it took %s", noticed)
	}
}

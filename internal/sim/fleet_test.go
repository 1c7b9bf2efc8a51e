package sim_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/server"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/sim"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// house is a whole server in this process, and somebody who gives orders over its broker.
type house struct {
	url   string // https://localhost:PORT
	roots *x509.CertPool
	link  *connection.Link

	mu   sync.Mutex
	seen map[string]wire.Message // the last answer by transaction
	news chan struct{}
}

// open starts a server that ends with the test.
func open(t *testing.T) *house {
	t.Helper()
	c := settings.Default()
	c.Data, c.Listen, c.Autosign, c.BrokerControllers = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "all", []string{"ctl"}
	while(t, func(ctx context.Context) error {
		return server.Run(ctx, c, server.Options{Out: io.Discard, Err: io.Discard})
	})
	h := &house{seen: map[string]wire.Message{}, news: make(chan struct{}, 1), roots: x509.NewCertPool()}
	address := ""
	eventually(t, "the server answers", func() bool {
		text, err := os.ReadFile(filepath.Join(c.Data, api.AddressFile))
		address = strings.TrimSpace(string(text))
		return err == nil
	})
	h.url = "https://localhost" + address[strings.LastIndex(address, ":"):]
	ca, err := os.ReadFile(filepath.Join(c.Data, "ca", "ca_crt.pem"))
	if err != nil || !h.roots.AppendCertsFromPEM(ca) {
		t.Fatalf("the server's CA: %v", err)
	}
	return h
}

// while runs something until the test ends.
func while(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// fleet makes nodes that live until the test ends.
func (h *house) fleet(t *testing.T, nodes int, more func(*sim.Config)) *sim.Fleet {
	t.Helper()
	enroller, err := sim.NewEnroller(h.url, h.roots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(enroller.Close)
	c := sim.Config{
		URLs: []string{h.broker()}, Names: sim.Names(nodes, "test"), Identity: enroller.Enrol,
		FirstPause: 20 * time.Millisecond, LongestPause: 200 * time.Millisecond,
	}
	if more != nil {
		more(&c)
	}
	f := sim.New(c)
	if err := f.Enrol(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.controller(t, enroller)
	while(t, f.Run)
	if err := f.AwaitConnected(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (h *house) broker() string { return "wss" + strings.TrimPrefix(h.url, "https") }

// controller connects somebody who may give orders.
func (h *house) controller(t *testing.T, enroller *sim.Enroller) {
	t.Helper()
	identity, err := enroller.Enrol(t.Context(), "ctl")
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan struct{}, 100)
	h.link, err = connection.New(connection.Config{
		URLs: []string{h.broker()}, URI: "pcp://ctl/controller", TLS: sim.Fixed(identity), Log: slog.New(slog.DiscardHandler),
		Receive: h.receive, Connected: func() { connected <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	while(t, h.link.Run)
	<-connected
}

// receive keeps answers that say how a transaction ended.
func (h *house) receive(m wire.Message) {
	var data struct {
		Transaction string `json:"transaction_id"`
	}
	final := m.Type == wire.BlockingResponse || m.Type == wire.NonBlockingResponse || m.Type == wire.RPCError
	if !final || json.Unmarshal(m.Data, &data) != nil {
		return
	}
	h.mu.Lock()
	h.seen[data.Transaction] = m
	h.mu.Unlock()
	select {
	case h.news <- struct{}{}:
	default:
	}
}

func (h *house) answers() map[string]wire.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.seen)
}

// order sends a request; whether it arrives is open.
func (h *house) order(node, transaction, kind string, r pxp.Request) {
	r.Transaction, r.NotifyOutcome = transaction, true
	_ = h.link.Send(wire.Message{Type: kind, Target: wire.NewURI(node, "agent"), Data: pxp.Data(r)})
}

func command(line string) pxp.Request {
	return pxp.Request{Module: pxp.Command, Action: pxp.Run, Params: pxp.Data(pxp.CommandParams{Command: line})}
}

func TestSimulatedNodesAnswer(t *testing.T) {
	t.Parallel()
	h := open(t)
	f := h.fleet(t, 5, nil)
	if err := f.SendFacts(t.Context(), h.url); err != nil {
		t.Error(err)
	}
	for wave := range int64(3) {
		if err := f.SubmitFacts(t.Context(), h.url, wave+1); err != nil {
			t.Error(err)
		}
	}
	if err := f.SubmitFacts(t.Context(), h.url, 2); err == nil {
		t.Error("a wave that is late is accepted")
	}
	names, source := sim.Names(5, "test"), pxp.FileSource{Filename: "m/tasks/t.sh", SHA256: strings.Repeat("a", 64), URI: pxp.Source{Path: "/x"}}
	for name, c := range map[string]struct {
		request pxp.Request
		want    string
	}{
		"command": {command("hostname; exit 4"), `"exitcode":4,"stdout":"sim-0001.test\n"`},
		"task": {pxp.Request{Module: pxp.Task, Action: pxp.Run, Params: pxp.Data(pxp.TaskParams{
			Task: "m::t", Input: []byte(`{"exitcode":3,"who":"me"}`), Files: []pxp.FileSource{source},
		})}, `"exitcode":3,"stdout":"{\"node\":\"sim-0001.test\",\"parameters\":{`},
		"script": {
			pxp.Request{Module: pxp.Script, Action: pxp.Run, Params: pxp.Data(pxp.ScriptParams{Script: source, Arguments: []string{"5", "x"}})},
			`"exitcode":5,"stdout":"sim-0001.test t.sh 5 x\n"`,
		},
		"puppet": {
			pxp.Request{Module: pxp.Puppet, Action: pxp.Run, Params: pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: []string{}})},
			`"environment":"production","status":"`,
		},
	} {
		id := uuid.NewString()
		h.order(names[0], id, wire.NonBlockingRequest, c.request)
		eventually(t, name+" is answered", func() bool { return len(h.answers()[id].Data) > 0 })
		if got := string(h.answers()[id].Data); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if got := f.Recorder().Count(sim.Execution{Node: names[0], Transaction: id}).Begun; got != 1 {
			t.Errorf("%s: executed %d times for the recorder", name, got)
		}
	}
	id := uuid.NewString()
	h.order(names[1], id, wire.BlockingRequest, pxp.Request{Module: pxp.Ping, Action: pxp.Ping})
	eventually(t, "a ping is answered", func() bool { return h.answers()[id].Type == wire.BlockingResponse })
}

// seedVariable names the environment variable that repeats a schedule.
const seedVariable = "TUTTI_SIM_SEED"

func seed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d repeats this schedule", seedVariable, seed)
	return seed
}

// Requests are repeated until they are answered, while messages go astray and agents die.
// Whatever happens, no node executes a transaction twice, and every one is answered.
func TestNothingRunsTwiceWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	const nodes, orders = 25, 8
	seed, h := seed(t), open(t)
	f := h.fleet(t, nodes, func(c *sim.Config) {
		c.Seed, c.Faults = seed, sim.Faults{Drop: .08, Repeat: .1, Delay: .1, Cut: .03, MaxDelay: 100 * time.Millisecond}
	})
	due := map[string]string{} // node by transaction
	for i, name := range sim.Names(nodes, "test") {
		for k := range orders {
			due[fmt.Sprintf("%d-%d-%s", i, k, uuid.NewString())] = name
		}
	}
	all := maps.Clone(due)
	schedule := sim.Schedule(seed, sim.Plan{
		Mix: sim.Mix{sim.Cut: 8, sim.Crash: 12, sim.Reboot: 5, sim.Storm: 3, sim.Quiet: 4}, Nodes: nodes, Victims: nodes / 3, MaxWait: 150 * time.Millisecond,
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, step := range schedule {
			h.pass(step.Wait)
			f.Do(step)
			check(t, f, step)
		}
	}()
	for round := 0; len(due) > 0; round++ {
		if round == 600 {
			t.Fatalf("%d transactions are not answered", len(due))
		}
		for transaction, node := range due {
			if round%2 == 0 {
				h.order(node, transaction, wire.NonBlockingRequest, command("sleep 0.1; exit "+strconv.Itoa(len(transaction)%3)))
			} else { // an outcome that was dropped does not come again: ask
				h.ask(node, transaction)
			}
		}
		h.pass(100 * time.Millisecond)
		for transaction := range h.settled() {
			delete(due, transaction)
		}
	}
	<-done
	executed, _ := f.Recorder().Totals()
	if executed == 0 || executed > len(all) {
		t.Errorf("%d transactions were executed of %d", executed, len(all))
	}
	check(t, f, sim.Step{Kind: sim.Quiet})
}

// pass lets time pass; messages go on meanwhile.
func (h *house) pass(d time.Duration) {
	for end := time.After(d); ; {
		select {
		case <-h.news:
		case <-end:
			return
		}
	}
}

// ask asks how a transaction stands; the question's own transaction tells the answers apart.
func (h *house) ask(node, transaction string) {
	h.order(node, "ask-"+transaction, wire.BlockingRequest, pxp.Request{
		Module: pxp.Status, Action: pxp.Query, Params: pxp.Data(pxp.StatusParams{Transaction: transaction}),
	})
}

// settled is the transactions that are over for who ordered them.
func (h *house) settled() map[string]bool {
	over := map[string]bool{}
	for transaction, m := range h.answers() {
		asked, status := strings.CutPrefix(transaction, "ask-")
		if !status {
			over[transaction] = true
			continue
		}
		r, err := pxp.ParseResponse(m.Data)
		if err != nil {
			continue
		}
		var results pxp.StatusResults
		if err := json.Unmarshal(r.Results, &results); err == nil && results.Status != pxp.Running &&
			!strings.Contains(results.Stdout, "found no results directory") {
			over[asked] = true
		}
	}
	return over
}

func check(t *testing.T, f *sim.Fleet, after sim.Step) {
	t.Helper()
	if _, twice := f.Recorder().Totals(); len(twice) > 0 {
		t.Errorf("%s: executed twice: %v", after, twice)
	}
}

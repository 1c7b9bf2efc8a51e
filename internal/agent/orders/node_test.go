package orders_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
)

const controller wire.URI = "pcp://ops.example.com/controller"

// node is a machine with an agent's engine, and what it sent.
type node struct {
	t       *testing.T
	machine *machine.Machine
	cache   *machine.Cache
	change  func(*orders.Config)
	engine  *orders.Engine

	mu   sync.Mutex
	away bool
	sent []wire.Message
}

// start starts a node; the engine ends with the test.
func start(t *testing.T, change func(*orders.Config)) *node {
	t.Helper()
	n := &node{t: t, machine: &machine.Machine{}, cache: &machine.Cache{}, change: change}
	n.boot()
	n.connect()
	t.Cleanup(func() { n.engine.Close() })
	return n
}

// boot starts a new agent process, as after a kill.
func (n *node) boot() {
	n.t.Helper()
	n.make()
	if err := n.engine.Start(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) make() {
	spool, runner := n.machine.Boot()
	cfg := orders.Config{Spool: spool, Runner: runner, Log: slog.New(slog.DiscardHandler)}
	cfg.Modules = orders.Modules(orders.Node{OS: "linux", Shell: []string{"/bin/bash", "-c"}, Cache: n.cache, PuppetRun: []string{"/tutti", "puppet"}})
	if n.change != nil {
		n.change(&cfg)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.engine = orders.New(cfg)
}

// restart kills the agent and starts it again, connected.
func (n *node) restart() {
	n.t.Helper()
	n.mu.Lock()
	old := n.engine
	n.engine = nil
	n.mu.Unlock()
	n.machine.Crash()
	old.Close()
	n.boot()
	n.connect()
}

// connect gives the agent a connection, which ends with its process.
func (n *node) connect() {
	engine := n.engine
	n.engine.Connected(func(m wire.Message) error { return n.send(engine, m) })
}

func (n *node) send(from *orders.Engine, m wire.Message) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away || from != n.engine {
		return errors.New("not connected")
	}
	n.sent = append(n.sent, m)
	return nil
}

func (n *node) disconnect(away bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = away
}

// told is what was sent since the last call, each message as one line.
func (n *node) told() []string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	var lines []string
	for _, m := range n.sent {
		lines = append(lines, line(m))
	}
	n.sent = nil
	return lines
}

// line is a message as a test wants to read it: type, and what it says.
func line(m wire.Message) string {
	var data struct {
		Description string         `json:"description"`
		Results     jsontext.Value `json:"results"`
	}
	kind := strings.TrimPrefix(m.Type, wire.Names)
	switch m.Type {
	case wire.ProvisionalResponse:
		return kind
	case wire.ErrorMessage:
		return kind + " " + string(m.Data)
	}
	if err := json.Unmarshal(m.Data, &data); err != nil {
		return err.Error()
	}
	return kind + " " + data.Description + string(data.Results)
}

func (n *node) want(lines ...string) {
	n.t.Helper()
	if diff := cmp.Diff(lines, n.told()); diff != "" {
		n.t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func (n *node) request(kind, data string) {
	n.engine.Handle(n.t.Context(), wire.Message{ID: uuid.NewString(), Type: kind, Sender: controller, Data: jsontext.Value(data)})
}

// ask is a blocking request, order one that is not and wants its outcome.
func (n *node) ask(transaction, module, action, params string) {
	n.request(wire.BlockingRequest, fmt.Sprintf(`{"transaction_id":%q,"module":%q,"action":%q,"params":%s}`, transaction, module, action, params))
}

func (n *node) order(transaction, module, action, params string) {
	n.request(wire.NonBlockingRequest,
		fmt.Sprintf(`{"transaction_id":%q,"module":%q,"action":%q,"params":%s,"notify_outcome":true}`, transaction, module, action, params))
}

func (n *node) command(transaction string) {
	n.order(transaction, "command", "run", `{"command":"date"}`)
}

func (n *node) program(e machine.Ending) {
	n.machine.Program = func(string, orders.Command) machine.Ending { return e }
}

// pass lets time pass, which in a bubble costs none.
func pass(d time.Duration) { <-time.After(d) }

// wantAnyOrder is for messages that are sent at the same time.
func (n *node) wantAnyOrder(lines ...string) {
	n.t.Helper()
	got := n.told()
	slices.Sort(got)
	slices.Sort(lines)
	if diff := cmp.Diff(lines, got); diff != "" {
		n.t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func file(name string) string {
	return fmt.Sprintf(`{"filename":%q,"sha256":"%064x","uri":{"path":"/job-files/v1/x","params":{}}}`, name, len(name))
}

func taskParams(name, input string) string {
	return fmt.Sprintf(`{"task":%q,"input":%s,"files":[%s]}`, name, input, file("init.sh"))
}

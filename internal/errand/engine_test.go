package errand_test

import (
	"bytes"
	"context"
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

	"github.com/tutti-project/tutti/internal/errand"
	"github.com/tutti-project/tutti/internal/errand/errandtest"
	"github.com/tutti-project/tutti/internal/wire"
)

const controller wire.URI = "pcp://ops.example.com/controller"

// node is a machine with an agent's engine, and what it sent.
type node struct {
	t       *testing.T
	machine *errandtest.Machine
	cache   *errandtest.Cache
	change  func(*errand.Config)
	engine  *errand.Engine

	mu   sync.Mutex
	away bool
	sent []wire.Message
}

// start starts a node; the engine ends with the test.
func start(t *testing.T, change func(*errand.Config)) *node {
	t.Helper()
	n := &node{t: t, machine: &errandtest.Machine{}, cache: &errandtest.Cache{}, change: change}
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
	cfg := errand.Config{Spool: spool, Runner: runner, Log: slog.New(slog.DiscardHandler)}
	cfg.Modules = errand.Modules(errand.Node{OS: "linux", Shell: []string{"/bin/bash", "-c"}, Cache: n.cache, PuppetRun: []string{"/tutti", "puppet"}})
	if n.change != nil {
		n.change(&cfg)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.engine = errand.New(cfg)
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

func (n *node) send(from *errand.Engine, m wire.Message) error {
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
	n.request(wire.NonBlockingRequest, fmt.Sprintf(`{"transaction_id":%q,"module":%q,"action":%q,"params":%s,"notify_outcome":true}`, transaction, module, action, params))
}

func (n *node) command(transaction string) {
	n.order(transaction, "command", "run", `{"command":"date"}`)
}

func (n *node) program(e errandtest.Ending) {
	n.machine.Program = func(string, errand.Command) errandtest.Ending { return e }
}

// pass lets time pass, which in a bubble costs none.
func pass(d time.Duration) { <-time.After(d) }

// The order of checks, and the words of the original agent.
func TestAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.request(wire.BlockingRequest, "")
		n.request(wire.BlockingRequest, "null")
		n.want(`error_message "no data"`, `error_message "no data"`)
		n.request(wire.BlockingRequest, `{"module":"ping"}`)
		n.request(wire.BlockingRequest, `{"transaction_id":"../x","module":"ping","action":"ping"}`)
		n.request(wire.NonBlockingRequest, `{"transaction_id":"t","module":"command","action":"run"}`)
		n.want(`error_message "invalid data"`, `error_message "invalid data"`, `error_message "invalid data"`)
		n.ask("t", "cook", "soup", "{}")
		n.ask("t", "ping", "soup", "{}")
		n.order("t", "ping", "ping", "{}")
		n.order("t", "status", "query", "{}")
		n.ask("t", "echo", "echo", `{"argument":1}`)
		n.order("t", "command", "run", `{}`)
		n.want(
			"rpc_error_message unknown module: cook",
			"rpc_error_message unknown action 'soup' for module 'ping'",
			"rpc_error_message the module 'ping' supports only blocking PXP requests",
			"rpc_error_message the module 'status' supports only blocking PXP requests",
			"rpc_error_message invalid input for blocking 'echo echo' request (transaction t): invalid data: it is not what this message has",
			"rpc_error_message invalid input for non blocking 'command run' request (transaction t): field command: it is missing; it is a text with the command",
		)
		n.request(wire.BlockingRequest, `{"transaction_id":"t","module":"ping","action":"ping"}`)
		n.ask("t", "echo", "echo", `{"argument":"hé"}`)
		n.ask("t", "status", "query", `{"transaction_id":"nobody"}`)
		n.want(
			`rpc_blocking_response {"request_hops":[]}`,
			`rpc_blocking_response {"outcome":"hé"}`,
			`rpc_blocking_response {"transaction_id":"nobody","status":"unknown","stdout":"{\"_error\":{\"kind\":\"puppetlabs.pxp-agent/execution-error\",\"details\":{},\"msg\":\"found no results directory\"}}"}`,
		)
		n.request("http://puppetlabs.com/unheard_of", "{}")
		n.want()
	})
}

func TestCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		var ran errand.Command
		n.machine.Program = func(_ string, c errand.Command) errandtest.Ending {
			ran = c
			return errandtest.Ending{After: time.Minute, Exit: 3, Stdout: "out\n", Stderr: "err\xff"}
		}
		n.command("t1")
		n.want("rpc_provisional_response")
		n.ask("s", "status", "query", `{"transaction_id":"t1"}`)
		n.want(`rpc_blocking_response {"transaction_id":"t1","status":"running"}`)
		pass(time.Minute)
		n.want(`rpc_non_blocking_response {"exitcode":3,"stdout":"out\n","stderr":"err�"}`)
		n.ask("s", "status", "query", `{"transaction_id":"t1"}`)
		n.want(`rpc_blocking_response {"transaction_id":"t1","status":"failure","exitcode":3,"stdout":"out\n","stderr":"err�"}`)
		if diff := cmp.Diff(errand.Command{Path: "/bin/bash", Args: []string{"-c", "date"}, Timeout: 24 * time.Hour}, ran); diff != "" {
			t.Errorf("the command (-want +got):\n%s", diff)
		}
	})
}

func TestBlockingCommandLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.program(errandtest.Ending{After: time.Second, Stdout: "x"})
		for range 2 { // not deduplicated either
			n.ask("t1", "command", "run", `{"command":"date"}`)
			pass(2 * time.Second)
			n.want(`rpc_blocking_response {"exitcode":0,"stdout":"x"}`)
		}
		n.ask("s", "status", "query", `{"transaction_id":"t1"}`)
		if told := n.told(); len(told) != 1 || !strings.Contains(told[0], "found no results directory") {
			t.Errorf("a blocking request left something: %q", told)
		}
	})
}

func TestReplayedTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.program(errandtest.Ending{After: time.Minute})
		n.command("t1")
		n.command("t1")
		n.want("rpc_provisional_response", "rpc_provisional_response")
		n.restart()
		n.command("t1")
		n.want("rpc_provisional_response")
		pass(time.Minute)
		n.want(`rpc_non_blocking_response {"exitcode":0}`)
		n.command("t1")
		n.restart()
		n.command("t1")
		n.machine.Spoil("t1")
		n.command("t1")
		n.want("rpc_provisional_response", "rpc_provisional_response", "rpc_provisional_response")
		if started := n.machine.Started()["t1"]; started != 1 {
			t.Errorf("the transaction ran %d times", started)
		}
	})
}

func TestOutcomeWaitsForConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.program(errandtest.Ending{After: time.Minute, Stdout: "late"})
		n.command("t1")
		n.want("rpc_provisional_response")
		n.disconnect(true)
		pass(time.Hour)
		n.restart()
		n.want()
		n.disconnect(false)
		n.connect()
		n.want(`rpc_non_blocking_response {"exitcode":0,"stdout":"late"}`)
		n.restart()
		n.connect()
		n.want()
	})
}

// A connection that is too busy gets the outcome later, without a new one.
func TestOutcomeIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.disconnect(true)
		n.command("t1")
		synctest.Wait()
		n.disconnect(false)
		n.want()
		pass(time.Minute)
		n.want(`rpc_non_blocking_response {"exitcode":0}`)
	})
}

func TestWithoutNotifyOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.request(wire.NonBlockingRequest, `{"transaction_id":"t1","module":"command","action":"run","params":{"command":"date"},"notify_outcome":false}`)
		n.want("rpc_provisional_response")
		n.restart()
		n.want()
		n.ask("s", "status", "query", `{"transaction_id":"t1"}`)
		n.want(`rpc_blocking_response {"transaction_id":"t1","status":"success","exitcode":0}`)
	})
}

func TestRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *errand.Config) { c.MaxConcurrent = 1 })
		n.program(errandtest.Ending{After: time.Minute, Vanish: true})
		n.command("vanishes")
		n.command("waits")
		n.want("rpc_provisional_response", "rpc_provisional_response")
		n.restart()
		n.want("rpc_error_message Failed to execute the task for the non blocking 'command run' request (transaction waits). Error: the agent was restarted before this began; it will not begin any more")
		pass(time.Minute)
		n.want("rpc_error_message task process is not running, but no output is available")
		n.ask("s", "status", "query", `{"transaction_id":"vanishes"}`)
		if told := n.told(); len(told) != 1 || !strings.Contains(told[0], `"status":"unknown"`) || !strings.Contains(told[0], "task process is not running") {
			t.Errorf("a vanished program is %q", told)
		}
		if n.machine.Started()["waits"] != 0 {
			t.Error("what waited was started after the restart")
		}
	})
}

// Nobody waits for a blocking request of an agent that was killed: its program is stopped.
func TestBlockingRequestOfAKilledAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.program(errandtest.Ending{After: time.Hour})
		n.ask("t1", "command", "run", `{"command":"date"}`)
		synctest.Wait()
		n.restart()
		n.want()
		if busy := n.machine.Busy(); busy != 0 {
			t.Errorf("%d programs run on", busy)
		}
		spool, _ := n.machine.Boot()
		if list, err := spool.List(); err != nil || len(list) != 0 {
			t.Errorf("left: %v %v", list, err)
		}
	})
}

// An engine that was closed takes nothing more.
func TestClosedEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.engine.Close()
		n.command("t1")
		n.ask("t2", "ping", "ping", "{}")
		n.want()
		n.boot()
		n.connect()
		n.want()
		n.command("t1") // asked again, it is run
		n.want("rpc_provisional_response", `rpc_non_blocking_response {"exitcode":0}`)
	})
}

// Engines that have nothing to do hold no goroutine, even if nobody closes them: the
// bubble would not end with one left.
func TestManyIdleEngines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		modules := errand.Modules(errand.Node{OS: "linux", Cache: &errandtest.Cache{}})
		answers := 0
		for range 1000 {
			spool, runner := (&errandtest.Machine{}).Boot()
			e := errand.New(errand.Config{Spool: spool, Runner: runner, Modules: modules, Log: log})
			if err := e.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.Connected(func(wire.Message) error { answers++; return nil })
			data := jsontext.Value(`{"transaction_id":"t1","module":"command","action":"run","params":{"command":"date"},"notify_outcome":true}`)
			e.Handle(t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.NonBlockingRequest, Data: data})
			synctest.Wait()
		}
		if answers != 2000 {
			t.Errorf("%d answers", answers)
		}
	})
}

// BenchmarkIdleEngine tells what an engine costs that has nothing to do.
func BenchmarkIdleEngine(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	modules := errand.Modules(errand.Node{OS: "linux", Cache: &errandtest.Cache{}})
	b.ReportAllocs()
	var keep []*errand.Engine
	for b.Loop() {
		spool, runner := (&errandtest.Machine{}).Boot()
		keep = append(keep, errand.New(errand.Config{Spool: spool, Runner: runner, Modules: modules, Log: log}))
	}
	b.ReportMetric(float64(len(keep)), "engines")
}

func TestPuppetRunsOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *errand.Config) { c.MaxPuppetWaiting = 1 })
		n.program(errandtest.Ending{After: time.Minute, Stdout: `{"status":"unchanged"}` + "\n"})
		for _, id := range []string{"p1", "p2", "p3"} {
			n.order(id, "pxp-module-puppet", "run", `{"flags":[]}`)
		}
		n.want("rpc_provisional_response", "rpc_provisional_response",
			"rpc_error_message this node has too much to do already: 1 Puppet runs wait for the one that is running; order it again later")
		if n.machine.Busy() != 1 {
			t.Errorf("%d Puppet runs at a time", n.machine.Busy())
		}
		n.command("c1") // another lane
		synctest.Wait()
		if n.machine.Busy() != 2 {
			t.Errorf("a command waits for a Puppet run")
		}
		pass(time.Minute)
		n.wantAnyOrder("rpc_provisional_response", `rpc_non_blocking_response {"status":"unchanged"}`, `rpc_non_blocking_response {"exitcode":0,"stdout":"{\"status\":\"unchanged\"}\n"}`)
		n.order("p3", "pxp-module-puppet", "run", `{"flags":[]}`) // a copy that came late
		pass(time.Hour)
		n.want("rpc_provisional_response", `rpc_non_blocking_response {"status":"unchanged"}`)
		if diff := cmp.Diff(map[string]int{"p1": 1, "p2": 1, "c1": 1}, n.machine.Started()); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *errand.Config) { c.MaxConcurrent = 1 })
		cancel := func(id string) { n.ask("c", "transaction", "cancel", `{"transaction_id":"`+id+`","reason":"lunch"}`) }
		n.program(errandtest.Ending{After: time.Hour, Stdout: "half", Deaf: true})
		n.command("runs")
		n.command("waits")
		n.want("rpc_provisional_response", "rpc_provisional_response")
		cancel("waits")
		n.wantAnyOrder(`rpc_blocking_response {"transaction_id":"waits","status":"running"}`, "rpc_error_message cancelled: lunch")
		cancel("runs")
		n.want(`rpc_blocking_response {"transaction_id":"runs","status":"running"}`)
		n.restart() // what was asked is not forgotten
		cancel("runs")
		n.want(`rpc_blocking_response {"transaction_id":"runs","status":"running"}`)
		pass(errandtest.Grace)
		n.want(`rpc_non_blocking_response {"exitcode":137,"stdout":"half","ended":"cancelled"}`)
		cancel("runs")
		cancel("nobody")
		n.want(`rpc_blocking_response {"transaction_id":"runs","status":"failure"}`, `rpc_blocking_response {"transaction_id":"nobody","status":"unknown"}`)
		if diff := cmp.Diff(map[string]int{"runs": 1}, n.machine.Started()); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
	})
}

func TestCancelWhileItPrepares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.cache.Delay = time.Hour
		n.order("t1", "script", "run", `{"script":`+file("a.sh")+`,"arguments":[]}`)
		n.want("rpc_provisional_response")
		n.ask("c", "transaction", "cancel", `{"transaction_id":"t1"}`)
		n.wantAnyOrder(`rpc_blocking_response {"transaction_id":"t1","status":"running"}`, "rpc_error_message cancelled: no reason was given")
		if len(n.machine.Started()) != 0 {
			t.Error("it was started all the same")
		}
	})
}

func TestLongestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *errand.Config) { c.MaxRun = time.Hour })
		n.program(errandtest.Ending{After: 2 * time.Hour})
		n.command("t1")
		pass(time.Hour)
		n.want("rpc_provisional_response", `rpc_non_blocking_response {"exitcode":143,"ended":"timeout"}`)
		n.cache.Delay = 2 * time.Hour
		n.order("t2", "script", "run", `{"script":`+file("a.sh")+`,"arguments":[]}`)
		pass(time.Hour)
		n.want("rpc_provisional_response", "rpc_error_message stopped after its longest time: it had not begun by then")
	})
}

func TestOutputThatIsNotText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		for id, stdout := range map[string]string{"t1": "\xff", "t2": "a\x00b"} {
			n.program(errandtest.Ending{Stdout: stdout, Stderr: "fine\xff"})
			n.command(id)
			text := "The task executed for the non blocking 'command run' request (transaction " + id + ") returned invalid UTF-8 on stdout"
			n.want("rpc_provisional_response", "rpc_error_message "+text)
			n.ask("s", "status", "query", `{"transaction_id":"`+id+`"}`)
			n.want(`rpc_blocking_response {"transaction_id":"` + id + `","status":"failure","exitcode":0,"stdout":"{\"_error\":{\"kind\":\"puppetlabs.pxp-agent/execution-error\",\"details\":{},\"msg\":\"` + text + `\"}}","stderr":"fine�"}`)
		}
	})
}

func TestAnswerThatIsTooBig(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *errand.Config) { c.MaxMessageBytes = 100 })
		n.program(errandtest.Ending{Stdout: strings.Repeat("x", 100)})
		n.command("t1")
		n.want("rpc_provisional_response", "rpc_error_message Message size: 160 exceeded max-message-size 100")
	})
}

// A full disk: the order is refused, and a copy of it is not run when there is room again.
func TestFullSpool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		refused := "rpc_error_message Failed to execute the task for the non blocking 'command run' request (transaction t1). Error: the spool's disk is full"
		n.machine.Fill(true)
		n.command("t1")
		n.machine.Fill(false)
		n.command("t1")
		n.want(refused, refused)
		n.ask("b", "command", "run", `{"command":"date"}`)
		n.want(`rpc_blocking_response {"exitcode":0}`)
		n.program(errandtest.Ending{After: time.Minute})
		n.command("t2")
		n.want("rpc_provisional_response")
		n.machine.Fill(true) // its end cannot be kept; it is told all the same
		pass(time.Minute)
		n.want(`rpc_non_blocking_response {"exitcode":0}`)
		if diff := cmp.Diff(1, n.machine.Started()["t2"]+n.machine.Started()["t1"]); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
	})
}

func TestRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.command("old")
		n.command("spoilt")
		n.order("script", "script", "run", `{"script":`+file("a.sh")+`,"arguments":[]}`) // a file comes into the cache
		synctest.Wait()
		n.machine.Spoil("spoilt")
		n.program(errandtest.Ending{After: 20 * 24 * time.Hour})
		n.engine.Close()
		n.change = func(c *errand.Config) { c.Cache = n.cache }
		n.make()
		n.connect()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- n.engine.Run(ctx) }()
		pass(15 * 24 * time.Hour)
		n.told()
		for _, id := range []string{"old", "spoilt"} {
			n.ask("s", "status", "query", `{"transaction_id":"`+id+`"}`)
			if told := n.told(); len(told) != 1 || !strings.Contains(told[0], "found no results directory") {
				t.Errorf("%s is still there: %q", id, told)
			}
		}
		if left, err := n.cache.Purge(ctx, time.Now()); err != nil || left != 0 {
			t.Errorf("the cache still had %d files, %v", left, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy, err := errand.ParsePolicy("/etc/policy.yaml", []byte("requesters: ['pcp://ops.example.com/*']\nactions: [echo, task run]\ntasks: ['service', 'package::*']\n"))
		if err != nil {
			t.Fatal(err)
		}
		var audit bytes.Buffer
		n := start(t, func(c *errand.Config) {
			c.Policy = policy
			c.Audit = slog.New(slog.NewTextHandler(&audit, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
		})
		n.command("c1")
		n.order("t1", "task", "run", taskParams("exec", "{}"))
		n.order("t2", "task", "run", taskParams("package::install", `{"password":"hidden"}`))
		n.want(
			"rpc_error_message refused by this node's policy (/etc/policy.yaml): command run is not among its actions",
			"rpc_error_message refused by this node's policy (/etc/policy.yaml): task exec is not among its tasks",
			"rpc_provisional_response", `rpc_non_blocking_response {"exitcode":0}`)
		n.ask("t3", "ping", "ping", "{}")
		n.want(`rpc_blocking_response {"request_hops":[]}`)
		n.engine.Handle(t.Context(), wire.Message{ID: uuid.NewString(), Type: wire.BlockingRequest, Sender: "pcp://evil/x", Data: jsontext.Value(`{"transaction_id":"t4","module":"echo","action":"echo","params":{"argument":""}}`)})
		n.want("rpc_error_message refused by this node's policy (/etc/policy.yaml): pcp://evil/x may order nothing here")
		want := `level=INFO msg=order decision=refused requester=pcp://ops.example.com/controller module=command action=run transaction=c1 blocking=false reason="refused by this node's policy (/etc/policy.yaml): command run is not among its actions"
level=INFO msg=order decision=refused requester=pcp://ops.example.com/controller module=task action=run transaction=t1 blocking=false subject=exec reason="refused by this node's policy (/etc/policy.yaml): task exec is not among its tasks"
level=INFO msg=order decision=accepted requester=pcp://ops.example.com/controller module=task action=run transaction=t2 blocking=false subject=package::install
level=INFO msg=order decision=answered requester=pcp://ops.example.com/controller module=ping action=ping transaction=t3 blocking=true
level=INFO msg=order decision=refused requester=pcp://evil/x module=echo action=echo transaction=t4 blocking=true reason="refused by this node's policy (/etc/policy.yaml): pcp://evil/x may order nothing here"
`
		if diff := cmp.Diff(want, audit.String()); diff != "" {
			t.Errorf("audit log (-want +got):\n%s", diff)
		}
	})
}

func TestPolicyFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "",
		"tasks: []":                   "",
		"task: [a]":                   "not found in type",
		"requesters: [me]":            "not of the form pcp://NAME/TYPE",
		"tasks: ['[']":                "is no pattern",
		"actions: {command: run}":     "cannot unmarshal",
		"tasks: [a]\n---\ntasks: [b]": "one document",
	} {
		_, err := errand.ParsePolicy("policy.yaml", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

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

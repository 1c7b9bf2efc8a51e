package orders_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
)

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
		var ran orders.Command
		n.machine.Program = func(_ string, c orders.Command) machine.Ending {
			ran = c
			return machine.Ending{After: time.Minute, Exit: 3, Stdout: "out\n", Stderr: "err\xff"}
		}
		n.command("t1")
		n.want("rpc_provisional_response")
		n.ask("s", "status", "query", `{"transaction_id":"t1"}`)
		n.want(`rpc_blocking_response {"transaction_id":"t1","status":"running"}`)
		pass(time.Minute)
		n.want(`rpc_non_blocking_response {"exitcode":3,"stdout":"out\n","stderr":"err�"}`)
		n.ask("s", "status", "query", `{"transaction_id":"t1"}`)
		n.want(`rpc_blocking_response {"transaction_id":"t1","status":"failure","exitcode":3,"stdout":"out\n","stderr":"err�"}`)
		if diff := cmp.Diff(orders.Command{Path: "/bin/bash", Args: []string{"-c", "date"}, Timeout: 24 * time.Hour}, ran); diff != "" {
			t.Errorf("the command (-want +got):\n%s", diff)
		}
	})
}

func TestBlockingCommandLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.program(machine.Ending{After: time.Second, Stdout: "x"})
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
		n.program(machine.Ending{After: time.Minute})
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
		n.program(machine.Ending{After: time.Minute, Stdout: "late"})
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
		n := start(t, func(c *orders.Config) { c.MaxConcurrent = 1 })
		n.program(machine.Ending{After: time.Minute, Vanish: true})
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
		n.program(machine.Ending{After: time.Hour})
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
		modules := orders.Modules(orders.Node{OS: "linux", Cache: &machine.Cache{}})
		answers := 0
		for range 1000 {
			spool, runner := (&machine.Machine{}).Boot()
			e := orders.New(orders.Config{Spool: spool, Runner: runner, Modules: modules, Log: log})
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
	modules := orders.Modules(orders.Node{OS: "linux", Cache: &machine.Cache{}})
	b.ReportAllocs()
	var keep []*orders.Engine
	for b.Loop() {
		spool, runner := (&machine.Machine{}).Boot()
		keep = append(keep, orders.New(orders.Config{Spool: spool, Runner: runner, Modules: modules, Log: log}))
	}
	b.ReportMetric(float64(len(keep)), "engines")
}

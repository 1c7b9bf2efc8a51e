package orders_test

import (
	"bytes"
	"context"
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

func TestPuppetRunsOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *orders.Config) { c.MaxPuppetWaiting = 1 })
		n.program(machine.Ending{After: time.Minute, Stdout: `{"status":"unchanged"}` + "\n"})
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
		n.wantAnyOrder("rpc_provisional_response", `rpc_non_blocking_response {"status":"unchanged"}`,
			`rpc_non_blocking_response {"exitcode":0,"stdout":"{\"status\":\"unchanged\"}\n"}`)
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
		n := start(t, func(c *orders.Config) { c.MaxConcurrent = 1 })
		cancel := func(id string) { n.ask("c", "transaction", "cancel", `{"transaction_id":"`+id+`","reason":"lunch"}`) }
		n.program(machine.Ending{After: time.Hour, Stdout: "half", Deaf: true})
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
		pass(machine.Grace)
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
		n := start(t, func(c *orders.Config) { c.MaxRun = time.Hour })
		n.program(machine.Ending{After: 2 * time.Hour})
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
			n.program(machine.Ending{Stdout: stdout, Stderr: "fine\xff"})
			n.command(id)
			text := strings.ReplaceAll(strings.ToValidUTF8(stdout, "�"), "\x00", "�")
			n.want("rpc_provisional_response", `rpc_non_blocking_response {"exitcode":0,"stdout":"`+text+`","stderr":"fine�"}`)
			n.ask("s", "status", "query", `{"transaction_id":"`+id+`"}`)
			n.want(`rpc_blocking_response {"transaction_id":"` + id + `","status":"success","exitcode":0,"stdout":"` + text + `","stderr":"fine�"}`)
		}
	})
}

func TestAnswerThatIsTooBig(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *orders.Config) { c.MaxMessageBytes = 100 })
		n.program(machine.Ending{Stdout: strings.Repeat("x", 100)})
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
		n.program(machine.Ending{After: time.Minute})
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
		n.program(machine.Ending{After: 20 * 24 * time.Hour})
		n.engine.Close()
		n.change = func(c *orders.Config) { c.Cache = n.cache }
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
		policy, err := orders.ParsePolicy("/etc/policy.yaml",
			[]byte("requesters: ['pcp://ops.example.com/*']\nactions: [echo, task run]\ntasks: ['service', 'package::*']\n"))
		if err != nil {
			t.Fatal(err)
		}
		var audit bytes.Buffer
		n := start(t, func(c *orders.Config) {
			c.Policy = policy
			audited(&audit)(c)
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
		n.engine.Handle(t.Context(), wire.Message{
			ID: uuid.NewString(), Type: wire.BlockingRequest, Sender: "pcp://evil/x",
			Data: jsontext.Value(`{"transaction_id":"t4","module":"echo","action":"echo","params":{"argument":""}}`),
		})
		n.want("rpc_error_message refused by this node's policy (/etc/policy.yaml): pcp://evil/x may order nothing here")
		want := `level=INFO msg=order decision=refused requester=pcp://ops.example.com/controller module=command action=run transaction=c1 blocking=false reason="refused by this node's policy (/etc/policy.yaml): command run is not among its actions"
level=INFO msg=order decision=refused requester=pcp://ops.example.com/controller module=task action=run transaction=t1 blocking=false subject=exec reason="refused by this node's policy (/etc/policy.yaml): task exec is not among its tasks"
level=INFO msg=order decision=accepted requester=pcp://ops.example.com/controller module=task action=run transaction=t2 blocking=false subject=package::install
level=INFO msg="order ended" requester=pcp://ops.example.com/controller module=task action=run transaction=t2 blocking=false status=success exit=0
level=INFO msg=order decision=answered requester=pcp://ops.example.com/controller module=ping action=ping transaction=t3 blocking=true
level=INFO msg=order decision=refused requester=pcp://evil/x module=echo action=echo transaction=t4 blocking=true reason="refused by this node's policy (/etc/policy.yaml): pcp://evil/x may order nothing here"
`
		if diff := cmp.Diff(want, audit.String()); diff != "" {
			t.Errorf("audit log (-want +got):\n%s", diff)
		}
	})
}

// An action that is off is done only where the policy names it among its extra actions; being among its actions is not enough.
func TestActionsThatAreOff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "rpc_error_message refused by this node's policy (/p): lamp smash is off; the node's owner allows it with extra_actions in the agent's policy.yaml",
		"actions: [lamp]":                      "rpc_error_message refused by this node's policy (/p): lamp smash is off; the node's owner allows it with extra_actions in the agent's policy.yaml",
		"extra_actions: [lamp on]":             "rpc_error_message refused by this node's policy (/p): lamp smash is off; the node's owner allows it with extra_actions in the agent's policy.yaml",
		"extra_actions: [lamp smash]":          `rpc_blocking_response {"done":true}`,
		"extra_actions: [lamp]":                `rpc_blocking_response {"done":true}`,
		"actions: []\nextra_actions: [lamp]\n": "rpc_error_message refused by this node's policy (/p): lamp smash is not among its actions",
	} {
		synctest.Test(t, func(t *testing.T) {
			policy, err := orders.ParsePolicy("/p", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			n := start(t, func(c *orders.Config) {
				c.Policy = policy
				c.Modules = []orders.Module{{
					Name: "lamp",
					Actions: map[string]orders.Action{"smash": {Off: true, Read: func(context.Context, orders.Order) (jsontext.Value, error) {
						return jsontext.Value(`{"done":true}`), nil
					}}},
				}}
			})
			n.ask("t", "lamp", "smash", "{}")
			n.want(want)
		})
	}
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
		_, err := orders.ParsePolicy("policy.yaml", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

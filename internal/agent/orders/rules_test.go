package orders_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
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
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// onlyAna lets nobody but tutti=ana ask for anything but echo.
type onlyAna struct{}

func (onlyAna) Allow(caller, module, action string) (bool, string) {
	return caller == "tutti=ana" || module == "echo", "rule 1 is against " + module + " " + action + " for " + caller
}

// audited lets an engine write its audit log into a text without times.
func audited(to *bytes.Buffer) func(*orders.Config) {
	return func(c *orders.Config) {
		c.Audit = slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
	}
}

func (n *node) from(caller, transaction, module, action, params string, blocking bool) {
	n.t.Helper()
	kind, notify := wire.NonBlockingRequest, `,"notify_outcome":true`
	if blocking {
		kind, notify = wire.BlockingRequest, ""
	}
	data := `{"transaction_id":"` + transaction + `","module":"` + module + `","action":"` + action + `","params":` + params + notify +
		`,"caller":"` + caller + `"}`
	n.engine.Handle(n.t.Context(), wire.Message{ID: uuid.NewString(), Type: kind, Sender: "pcp:///server", Data: jsontext.Value(data)})
}

// Rules come after the policy file, whose word they cannot undo, and see who asks; who is not named is known by its address.
func TestRulesNarrow(t *testing.T) {
	t.Parallel()
	policy, err := orders.ParsePolicy("p.yaml", []byte("actions: [echo, command]"))
	if err != nil {
		t.Fatal(err)
	}
	policy.Rules = onlyAna{}
	for _, c := range []struct {
		order orders.Order
		want  string
	}{
		{orders.Order{Module: "command", Action: "run", Caller: "tutti=ana"}, ""},
		{orders.Order{Module: "command", Action: "run", Caller: "tutti=bob"}, "refused by this node's policy: rule 1 is against command run for tutti=bob"},
		{orders.Order{
			Module: "command", Action: "run", Requester: "pcp:///server",
		}, "refused by this node's policy: rule 1 is against command run for pcp:///server"},
		{orders.Order{Module: "script", Action: "run", Caller: "tutti=ana"}, "refused by this node's policy (p.yaml): script run is not among its actions"},
		{orders.Order{Module: "ping", Action: "ping", Caller: "tutti=bob"}, ""},
		{orders.Order{Module: "status", Action: "query", Caller: "tutti=bob"}, ""},
		{orders.Order{Module: "echo", Action: "echo", Caller: "tutti=bob"}, ""},
	} {
		got := ""
		if err := policy.Allow(c.order, ""); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.order, got, c.want)
		}
	}
}

// The audit log of a node has who asked, what was decided, and how it ended, also when that is seen by a later process.
func TestTheEndIsAudited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var audit bytes.Buffer
		modules := orders.Module{Name: "lamp", Actions: map[string]orders.Action{
			"on": {Do: func(context.Context, orders.Order) (orders.Output, error) {
				return orders.Output{}, &orders.Aborted{Message: "no bulb"}
			}},
			"read": {Read: func(context.Context, orders.Order) (jsontext.Value, error) { return nil, errors.New("secret") }},
		}}
		n := start(t, func(c *orders.Config) {
			audited(&audit)(c)
			c.Modules = append(c.Modules, modules)
		})
		n.from("tutti=ana", "t1", "command", "run", `{"command":"x"}`, false)
		n.told()
		n.program(machine.Ending{Exit: 3, After: time.Hour})
		n.from("tutti=ana", "t2", "command", "run", `{"command":"hidden"}`, false)
		n.told()
		n.restart()
		pass(2 * time.Hour)
		n.from("tutti=bob", "t3", "lamp", "on", `{"password":"hidden"}`, false)
		n.told()
		n.from("tutti=bob", "t4", "lamp", "read", `{}`, true)
		n.told()
		n.from("tutti=bob", "t5", "nothing", "read", `{}`, true)
		n.told()
		want := `level=INFO msg=order decision=accepted requester=pcp:///server caller="tutti=ana" module=command action=run transaction=t1 blocking=false
level=INFO msg="order ended" requester=pcp:///server caller="tutti=ana" module=command action=run transaction=t1 blocking=false status=success exit=0
level=INFO msg=order decision=accepted requester=pcp:///server caller="tutti=ana" module=command action=run transaction=t2 blocking=false
level=INFO msg="order ended" requester=pcp:///server caller="tutti=ana" module=command action=run transaction=t2 blocking=false status=failure exit=3
level=INFO msg=order decision=accepted requester=pcp:///server caller="tutti=bob" module=lamp action=on transaction=t3 blocking=false
level=INFO msg="order ended" requester=pcp:///server caller="tutti=bob" module=lamp action=on transaction=t3 blocking=false status=failure reason="no bulb"
level=INFO msg=order decision=failed requester=pcp:///server caller="tutti=bob" module=lamp action=read transaction=t4 blocking=true reason="Failed to execute the task for the blocking 'lamp read' request (transaction t4). Error: internal error; the log of the node's agent knows more"
level=INFO msg=order decision=refused requester=pcp:///server caller="tutti=bob" module=nothing action=read transaction=t5 blocking=true reason="unknown module: nothing"
`
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(audit.String(), "\n")); diff != "" {
			t.Errorf("audit log (-want +got):\n%s", diff)
		}
	})
}

// What an action says of itself is told with the code for that, also when no program was started, and by a later process.
func TestAbortedBeforeItBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		abort := func(context.Context, orders.Order) (orders.Command, error) {
			return orders.Command{}, &orders.Aborted{Message: "no bulb"}
		}
		n := start(t, func(c *orders.Config) {
			c.Modules = append(c.Modules, orders.Module{Name: "lamp", Actions: map[string]orders.Action{"on": {Prepare: abort}}})
		})
		n.disconnect(true)
		n.from("tutti=bob", "t1", "lamp", "on", `{}`, false)
		synctest.Wait()
		n.disconnect(false)
		n.restart()
		synctest.Wait()
		n.mu.Lock()
		sent := slices.Clone(n.sent)
		n.mu.Unlock()
		if len(sent) != 1 {
			t.Fatalf("sent %v", sent)
		}
		failure, err := pxp.ParseFailure(sent[0].Data)
		if err != nil || failure.Code != 1 || failure.Description != "no bulb" {
			t.Errorf("%s, %v", sent[0].Data, err)
		}
	})
}

package orders_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func run(transaction string) orders.Order {
	return orders.Order{Transaction: transaction, Module: pxp.Puppet, Action: pxp.Run, Params: jsontext.Value(`{"flags":[]}`)}
}

// What the node wants waits in the lane of what it is told, is told to nobody, and outlives the agent.
func TestTheNodesOwnOrders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *orders.Config) { c.MaxPuppetWaiting = 1; c.Policy.Actions = []string{} })
		n.program(machine.Ending{After: time.Minute, Stdout: `{"status":"changed"}`})
		begun := time.Now()
		for _, transaction := range []string{"first", "second"} {
			if err := n.engine.Begin(t.Context(), run(transaction)); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.engine.Begin(t.Context(), run("third")); fault.Of(err) != fault.Unavailable || !strings.HasPrefix(fault.Detail(err), pxp.Full) {
			t.Errorf("a third one: %v", err)
		}
		for err, want := range map[error]fault.Kind{
			n.engine.Begin(t.Context(), run("second")):                                                                             fault.Conflict,
			n.engine.Begin(t.Context(), orders.Order{Transaction: "x", Module: "cook", Action: "soup"}):                            fault.NotFound,
			n.engine.Begin(t.Context(), orders.Order{Transaction: "x", Module: pxp.Puppet, Action: pxp.Run, Params: []byte(`{}`)}): fault.Invalid,
			n.engine.Begin(t.Context(), orders.Order{Transaction: "x", Module: pxp.Ping, Action: pxp.Ping, Params: []byte(`{}`)}):  fault.Invalid,
		} {
			if fault.Of(err) != want {
				t.Errorf("got %v, want an error of kind %s", err, want)
			}
		}
		impatient, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, _, err := n.engine.Await(impatient, "first"); err == nil || impatient.Err() == nil {
			t.Errorf("who cannot wait got %v", err)
		}
		r, o, err := n.engine.Await(t.Context(), "second")
		if err != nil || r.Status != orders.Success || string(o.Stdout) != `{"status":"changed"}` || time.Since(begun) != 2*time.Minute {
			t.Errorf("after %s: %+v, %s, %v", time.Since(begun), r, o.Stdout, err)
		}
		if _, _, err := n.engine.Await(t.Context(), "nobody"); fault.Of(err) != fault.NotFound {
			t.Errorf("one that never was: %v", err)
		}
		n.want()

		if err := n.engine.Begin(t.Context(), run("adopted")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		old := n.engine
		n.restart()
		if _, _, err := old.Await(t.Context(), "adopted"); err == nil {
			t.Error("an engine that was closed knew the end")
		}
		if r, _, err := n.engine.Await(t.Context(), "adopted"); err != nil || r.Status != orders.Success {
			t.Errorf("the adopted one: %+v, %v", r, err)
		}
		n.want()
		n.engine.Close()
		if err := n.engine.Begin(t.Context(), run("late")); fault.Of(err) != fault.Unavailable {
			t.Errorf("a closed engine: %v", err)
		}
		if got := n.machine.Started(); got["first"] != 1 || got["third"] != 0 || got["adopted"] != 1 {
			t.Errorf("started %v", got)
		}
	})
}

func TestCatalogChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []pxp.CatalogChange
		n := start(t, func(c *orders.Config) {
			c.Modules = append(c.Modules, orders.Catalog(func(change pxp.CatalogChange) { told = append(told, change) }))
		})
		digest := strings.Repeat("ab", 32)
		n.ask("t", "catalog", "changed",
			`{"mode":"live","catalog":"`+digest+`","environment":"production","version":"v","uuid":"u","apply":"now","compiled_at":"2026-01-02T03:04:05Z","more":1}`)
		n.ask("t", "catalog", "changed", `{"mode":"live","catalog":"ab","environment":"production","version":"v","uuid":"u"}`)
		n.order("t", "catalog", "changed", `{}`)
		n.want("rpc_blocking_response {}",
			"rpc_error_message invalid input for blocking 'catalog changed' request (transaction t): field catalog: it must be 64 hexadecimal digits in lower case",
			"rpc_error_message the module 'catalog' supports only blocking PXP requests")
		want := []pxp.CatalogChange{{CatalogPointer: pxp.CatalogPointer{
			Mode: "live", Catalog: digest, Environment: "production", Version: "v", UUID: "u", CompiledAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		}, Apply: pxp.ApplyNow}}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

// Only a run that asks for the cached catalog gets the one that the node keeps.
func TestCatalogOfAPuppetRun(t *testing.T) {
	t.Parallel()
	kept := &pxp.PuppetCatalog{Digest: "d"}
	for flags, want := range map[string]*pxp.PuppetCatalog{`["--noop"]`: nil, `["--noop","--use_cached_catalog"]`: kept} {
		m := orders.Modules(orders.Node{OS: "linux", PuppetRun: []string{"/run"}, Plugins: "/p", Reports: "/r", Catalog: func() *pxp.PuppetCatalog { return kept }})
		c, err := m[len(m)-1].Actions[pxp.Run].Prepare(t.Context(), orders.Order{Params: jsontext.Value(`{"flags":` + flags + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		var o pxp.PuppetOrder
		if err := json.Unmarshal(c.Input, &o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pxp.PuppetConfiguration{Puppet: "puppet", Catalog: want, Plugins: "/p", Reports: "/r"}, o.Configuration); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flags, diff)
		}
	}
}

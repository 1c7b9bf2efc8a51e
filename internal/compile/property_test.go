package compile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// act is one thing that happens to a running server, and how long it is quiet
// after it.
type act struct {
	what  string
	node  fleet.Certname
	quiet time.Duration
}

func acts(t *rapid.T) []act {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
		return act{
			what:  rapid.SampledFrom([]string{"ask", "ask", "ask", "want", "stage", "facts", "deploy", "restart", "steal", "busy", "shut", "pause"}).Draw(t, "what"),
			node:  fleet.Certname(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node")),
			quiet: time.Duration(rapid.SampledFrom([]int{0, 0, 1, 700, 3000, 20000}).Draw(t, "quiet")) * time.Millisecond,
		}
	}), 1, 25).Draw(t, "acts")
}

// scripts of a compiler that mostly works.
var scripts = map[string]compiletest.Script{
	"at once": compiletest.Gives(),
	"quick":   compiletest.Takes(300 * time.Millisecond),
	"slow":    compiletest.Takes(9 * time.Second),
	"hangs":   compiletest.Hangs(),
	"wrong":   compiletest.Fails(&compile.Error{Cause: compile.CauseCode, Message: "wrong"}),
	"broken":  compiletest.Fails(errors.New("broken")),
}

// TestEveryCompilationEnds: whatever happens, once it is quiet every row is done
// or failed within bounds; nothing but the queue's rows was compiled; every
// request was answered, or told when to come back.
func TestEveryCompilationEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		plan := acts(rt)
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"at once", "quick", "slow", "hangs", "wrong", "broken"}), 1, 6).Draw(rt, "scripts")
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			h := &history{world: newWorld(t, func(d *compile.DispatcherConfig, _ *compile.ServiceConfig) {
				d.Timeout = 30 * time.Second
			})}
			h.compiler.Play(inTurn(names))
			wrong = h.live(t.Context(), plan)
		})
		if len(wrong) > 0 {
			rt.Fatalf("%q", wrong)
		}
	})
}

// inTurn plays the named scripts round and round.
func inTurn(names []string) compiletest.Script {
	var mu sync.Mutex
	n := 0
	return func(ctx context.Context, o compile.Order) (compile.Outcome, error) {
		mu.Lock()
		s := scripts[names[n%len(names)]]
		n++
		mu.Unlock()
		return s(ctx, o)
	}
}

// history plays acts in a world and collects what went wrong.
type history struct {
	*world
	stop func()
	asks sync.WaitGroup
	mu   sync.Mutex
	bad  []string
	n    int
}

func (h *history) wrong(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bad = append(h.bad, fmt.Sprintf(format, args...))
}

func (h *history) Helper() {}

func (h *history) Fatalf(format string, args ...any) { h.wrong(format, args...) }

func (h *history) live(ctx context.Context, plan []act) []string {
	h.stop = h.start(ctx)
	for _, a := range plan {
		h.play(ctx, a)
		if a.quiet > 0 {
			<-time.After(a.quiet)
		}
		h.check()
	}
	h.queue.Fail(nil)
	h.gate.Set(compile.Idle)
	_ = h.queue.Resume(ctx, "")
	_ = h.queue.Resume(ctx, production)
	until(h, h.allEnded)
	h.check()
	h.asks.Wait()
	h.stop()
	h.checkSaved()
	if now, peak := h.compiler.Running(); now != 0 || peak > 2 {
		h.wrong("%d compile after the stop, %d at once before", now, peak)
	}
	return h.bad
}

func (h *history) play(ctx context.Context, a act) {
	h.n++
	switch a.what {
	case "ask":
		h.asks.Go(func() { h.request(ctx, a.node, fmt.Sprintf("t%d", h.n/3)) })
		synctest.Wait()
	case "want":
		_, _ = h.queue.Want(ctx, compile.Want{
			Node: a.node, Environment: production, Version: version1,
			FactsSeq: h.ask(a.node, "").FactsSeq, Priority: compile.Background, At: time.Now(),
		})
		h.dispatcher.Wake()
	case "stage":
		_, _ = h.queue.Want(ctx, compile.Want{
			Node: a.node, Environment: production, Version: version1,
			FactsSeq: h.ask(a.node, "").FactsSeq, Priority: compile.NewCode, At: time.Now(), Staged: true,
		})
		h.dispatcher.Wake()
	case "facts":
		h.facts.Set(a.node, fmt.Sprintf(`{"n":%d}`, h.n))
	case "deploy":
		h.versions.Set(production, fleet.DigestOf(fmt.Append(nil, h.n)))
	case "restart":
		h.stop()
		h.stop = h.start(ctx)
	case "steal": // what a second process would do whose clock is a minute ahead
		_, _ = h.queue.ReturnLeases(ctx, "", time.Now().Add(time.Minute), 3)
	case "busy":
		h.queue.Fail(fault.New(fault.Unavailable, "the store is busy"))
		<-time.After(1500 * time.Millisecond)
		h.queue.Fail(nil)
	case "shut":
		h.gate.Set(compile.Room(h.n % 3))
	case "pause":
		env := []fleet.Environment{"", production}[h.n/2%2]
		if h.n%2 == 0 {
			_ = h.queue.Pause(ctx, compile.Pause{Environment: env, By: "somebody", At: time.Now()})
		} else {
			_ = h.queue.Resume(ctx, env)
		}
	}
}

// request is what a node does: it asks once and takes what it is told.
func (h *history) request(ctx context.Context, node fleet.Certname, transaction string) {
	began := time.Now()
	ask := h.ask(node, transaction)
	answer, err := h.service.Catalog(ctx, ask)
	took, after := time.Since(began), fault.RetryAfter(err)
	failed, _ := errors.AsType[*compile.Error](err)
	switch {
	case took > 5*time.Second:
		h.wrong("%s waited %s", node, took)
	case err == nil && (len(answer.Catalog) == 0 || answer.Compilation.Node != node || answer.Compilation.FactsSeq < ask.FactsSeq):
		h.wrong("%s with facts %d was given %+v", node, ask.FactsSeq, answer.Compilation)
	case err == nil, failed != nil:
	case fault.Detail(err) == "the store is busy":
	case fault.Of(err) != fault.Unavailable || after < time.Second || after > 30*time.Second:
		h.wrong("%s was told %v, come back in %s", node, err, after)
	}
}

func (h *history) allEnded() bool {
	return !slices.ContainsFunc(h.queue.All(), func(c compile.Compilation) bool {
		return c.State == compile.Wanted || c.State == compile.Leased
	})
}

// checkSaved compares what became nodes' newest catalogs with the rows: every plain
// catalog did, no staged one.
func (h *history) checkSaved() {
	saved := map[int64]fleet.Digest{}
	for _, r := range h.results.Saved() {
		saved[r.Compilation.ID] = r.Compilation.Catalog
	}
	for _, c := range h.queue.All() {
		if c.State == compile.Done && c.Staged && saved[c.ID] != "" {
			h.wrong("the catalog of the staged row %d is its node's newest", c.ID)
		}
		if c.State == compile.Done && !c.Staged && saved[c.ID] != c.Catalog {
			h.wrong("the catalog of row %d is %s, its node's newest %s", c.ID, c.Catalog.Short(), saved[c.ID].Short())
		}
	}
}

// check looks at all rows as they are now.
func (h *history) check() {
	type key struct {
		node    fleet.Certname
		version fleet.Digest
	}
	wanted := map[key]bool{}
	for _, c := range h.queue.All() {
		k := key{c.Node, c.Version}
		if c.State == compile.Wanted && wanted[k] {
			h.wrong("%v is wanted twice", k)
		}
		if c.State == compile.Failed && !c.Staged && c.Catalog != "" {
			h.wrong("the failed row %d has a catalog", c.ID)
		}
		wanted[k] = wanted[k] || c.State == compile.Wanted
		if c.State == compile.Done && (c.Catalog == "" || c.UUID == "" || c.Err != nil) || c.State == compile.Failed && c.Err == nil {
			h.wrong("row %+v", c)
		}
	}
}

package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// endless is code whose catalogs never end: a function that loops in Ruby, where Puppet cannot stop it. It sleeps between, to leave the processors to others.
var endless = map[string]string{
	"manifests/site.pp": "loop::forever()\n",
	"modules/loop/lib/puppet/functions/loop/forever.rb": "Puppet::Functions.create_function(:'loop::forever') do\n" +
		"  def forever\n    sleep 0.1 while true\n  end\nend\n",
}

// loops has nodes of the environment bad wait for catalogs that never end, until each worker has one.
func (w *deliverWorld) loops(nodes, workers int, p compile.Priority) fleet.Digest {
	w.Helper()
	version := w.deployTo("bad", endless)
	for i := range nodes {
		node := fleet.Certname(fmt.Sprintf("bad-%d.example", i))
		w.facts(node, "bad")
		w.wantBad(node, version, p)
	}
	w.p.dispatch.Wake()
	w.until("all workers loop", func() bool {
		counts, err := w.p.store.Queue.Counts(w.Context())
		w.must(err)
		return slices.ContainsFunc(counts, func(n compile.Count) bool { return n.Environment == "bad" && n.Running == workers })
	})
	return version
}

func (w *deliverWorld) wantBad(node fleet.Certname, version fleet.Digest, p compile.Priority) {
	w.Helper()
	_, err := w.p.store.Queue.Want(w.Context(), compile.Want{Node: node, Environment: "bad", Version: version, FactsSeq: 1, Priority: p, At: time.Now()})
	w.must(err)
}

// Endless loops of one environment have all workers, and more nodes of it wait. A node of production is given its catalog
// while its agent is on the line, long before a compile of theirs may end.
func TestEndlessLoopsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		workers  int
		priority compile.Priority
	}{"two workers": {2, compile.Waited}, "one worker": {1, compile.Waited}, "previews": {2, compile.Previewing}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDeliverWorld(t, func(c *settings.Config) {
				c.CompileWorkers, c.CompileSlice, c.CompilePatience = tt.workers, 3*time.Second, 90*time.Second
			})
			w.deploy(manifest("fair"))
			w.loops(4, tt.workers, tt.priority)
			w.gives("while others loop", heldNode, "fair on web")
			if got := w.p.dispatch.Stats(); got.Stopped == 0 || got.Failed != 0 {
				t.Errorf("loops were stopped %d times and ended %d times", got.Stopped, got.Failed)
			}
			w.facts(heldNode, "db")
			w.gives("while others loop, again", heldNode, "fair on db")
		})
	}
}

// A check of a deploy compiles the same loop: catalogs have workers of their own.
func TestACheckThatNeverEndsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t, func(c *settings.Config) { c.CompilePatience = 90 * time.Second })
	w.deploy(manifest("checked"))
	checks := bounded{w.p.ruby, make(chan struct{}, 1)}
	version := w.deployTo("bad", endless)
	for i := range 3 {
		node := fleet.Certname(fmt.Sprintf("bad-%d.example", i))
		w.facts(node, "bad")
		order, _, err := compile.Orders{Inputs: asTold{w.p.store.Facts}}.Build(t.Context(), compile.Compilation{Node: node, Environment: "bad", Version: version})
		w.must(err)
		go func() { _, _ = checks.Compile(t.Context(), order) }() // it ends with the test
	}
	w.until("a check loops", func() bool { return len(checks.turns) == 1 })
	w.gives("while a check loops", heldNode, "checked on web")
	if got := w.p.dispatch.Stats(); got.Stopped != 0 {
		t.Errorf("%d were stopped", got.Stopped)
	}
}

// Compiles of an environment take too long again and again: it is slowed, shown by name, and free again with other code.
func TestSlowedEnvironmentIsShown(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t, func(c *settings.Config) { c.CompileTimeout = 5 * time.Second })
	version := w.loops(4, 1, compile.Waited)
	w.until("it is slowed", func() bool {
		slow, err := w.p.store.Queue.Slowdowns(t.Context())
		w.must(err)
		return len(slow) == 1 && slow[0].Environment == "bad" && slow[0].Timeouts == 3 && slow[0].Version == version
	})
	if got := w.slowedFigures(); got != "environment=bad kind=catalogs 3" {
		t.Errorf("the figures are %q", got)
	}
	if left, err := w.p.store.Queue.List(t.Context(), compile.Filter{State: compile.Wanted, Limit: 9}); err != nil || len(left) != 1 {
		t.Errorf("in its pause are wanted %+v, %v; want one", left, err)
	}
	mended := w.deployTo("bad", map[string]string{"manifests/site.pp": manifest("mended")})
	w.until("what is mended is compiled", func() bool { // on a busy machine it may take longer than its time, too: the node asks again
		w.wantBad("bad-0.example", mended, compile.Waited)
		w.p.dispatch.Wake()
		done, err := w.p.store.Queue.List(t.Context(), compile.Filter{Environment: "bad", State: compile.Done, Limit: 9})
		w.must(err)
		return len(done) > 0
	})
	if got := w.slowedFigures(); got != "" {
		t.Errorf("with other code the figures are %q", got)
	}
}

// slowedFigures are what metrics tell of slowed environments.
func (w *deliverWorld) slowedFigures() string {
	w.Helper()
	to := make(chan prometheus.Metric, 1000)
	queueFigures{w.p.store.Queue}.Collect(to)
	close(to)
	var lines []string
	for m := range to {
		if m.Desc() != slowedFigure {
			continue
		}
		var shown dto.Metric
		w.must(m.Write(&shown))
		line := ""
		for _, label := range shown.GetLabel() {
			line += label.GetName() + "=" + label.GetValue() + " "
		}
		lines = append(lines, fmt.Sprintf("%s%g", line, shown.GetGauge().GetValue()))
	}
	return strings.Join(lines, "\n")
}

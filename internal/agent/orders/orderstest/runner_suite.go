package orderstest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Programs is a runner under test, with the spool that it leaves output in.
type Programs struct {
	Spool  orders.Spool
	Runner orders.Runner
	// Restart returns both as the next agent process has them.
	Restart func() (orders.Spool, orders.Runner)
	// Command is a program that ends so. It writes its output when it begins.
	Command func(machine.Ending) orders.Command
	// Begun waits until the program at a place has begun.
	Begun func(t *testing.T, place string)
}

// RunRunner holds the runners that open returns to the port's contract. open is called
// once a test, and cleans up after itself.
func RunRunner(t *testing.T, open func(t *testing.T) Programs) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Programs){
		"a program leaves its output":            leavesOutput,
		"an exit code is kept":                   keepsExit,
		"a program outlives its agent":           outlives,
		"waiting ends with its context":          waitsNoLonger,
		"a program is stopped":                   isStopped,
		"a deaf program is killed":               isKilled,
		"a program is stopped by the next agent": isStoppedLater,
		"a program runs out of time":             runsOut,
		"nothing runs at a place":                nothingRuns,
		"a context that has ended starts none":   startsNone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func (p *Programs) start(t *testing.T, e machine.Ending, timeout time.Duration) (place string) {
	t.Helper()
	place, err := p.Spool.Begin(record("t1", 0))
	if err != nil {
		t.Fatal(err)
	}
	c := p.Command(e)
	c.Timeout = timeout
	if err := p.Runner.Start(t.Context(), place, c); err != nil {
		t.Fatal(err)
	}
	return place
}

func (p *Programs) restart() { p.Spool, p.Runner = p.Restart() }

// ended waits for the program, and returns what it left.
func (p *Programs) ended(t *testing.T, place string) orders.Output {
	t.Helper()
	if err := p.Runner.Wait(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if p.Runner.Alive(place) {
		t.Error("it is alive after it ended")
	}
	o, err := p.Spool.Output("t1")
	if err != nil || o.Exit == nil {
		t.Fatalf("it left %+v, %v: no exit code", o, err)
	}
	return o
}

func leavesOutput(t *testing.T, p Programs) {
	place := p.start(t, machine.Ending{Stdout: "some\nlines\n", Stderr: "and\x01errors"}, time.Minute)
	exit := 0
	want := orders.Output{Begun: true, Exit: &exit, Stdout: []byte("some\nlines\n"), Stderr: []byte("and\x01errors")}
	if diff := cmp.Diff(want, p.ended(t, place)); diff != "" {
		t.Errorf("the output (-want +got):\n%s", diff)
	}
}

func keepsExit(t *testing.T, p Programs) {
	place := p.start(t, machine.Ending{Exit: 42, After: 50 * time.Millisecond}, 0)
	if o := p.ended(t, place); *o.Exit != 42 || o.Ended != "" {
		t.Errorf("it left %d %q", *o.Exit, o.Ended)
	}
}

// long is longer than any test.
const long = time.Hour

func outlives(t *testing.T, p Programs) {
	place := p.start(t, machine.Ending{After: 300 * time.Millisecond, Stdout: "late"}, time.Minute)
	p.restart()
	if o := p.ended(t, place); string(o.Stdout) != "late" || *o.Exit != 0 {
		t.Errorf("it left %q %d", o.Stdout, *o.Exit)
	}
}

func waitsNoLonger(t *testing.T, p Programs) {
	place := p.start(t, machine.Ending{After: long}, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Runner.Wait(ctx, place); err == nil {
		t.Error("waiting did not end")
	}
	if !p.Runner.Alive(place) {
		t.Error("the program ended with the context")
	}
	p.stop(t, place)
	p.ended(t, place)
}

func (p *Programs) stop(t *testing.T, place string) {
	t.Helper()
	if err := p.Runner.Stop(place); err != nil {
		t.Fatal(err)
	}
}

func isStopped(t *testing.T, p Programs) {
	place := p.start(t, machine.Ending{After: long}, long)
	p.stop(t, place)
	p.stop(t, place) // again, while it ends
	if o := p.ended(t, place); *o.Exit != 143 || o.Ended != pxp.EndedByOrder {
		t.Errorf("it left %d %q", *o.Exit, o.Ended)
	}
	p.stop(t, place) // and when it has
}

func isKilled(t *testing.T, p Programs) {
	place := p.start(t, machine.Ending{After: long, Deaf: true, Stdout: "begun"}, long)
	p.Begun(t, place)
	p.stop(t, place)
	if o := p.ended(t, place); *o.Exit != 137 || o.Ended != pxp.EndedByOrder {
		t.Errorf("it left %d %q", *o.Exit, o.Ended)
	}
}

func isStoppedLater(t *testing.T, p Programs) {
	place := p.start(t, machine.Ending{After: long}, long)
	p.restart()
	p.stop(t, place)
	if o := p.ended(t, place); *o.Exit != 143 || o.Ended != pxp.EndedByOrder {
		t.Errorf("it left %d %q", *o.Exit, o.Ended)
	}
}

func runsOut(t *testing.T, p Programs) {
	place := p.start(t, machine.Ending{After: long}, time.Second)
	if o := p.ended(t, place); *o.Exit != 143 || o.Ended != pxp.EndedByTime {
		t.Errorf("it left %d %q", *o.Exit, o.Ended)
	}
}

func nothingRuns(t *testing.T, p Programs) {
	place, err := p.Spool.Begin(record("t1", 0))
	if err != nil {
		t.Fatal(err)
	}
	p.stop(t, place)
	if p.Runner.Alive(place) {
		t.Error("nothing is alive")
	}
	if err := p.Runner.Wait(t.Context(), place); err != nil {
		t.Error(err)
	}
	if o, err := p.Spool.Output("t1"); err != nil || o.Begun || o.Exit != nil {
		t.Errorf("nothing left %+v, %v", o, err)
	}
}

func startsNone(t *testing.T, p Programs) {
	place, err := p.Spool.Begin(record("t1", 0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Runner.Start(ctx, place, p.Command(machine.Ending{Stdout: "ran"})); err == nil {
		t.Fatal("it was started")
	}
	if err := p.Runner.Wait(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if o, err := p.Spool.Output("t1"); err != nil || strings.Contains(string(o.Stdout), "ran") {
		t.Errorf("it ran all the same: %+v, %v", o, err)
	}
}

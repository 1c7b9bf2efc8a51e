package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var plan = Plan{
	Mix: Mix{KillServer: 3, KillAgent: 4, Cut: 5, Crash: 6, Reboot: 2, Storm: 1}, Nodes: 50, Agents: 2, Victims: 10, MaxWait: time.Second,
}

func TestSeedGivesTheSameSchedule(t *testing.T) {
	t.Parallel()
	first := Schedule(7, plan)
	if diff := cmp.Diff(first, Schedule(7, plan)); diff != "" {
		t.Errorf("the same seed, another schedule (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, Schedule(8, plan)) {
		t.Error("another seed gives the same schedule")
	}
	got := Mix{}
	for _, step := range first {
		got[step.Kind]++
		most := map[Kind]int{KillAgent: 1, Cut: 10, Crash: 10, Reboot: 10}[step.Kind]
		if len(step.Nodes) > most || most > 0 && len(step.Nodes) == 0 || step.Wait > plan.MaxWait {
			t.Errorf("step out of bounds: %s", step)
		}
	}
	if diff := cmp.Diff(plan.Mix, got); diff != "" {
		t.Errorf("kinds of steps (-want +got):\n%s", diff)
	}
}

func TestSeedGivesMessagesTheSameFate(t *testing.T) {
	t.Parallel()
	faults := Faults{Drop: .1, Repeat: .1, Delay: .2, Cut: .05, MaxDelay: time.Second}
	draw := func(seed uint64, node int, way direction) (list []fate) {
		f := newFates(faults, seed, node, way)
		for range 2000 {
			list = append(list, f.next())
		}
		return list
	}
	same := cmp.AllowUnexported(fate{})
	first := draw(1, 2, toNode)
	if diff := cmp.Diff(first, draw(1, 2, toNode), same); diff != "" {
		t.Errorf("the same seed, another fate:\n%s", diff)
	}
	for _, other := range [][]fate{draw(2, 2, toNode), draw(1, 3, toNode), draw(1, 2, fromNode)} {
		if cmp.Equal(first, other, same) {
			t.Error("another seed, node or direction has the same fates")
		}
	}
	var drop, repeat, delay, cut int
	for _, f := range first {
		switch {
		case f.drop:
			drop++
		case f.repeat:
			repeat++
		case f.cut:
			cut++
		case f.delay > 0:
			delay++
		}
	}
	for name, got := range map[string][2]int{"dropped": {drop, 200}, "repeated": {repeat, 200}, "delayed": {delay, 400}, "cut": {cut, 100}} {
		if got[0] < got[1]*2/3 || got[0] > got[1]*3/2 {
			t.Errorf("%d of 2000 messages are %s, want about %d", got[0], name, got[1])
		}
	}
}

func TestNoFaultsMeansNone(t *testing.T) {
	t.Parallel()
	f := newFates(Faults{}, 1, 1, toNode)
	for range 100 {
		if got := f.next(); got != (fate{}) {
			t.Fatalf("fate %+v without faults", got)
		}
	}
}

package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Kind is what goes wrong in one step.
type Kind int

// Kinds of faults. The first three happen to processes, which whoever plays a
// schedule has to kill; a Fleet does the others.
const (
	KillServer Kind = iota
	KillAgent       // a real agent's process
	Quiet           // nothing: the system may catch up
	Cut             // connections of some nodes break, without a word
	Crash           // agents of some nodes die and start again; what they had started goes on
	Reboot          // some nodes start again: what their agents had started is gone
	Storm           // every node's connection breaks
)

var kindNames = [...]string{"kill server", "kill agent", "quiet", "cut", "crash", "reboot", "storm"}

func (k Kind) String() string { return kindNames[k] }

// Step is one fault and the time before it.
type Step struct {
	Kind  Kind
	Nodes []int // of the fleet; of the real agents for KillAgent
	Wait  time.Duration
}

func (s Step) String() string {
	if len(s.Nodes) == 0 {
		return fmt.Sprintf("after %s: %s", s.Wait, s.Kind)
	}
	return fmt.Sprintf("after %s: %s of %s", s.Wait, s.Kind, strings.Trim(fmt.Sprint(s.Nodes), "[]"))
}

// Mix is how often each kind comes in a schedule.
type Mix map[Kind]int

// Plan says what a schedule is made of.
type Plan struct {
	Mix     Mix
	Nodes   int           // of the fleet
	Agents  int           // real ones
	Victims int           // most nodes that one step hits
	MaxWait time.Duration // longest time before a step
}

// Schedule is the steps that seed gives, in order. The same seed and plan give the same steps.
func Schedule(seed uint64, p Plan) []Step {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it is to be repeatable
	var steps []Step
	for kind := KillServer; kind <= Storm; kind++ {
		for range p.Mix[kind] {
			steps = append(steps, Step{Kind: kind})
		}
	}
	random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for i := range steps {
		s := &steps[i]
		s.Wait = time.Duration(random.Int64N(int64(p.MaxWait) + 1)).Round(time.Millisecond)
		switch s.Kind {
		case KillAgent:
			s.Nodes = []int{random.IntN(p.Agents)}
		case Cut, Crash, Reboot:
			s.Nodes = random.Perm(p.Nodes)[:1+random.IntN(min(p.Victims, p.Nodes))]
		case KillServer, Quiet, Storm:
		}
	}
	return steps
}

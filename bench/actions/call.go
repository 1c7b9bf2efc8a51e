package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/sim"
)

// called is an action with its input.
type called struct {
	module, action string
	texts          map[string]string
}

var (
	readers = []called{
		{module: "rpcutil", action: "ping"},
		{module: "service", action: "status", texts: map[string]string{"service": "ssh"}},
	}
	writer = called{module: "service", action: "restart", texts: map[string]string{"service": "ssh"}}
)

// on names the case of a call of so many nodes.
func (a called) on(nodes int) string { return fmt.Sprintf("%s %s on %d", a.module, a.action, nodes) }

// oneIn nodes reconnects where some do.
const oneIn = 20

// read asks an action of all nodes that are connected, round after round.
func (b *bench) read(a called) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		names := b.connected()
		return b.watched(ctx, a.on(len(names)), len(names)*b.Rounds, func() (map[string]float64, error) {
			var took []time.Duration
			for range b.Rounds {
				start := time.Now()
				states, err := b.ask(ctx, a, names, nil)
				if err != nil {
					return nil, err
				}
				took = append(took, time.Since(start))
				if err := allOK(states); err != nil {
					return nil, err
				}
			}
			return tookIn(took), nil
		})
	}
}

// tookIn is the figures of calls that took so long.
func tookIn(took []time.Duration) map[string]float64 {
	latency := measure.Summarize(took)
	return map[string]float64{"calls": float64(latency.Count), "p50_s": latency.P50.Seconds(), "max_s": latency.Max.Seconds()}
}

// readCut is the same while connections of some nodes break: a tenth of the answers is there then. Those nodes come back, are asked again
// and answer, or are told as offline if it was not their turn yet; all others answer as ever.
func (b *bench) readCut(a called) func(context.Context) (measure.Row, error) {
	return func(ctx context.Context) (measure.Row, error) {
		names := b.connected()
		return b.watched(ctx, a.on(len(names))+", 5 % reconnect", len(names)*b.Rounds, func() (map[string]float64, error) {
			var took []time.Duration
			var cut, gone int
			for round := range b.Rounds {
				victims := map[string]bool{}
				start := time.Now()
				states, err := b.ask(ctx, a, names, func(answers int) {
					if answers == len(names)/10 {
						victims = b.cut(round)
					}
				})
				if err != nil {
					return nil, err
				}
				took = append(took, time.Since(start))
				cut += len(victims)
				for name := range victims {
					if states[name] == "offline" {
						gone++
						delete(states, name)
					}
				}
				if err := allOK(states); err != nil {
					return nil, err
				}
				for _, f := range b.fleets {
					if err := f.AwaitConnected(ctx, time.Time{}); err != nil {
						return nil, err
					}
				}
			}
			figures := tookIn(took)
			figures["cut"], figures["cut_ok"], figures["cut_gone"] = float64(cut), float64(cut-gone), float64(gone)
			return figures, nil
		})
	}
}

// cut breaks the connections of some nodes, and says of which. They are others in each round: an agent whose connection breaks soon after it was made
// pauses longer and longer.
func (b *bench) cut(round int) map[string]bool {
	victims := map[string]bool{}
	rest := b.names
	for i, f := range b.fleets {
		mine := rest
		if i == 0 {
			mine, rest = rest[:b.Some], rest[b.Some:]
		}
		var nodes []int
		for at := round % oneIn; at < len(mine); at += oneIn {
			nodes = append(nodes, at)
			victims[mine[at]] = true
		}
		f.Do(sim.Step{Kind: sim.Cut, Nodes: nodes})
	}
	return victims
}

// patience is how long nodes may take: those that reconnect do so within seconds, and a busy machine is slow.
const patience = time.Minute

// ask asks an action, and gives what each node is told as. Each is told exactly once, or it is an error. meanwhile is told how many
// answers there are.
func (b *bench) ask(ctx context.Context, a called, names []string, meanwhile func(answers int)) (map[string]string, error) {
	heard := tally{states: make(map[string]string, len(names))}
	request := api.ActionAskRequest{
		Module: a.module, Action: a.action, ActionInput: api.ActionInput{Texts: a.texts}, Targets: api.JobTargets{All: true}, Timeout: patience.Milliseconds(),
	}
	err := api.ActionAsk.Each(ctx, b.api, request, func(e api.ActionEvent) error {
		if err := heard.take(e); err != nil {
			return err
		}
		if e.Answer != nil && meanwhile != nil {
			meanwhile(len(heard.states))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return heard.states, heard.complete(names)
}

// tally is what was heard of a call.
type tally struct {
	asked  int
	states map[string]string // of nodes
}

func (t *tally) take(e api.ActionEvent) error {
	if e.Asked != nil {
		t.asked = e.Asked.Nodes
	}
	if e.Answer == nil {
		return nil
	}
	if _, twice := t.states[e.Answer.Node]; twice {
		return fmt.Errorf("%s is told twice: %w", e.Answer.Node, errTold)
	}
	t.states[e.Answer.Node] = e.Answer.State
	return nil
}

// complete says whether exactly these nodes were asked and told.
func (t *tally) complete(names []string) error {
	var lost []string
	for _, name := range names {
		if _, told := t.states[name]; !told {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 || t.asked != len(names) || len(t.states) != len(names) {
		return fmt.Errorf("of %d nodes %d were asked, %d are told, and %d are lost, %q first: %w", len(names), t.asked, len(t.states), len(lost),
			append(lost, "")[0], errTold)
	}
	return nil
}

var errTold = errors.New("not every node is told exactly once")

var errState = errors.New("a node did not answer as it does")

func allOK(states map[string]string) error {
	for name, state := range states {
		if state != "ok" {
			return fmt.Errorf("%s is told as %s: %w", name, state, errState)
		}
	}
	return nil
}

// act is an action that changes something, a job, round after round, to its last row.
func (b *bench) act(ctx context.Context) (measure.Row, error) {
	names := b.connected()
	return b.watched(ctx, writer.on(len(names)), len(names)*b.Rounds, func() (map[string]float64, error) {
		var took []time.Duration
		for range b.Rounds {
			start := time.Now()
			started, err := api.JobAction.Call(ctx, b.api, api.JobActionRequest{
				JobOrder: api.JobOrder{Targets: api.JobTargets{All: true}}, ActionInput: api.ActionInput{Texts: writer.texts}, Module: writer.module, Action: writer.action,
			})
			if err != nil {
				return nil, err
			}
			course, err := simfleet.Follow(ctx, b.api, start, started.Job.ID)
			if err != nil {
				return nil, err
			}
			took = append(took, course.Done)
			if err := b.fleets[0].Complete(ctx, b.api, started.Job.ID, names); err != nil {
				return nil, err
			}
		}
		return tookIn(took), nil
	})
}

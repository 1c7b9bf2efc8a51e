package factqueue_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/facts/factqueue/factqueuetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// node is an agent, the network and the server, with what must be stored in the end.
type node struct {
	t      *rapid.T
	store  *factqueuetest.Fake
	server *factqueue.Service
	values json.RawMessage // the node as it is
	base   json.RawMessage // the last set that was acknowledged
	number int64
	onWay  []submission // what may still arrive, once more or for the first time
	newest json.RawMessage
	latest int64 // number of the newest submission that was accepted
}

type submission struct {
	number int64
	whole  json.RawMessage
	base   fleet.Digest
	patch  facts.Patch
	after  json.RawMessage // what it leads to
}

func (n *node) draw(label string) json.RawMessage {
	values := map[string]any{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(n.t, label) {
		values[name] = map[string]int{"x": rapid.IntRange(0, 3).Draw(n.t, label), "y": rapid.IntRange(0, 1).Draw(n.t, label)}
	}
	text, err := json.Marshal(values)
	if err != nil {
		n.t.Fatal(err)
	}
	return text
}

func (n *node) make(whole bool) submission {
	n.number++
	s := submission{number: n.number, after: n.values}
	if whole || n.base == nil {
		s.whole = n.values
		return s
	}
	var err error
	if s.patch, err = facts.Difference(n.base, n.values); err != nil {
		n.t.Fatal(err)
	}
	s.base = fleet.DigestOf(n.base)
	return s
}

// arrive is a submission at the server; what it accepts must be stored in the end.
func (n *node) arrive(s submission) error {
	var err error
	var answer factqueue.Answer
	if s.whole != nil {
		answer, err = n.server.Put(n.t.Context(), set(s.number, string(s.whole)))
	} else {
		answer, err = n.server.Patch(n.t.Context(), factqueue.Patch{Set: set(s.number, ""), Base: s.base, Apply: s.patch.Apply})
	}
	if err != nil {
		if fault.Of(err) != fault.Conflict {
			n.t.Fatalf("submission %d: %v", s.number, err)
		}
		return err
	}
	if s.number > n.latest {
		n.latest, n.newest = s.number, s.after
		if answer.Digest != fleet.DigestOf(s.after) {
			n.t.Errorf("submission %d of %s was answered with another digest", s.number, s.after)
		}
	}
	return nil
}

// submit sends what the agent would, and hears the answer.
func (n *node) submit(whole bool) {
	s := n.make(whole)
	n.onWay = append(n.onWay, s)
	if n.arrive(s) == nil {
		n.base = s.after
	} else if s.whole == nil { // it is told to send all
		n.submit(true)
	}
}

func (n *node) check() {
	if err := n.server.Drain(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	stored, err := n.store.Facts(n.t.Context(), web)
	if n.newest == nil {
		return
	}
	if err != nil || string(stored.Values) != string(n.newest) {
		n.t.Fatalf("stored: %s (number %d), the newest accepted: %s (number %d), %v", stored.Values, stored.Number, n.newest, n.latest, err)
	}
}

func (n *node) restart() {
	var err error
	n.server, err = factqueue.New(n.t.Context(), factqueue.Parts{Store: n.store, Inventory: n.store, Watch: watch{}}, factqueue.Config{Direct: 1})
	if err != nil {
		n.t.Fatal(err)
	}
}

// Whatever is lost, repeated or overtaken, and whenever the server is restarted or a run
// brings facts: stored in the end is what was accepted last.
func TestTheNewestSetIsStoredInTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := &node{t: t, store: factqueuetest.NewFake(), values: json.RawMessage(`{}`)}
		n.restart()
		t.Repeat(map[string]func(*rapid.T){
			"change":     func(t *rapid.T) { n.t = t; n.values = n.draw("facts") },
			"difference": func(t *rapid.T) { n.t = t; n.submit(false) },
			"whole":      func(t *rapid.T) { n.t = t; n.submit(true) },
			"burst": func(t *rapid.T) {
				n.t = t
				free := n.server.Crowd()
				n.submit(rapid.Bool().Draw(t, "whole"))
				free()
			},
			"lost": func(t *rapid.T) { n.t = t; n.onWay = append(n.onWay, n.make(rapid.Bool().Draw(t, "whole"))) },
			"answer lost": func(t *rapid.T) {
				n.t = t
				s := n.make(rapid.Bool().Draw(t, "whole"))
				n.onWay = append(n.onWay, s)
				_ = n.arrive(s)
			},
			"late": func(t *rapid.T) {
				n.t = t
				if len(n.onWay) > 0 {
					_ = n.arrive(n.onWay[rapid.IntRange(0, len(n.onWay)-1).Draw(t, "which")])
				}
			},
			"run": func(t *rapid.T) {
				n.t = t
				facts := n.draw("facts of a run")
				if _, err := n.store.SaveFacts(t.Context(), factqueue.Set{Node: web, Values: facts, Digest: fleet.DigestOf(facts), AcceptedAt: time.Now()}); err != nil {
					t.Fatal(err)
				}
				n.newest = facts
			},
			"restart": func(t *rapid.T) { n.t = t; n.restart() },
			"drained": func(t *rapid.T) { n.t = t; n.check() },
		})
		n.t = t
		n.submit(false)
		n.check()
		if string(n.newest) != string(n.values) {
			t.Errorf("stored: %s, the node is %s", n.newest, n.values)
		}
	})
}

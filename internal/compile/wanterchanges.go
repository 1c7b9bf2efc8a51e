package compile

import (
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// noted considers what changed of nodes.
func (w *Wanter) noted(ctx context.Context, current map[fleet.Environment]fleet.Digest) error {
	for {
		changes, err := w.Store.NotedChanges(ctx, w.cfg.Batch)
		if err != nil || len(changes) == 0 {
			return err
		}
		if err := w.settle(ctx, current, changes); err != nil {
			return err
		}
		if len(changes) < w.cfg.Batch {
			return nil
		}
	}
}

// settle wants what follows from changes.
func (w *Wanter) settle(ctx context.Context, current map[fleet.Environment]fleet.Digest, changes []Change) error {
	look, err := w.look(ctx, current, changes)
	if err != nil {
		return err
	}
	var wants, late []Want
	var exports []Change
	for _, c := range changes {
		s, active := look.standings[c.Node]
		switch {
		case c.Kind == ExportsChanged:
			exports = append(exports, c)
		case !active || s.FactsSeq == 0:
		case c.Kind == FactsChanged:
			if look.matters(s, c.Details) {
				wants = merge(wants, look.want(ctx, s, NewFacts))
			}
		case c.Kind == NewlySigned:
			if w.OnSign() {
				wants = merge(wants, look.want(ctx, s, Signed))
			}
		case c.Kind == LateFinish:
			for _, want := range look.want(ctx, s, NewFacts) {
				want.Fresh = true
				late = append(late, want)
			}
		}
	}
	chained, err := w.chained(ctx)
	if err != nil {
		return err
	}
	for _, want := range late {
		chained.follow(want, chained.rounds(want.Node, want.Environment)+1, "what changes while it is compiled")
	}
	if len(exports) > 0 && w.Follow() {
		if err := w.follow(ctx, current, exports, chained); err != nil {
			return err
		}
	}
	if err := w.Store.SaveChains(ctx, chained.stopped); err != nil {
		return err
	}
	wants, chains := chained.join(wants)
	if err := w.Store.Settle(ctx, changes, wants, chains); err != nil {
		return err
	}
	w.wanted(wants)
	return ctx.Err()
}

// merge adds wants of nodes that are not wanted already, for another cause.
func merge(wants, more []Want) []Want {
	for _, f := range more {
		if !slices.ContainsFunc(wants, func(o Want) bool { return o.Node == f.Node && o.Environment == f.Environment }) {
			wants = append(wants, f)
		}
	}
	return wants
}

// look is what is needed to judge some nodes.
type look struct {
	*Wanter
	current   map[fleet.Environment]fleet.Digest
	standings map[fleet.Certname]Standing
	released  map[fleet.Certname]bool
	ruleFacts []string // that rules of groups look at
}

func (w *Wanter) look(ctx context.Context, current map[fleet.Environment]fleet.Digest, changes []Change) (*look, error) {
	l := &look{Wanter: w, current: current, standings: map[fleet.Certname]Standing{}}
	names := make([]fleet.Certname, 0, len(changes))
	for _, c := range changes {
		if c.Kind != ExportsChanged {
			names = append(names, c.Node)
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	standings, err := w.Standings.StandingsNamed(ctx, names)
	if err != nil {
		return nil, err
	}
	if err := w.prints.load(ctx, standings); err != nil {
		return nil, err
	}
	if l.released, err = w.inReleased(ctx, standings); err != nil {
		return nil, err
	}
	if w.Grouping != nil {
		if l.ruleFacts, err = w.Grouping.Facts(ctx); err != nil {
			return nil, err
		}
	}
	for _, s := range standings {
		l.standings[s.Node] = s
	}
	return l, nil
}

// matters says whether facts that changed may lead to another catalog.
func (l *look) matters(s Standing, facts []string) bool {
	if slices.Contains(facts, Anything) || slices.ContainsFunc(l.ruleFacts, func(name string) bool { return slices.Contains(facts, name) }) {
		return true
	}
	known := false
	for _, base := range []Base{s.Plain, s.Staged} {
		if left := l.prints.known[base.Inputs]; left != nil {
			known = true
			if left.reads(facts) {
				return true
			}
		}
	}
	return !known
}

// want is what a node needs if its catalog does not stand; none or one. What is being compiled with the facts that changed will do: a node that
// comes for the first time asks, too. Answers to what code asked are looked at elsewhere. What cannot be judged is wanted: then its
// compilation says what is wrong.
func (l *look) want(ctx context.Context, s Standing, p Priority) []Want {
	env, ok := l.environment(ctx, s)
	version := l.current[env]
	if !ok || version == "" {
		return nil
	}
	staged := l.released[s.Node]
	stands, err := l.Reuser.still(ctx, Wish{Node: s.Node, Environment: env, Version: version, Staged: staged || s.Held})
	if err != nil {
		l.Log.DebugContext(ctx, "catalog is wanted, whether the stored one stands is not known", "node", s.Node, "err", err)
	}
	if stands {
		return nil
	}
	return []Want{{
		Node: s.Node, Environment: env, Version: version, FactsSeq: s.FactsSeq, Priority: p, At: time.Now(), Staged: staged,
	}}
}

// environment is the one that a node belongs to now.
func (l *look) environment(ctx context.Context, s Standing) (fleet.Environment, bool) {
	if l.Grouping == nil {
		return s.Environment, true
	}
	env, err := l.Grouping.Environment(ctx, s.Node, s.Environment)
	if err != nil && fault.Of(err) != fault.NotFound {
		l.Log.WarnContext(ctx, "the environment of a node is not known, no catalog is compiled ahead", "node", s.Node, "err", err)
	}
	return env, err == nil
}

package compile

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Plan is who is touched by a version of an environment.
type Plan struct {
	Stands  []Standing // bases that do not stand for the version are zero
	Touched []Standing
}

// Touched judges how nodes stand to a version, as far as files go: the version is
// compared with each that a base stands for, a group of sources is judged once for
// each, and a node is touched if one of its groups is. A node without a base is
// touched if it has facts.
func (w *Wanter) Touched(ctx context.Context, env fleet.Environment, version fleet.Digest, standings []Standing) (Plan, error) {
	released, err := w.inReleased(ctx, standings)
	if err != nil {
		return Plan{}, err
	}
	if err := w.prints.load(ctx, toJudge(version, standings, released)); err != nil {
		return Plan{}, err
	}
	failing, err := w.Standings.Failing(ctx, env)
	if err != nil {
		return Plan{}, err
	}
	judgements := map[fleet.Digest]*judgement{}
	plan := Plan{Stands: make([]Standing, 0, len(standings))}
	for _, s := range standings {
		judged := s
		if judged.Plain, err = w.standing(ctx, env, version, s.Plain, judgements); err != nil {
			return Plan{}, err
		}
		judged.Staged = Base{}
		if released[s.Node] || s.Held {
			if judged.Staged, err = w.standing(ctx, env, version, s.Staged, judgements); err != nil {
				return Plan{}, err
			}
		}
		_, fails := slices.BinarySearch(failing, s.Node)
		over := s.Held && judged.Plain.Compilation != 0 && judged.Staged.Compilation == 0 // what it has is right again: wanted, its compilation ends the hold
		switch stands := judged.Plain.Compilation != 0 || judged.Staged.Compilation != 0; {
		case stands && !fails && !over:
			plan.Stands = append(plan.Stands, judged)
		case s.FactsSeq > 0:
			plan.Touched = append(plan.Touched, s)
		}
	}
	return plan, nil
}

// toJudge is standings with those bases alone whose files have to be compared: most stand for the
// version already when somebody asks how far it is.
func toJudge(version fleet.Digest, standings []Standing, released map[fleet.Certname]bool) []Standing {
	var left []Standing
	for _, s := range standings {
		if s.Plain.Version == version {
			s.Plain = Base{}
		}
		if s.Staged.Version == version || !released[s.Node] && !s.Held {
			s.Staged = Base{}
		}
		if s.Plain.Compilation != 0 || s.Staged.Compilation != 0 {
			left = append(left, s)
		}
	}
	return left
}

// standing is base if it stands for version, and else the zero Base.
func (w *Wanter) standing(
	ctx context.Context, env fleet.Environment, version fleet.Digest, base Base, judgements map[fleet.Digest]*judgement,
) (Base, error) {
	if base.Compilation == 0 || base.Version == version {
		return base, nil
	}
	j := judgements[base.Version]
	if j == nil {
		var err error
		if j, err = newJudgement(ctx, w.Reuser.Versions, w.prints, env, base.Version, version); err != nil {
			return Base{}, err
		}
		judgements[base.Version] = j
	}
	if ok, err := j.stands(ctx, base); !ok || err != nil {
		return Base{}, err
	}
	return base, nil
}

// deployed considers environments whose version is another one than was considered.
func (w *Wanter) deployed(ctx context.Context, current map[fleet.Environment]fleet.Digest) error {
	marks, err := w.Store.Marks(ctx)
	if err != nil {
		return err
	}
	known := map[fleet.Environment]Mark{}
	for _, m := range marks {
		known[m.Environment] = m
	}
	for _, env := range slices.Sorted(maps.Keys(current)) {
		mark := known[env]
		if mark.Version == current[env] && mark.Done {
			continue
		}
		if err := w.consider(ctx, env, current[env], mark); err != nil {
			return err
		}
	}
	return nil
}

// consider makes a version's plan and follows it, batch by batch.
func (w *Wanter) consider(ctx context.Context, env fleet.Environment, version fleet.Digest, from Mark) error {
	began := time.Now()
	standings, err := w.Standings.Standings(ctx, env)
	if err != nil {
		return err
	}
	plan, err := w.Touched(ctx, env, version, standings)
	if err != nil {
		return err
	}
	to := Mark{
		Environment: env, Version: version, Nodes: len(standings), Touched: len(plan.Touched), BeganAt: began, KnownFor: time.Since(began),
	}
	if from.Version == version { // a process before us got as far as that
		to.Upto, to.Touched, to.BeganAt, to.KnownFor = from.Upto, from.Touched, from.BeganAt, from.KnownFor
		plan.after(from.Upto)
	}
	w.Log.InfoContext(ctx, "new code considered", "environment", env, "version", version.Short(), "nodes", to.Nodes, "touched", to.Touched, "took", to.KnownFor)
	w.count.untouched.Add(uint64(len(plan.Stands)))
	for !to.Done {
		batch := plan.take(w.cfg.Batch)
		to.Done = len(plan.Stands)+len(plan.Touched) == 0
		if last := batch.last(); last > to.Upto {
			to.Upto = last
		}
		wants, err := w.wantAll(ctx, batch.Touched, version, NewCode)
		if err != nil {
			return err
		}
		if err := w.Store.Consider(ctx, Step{From: from, To: to, Wants: wants, Stands: batch.Stands}); err != nil {
			return passConflict(err)
		}
		w.wanted(wants)
		from = to
	}
	return nil
}

// wantAll wants catalogs of nodes in their environment.
func (w *Wanter) wantAll(ctx context.Context, nodes []Standing, version fleet.Digest, p Priority) ([]Want, error) {
	released, err := w.inReleased(ctx, nodes)
	if err != nil {
		return nil, err
	}
	wants := make([]Want, 0, len(nodes))
	for _, s := range nodes {
		wants = append(wants, Want{
			Node: s.Node, Environment: s.Environment, Version: version, FactsSeq: s.FactsSeq,
			Priority: p, At: time.Now(), Staged: released[s.Node],
		})
	}
	return wants, nil
}

// take cuts off the first n nodes by name.
func (p *Plan) take(n int) (first Plan) {
	for range n {
		switch {
		case len(p.Touched) > 0 && (len(p.Stands) == 0 || p.Touched[0].Node < p.Stands[0].Node):
			first.Touched, p.Touched = append(first.Touched, p.Touched[0]), p.Touched[1:]
		case len(p.Stands) > 0:
			first.Stands, p.Stands = append(first.Stands, p.Stands[0]), p.Stands[1:]
		}
	}
	return first
}

// after leaves only the nodes after one.
func (p *Plan) after(node fleet.Certname) {
	for _, list := range []*[]Standing{&p.Stands, &p.Touched} {
		at, found := slices.BinarySearchFunc(*list, node, func(s Standing, n fleet.Certname) int { return strings.Compare(string(s.Node), string(n)) })
		if found {
			at++
		}
		*list = (*list)[at:]
	}
}

// last is the last node by name.
func (p *Plan) last() (last fleet.Certname) {
	for _, list := range [][]Standing{p.Stands, p.Touched} {
		if n := len(list); n > 0 {
			last = max(last, list[n-1].Node)
		}
	}
	return last
}

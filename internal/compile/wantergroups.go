package compile

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// grouped considers groups whose revision is another one than was considered: it
// wants catalogs of the nodes that groups give something else than their catalogs
// read, or another environment.
func (w *Wanter) grouped(ctx context.Context, current map[fleet.Environment]fleet.Digest) error {
	if w.Grouping == nil {
		return nil
	}
	revision, err := w.Grouping.Revision(ctx)
	if err != nil {
		return err
	}
	version := fleet.Digest("groups-" + strconv.FormatInt(revision, 10))
	marks, err := w.Store.Marks(ctx)
	if err != nil {
		return err
	}
	var from Mark
	if i := slices.IndexFunc(marks, func(m Mark) bool { return m.Environment == "" }); i >= 0 {
		from = marks[i]
	}
	if from.Version == version && from.Done {
		return nil
	}
	began := time.Now()
	standings, err := w.Standings.Standings(ctx, "")
	if err != nil {
		return err
	}
	to := Mark{Version: version, Nodes: len(standings), BeganAt: began}
	if from.Version == version {
		to.Upto, to.Touched = from.Upto, from.Touched
		rest := Plan{Stands: standings}
		rest.after(from.Upto)
		standings = rest.Stands
	}
	for !to.Done {
		n := min(w.cfg.Batch, len(standings))
		wants, err := w.regroup(ctx, current, standings[:n])
		if err != nil {
			return err
		}
		if n > 0 {
			to.Upto = standings[n-1].Node
		}
		standings = standings[n:]
		to.Done = len(standings) == 0
		to.Touched += len(wants)
		to.KnownFor = time.Since(began)
		if err := w.Store.Consider(ctx, Step{From: from, To: to, Wants: wants}); err != nil {
			return passConflict(err)
		}
		w.wanted(wants)
		from = to
	}
	if to.Touched > 0 {
		w.Log.InfoContext(ctx, "changed groups considered", "nodes", to.Nodes, "touched", to.Touched, "took", to.KnownFor)
	}
	return nil
}

// regroup classifies some nodes.
func (w *Wanter) regroup(ctx context.Context, current map[fleet.Environment]fleet.Digest, standings []Standing) ([]Want, error) {
	if err := w.prints.load(ctx, standings); err != nil {
		return nil, err
	}
	released, err := w.inReleased(ctx, standings)
	if err != nil {
		return nil, err
	}
	l := &look{Wanter: w, current: current, released: released}
	var wants []Want
	for _, s := range standings {
		if s.FactsSeq == 0 || ctx.Err() != nil {
			continue
		}
		env, ok := l.environment(ctx, s)
		if version := current[env]; !ok || version == "" || env == s.Environment && w.givenStill(ctx, s, version) {
			continue
		}
		wants = append(wants, Want{
			Node: s.Node, Environment: env, Version: current[env], FactsSeq: s.FactsSeq,
			Priority: NewCode, At: time.Now(), Staged: released[s.Node], Fresh: true,
		})
	}
	return wants, ctx.Err()
}

// givenStill says whether groups give a node what one of its catalogs read.
func (w *Wanter) givenStill(ctx context.Context, s Standing, version fleet.Digest) bool {
	order, _, err := w.Reuser.Orders.Build(ctx, Compilation{Node: s.Node, Environment: s.Environment, Version: version})
	if err != nil {
		return false // its compilation says what is wrong
	}
	given := givenDigest(order)
	return slices.ContainsFunc([]Base{s.Plain, s.Staged}, func(b Base) bool {
		left := w.prints.known[b.Inputs]
		return left != nil && left.given == given
	})
}

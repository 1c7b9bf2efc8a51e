package release

import (
	"context"
	"fmt"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/parallel"
)

// recipients are the nodes of releases: what each has, what it may be given, and what it gets back.
type recipients struct {
	previews Previews
	delivery Delivery
}

// examine says whether a target may be given its catalog by a release now. What the release itself gave stays; inputs says
// whether what the catalog was compiled with has to be so still.
func (n recipients) examine(ctx context.Context, t Target, release int64, inputs bool) (Target, error) {
	has, err := n.delivery.Has(ctx, t.Node)
	switch {
	case err != nil:
		return t, err
	case release != 0 && has.Release == release && has.Catalog == t.Catalog.Digest:
		return t, nil // the server was stopped before it could say so
	case has.Refuses != "":
		return t.end(Refused, has.Refuses), nil
	case has.Catalog == t.Catalog.Digest && has.Version == t.Catalog.Version:
		return t, nil // somebody else gave it exactly that
	case has.Catalog != t.Base:
		return t.end(Superseded, otherCatalog(has, t)), nil
	case !inputs:
		return t, nil
	}
	why, err := n.previews.Stands(ctx, t.Node, t.Catalog)
	if why != "" && err == nil {
		t = t.end(Superseded, "its catalog would be another one by now: "+why)
	}
	return t, err
}

func otherCatalog(has Holding, t Target) string {
	text := fmt.Sprintf("it has catalog %s", has.Catalog.Short())
	switch {
	case has.Catalog == "":
		text = "it has no catalog any more"
	case has.Release != 0:
		text += fmt.Sprintf(" (generation %d, of release %d)", has.Generation, has.Release)
	case has.Generation != 0:
		text += fmt.Sprintf(" (generation %d)", has.Generation)
	}
	if t.Base == "" {
		return text + ", and had none"
	}
	return text + ", not " + t.Base.Short() + " as when it was looked at"
}

// give gives a target its catalog, or says why it takes none.
func (n recipients) give(ctx context.Context, r Release, t Target) (Target, error) {
	t, err := n.examine(ctx, t, r.ID, r.Kind == Forward)
	if err != nil || t.State.Final() {
		return t, err
	}
	generation, err := n.delivery.Give(ctx, t.Node, deliver.Order{Catalog: t.Catalog, Release: r.ID, By: r.Author, Why: r.why()})
	if fault.Is(err, fault.Conflict) {
		return t.end(Refused, fault.Detail(err)), nil
	}
	if err == nil {
		t.State, t.Generation = Sent, generation
	}
	return t, err
}

// lost is those of the targets that do not have any more what they were given, given again or ended: since then somebody may have given
// them something else, or the server was stopped while it spared them.
func (n recipients) lost(ctx context.Context, r Release, targets []Target) (changed []Target, err error) {
	now := make([]Target, len(targets))
	err = parallel.Each(len(targets), atOnce, func(i int) error {
		has, err := n.delivery.Has(ctx, targets[i].Node)
		if now[i] = targets[i]; err == nil && (has.Generation != targets[i].Generation || has.Catalog != targets[i].Catalog.Digest) {
			now[i], err = n.give(ctx, r, targets[i])
		}
		return err
	})
	for i, t := range now {
		if t != targets[i] {
			changed = append(changed, t)
		}
	}
	return changed, err
}

// restore gives a node back what it had before a release whose job has not run it: else its next run by schedule would apply what has just
// been stopped. A node that somebody else gave something meanwhile keeps that.
func (n recipients) restore(ctx context.Context, r Release, t Target) (Target, error) {
	has, err := n.delivery.Has(ctx, t.Node)
	if err != nil || has.Release != r.ID {
		return t, err
	}
	if has.Catalog == t.Catalog.Digest { // else the server was stopped before it could say so
		kept, err := n.delivery.Generations(ctx, t.Node)
		if err != nil {
			return t, err
		}
		had := before(kept, r.ID)
		if had < 0 {
			t.Reason += fmt.Sprintf("; it keeps generation %d, as none from before is kept", has.Generation)
			return t, nil
		}
		_, err = n.delivery.Give(ctx, t.Node, deliver.Order{
			Catalog: kept[had].Catalog, Release: r.ID, By: r.Author, Why: fmt.Sprintf("release %d did not run it: it has again what it had", r.ID),
		})
		switch kind := fault.Of(err); {
		case err == nil:
		case kind == fault.Internal || kind == fault.Unavailable:
			return t, err
		default: // it would be the same when tried again
			t.Reason += fmt.Sprintf("; it keeps generation %d: %s", has.Generation, fault.Detail(err))
			return t, nil
		}
	}
	t.Generation = 0
	t.Reason += "; it has again what it had"
	return t, nil
}

// restoreAll restores the nodes of targets that have ended without a run.
func (n recipients) restoreAll(ctx context.Context, r Release, targets []Target) error {
	return parallel.Each(len(targets), atOnce, func(i int) (err error) {
		targets[i], err = n.restore(ctx, r, targets[i])
		return err
	})
}

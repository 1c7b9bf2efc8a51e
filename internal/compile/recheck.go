package compile

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/catalog"
)

// maxDiffers is how many resources evidence names.
const maxDiffers = 20

// recheck is a compilation that checks a reused catalog.
type recheck struct {
	reuser *Reuser
	before Compilation // with its inputs
}

// recheck begins a check; nil when there is nothing to compare with: the node has
// another catalog by now, or one that may differ each time.
func (r *Reuser) recheck(ctx context.Context, c Compilation) *recheck {
	if r == nil || c.Checks == 0 {
		return nil
	}
	before, err := r.Store.Newest(ctx, c.Node, c.Environment)
	if err != nil || before.ID != c.Checks || before.Version != c.Version && before.Stands != c.Version || len(before.Inputs.Volatile) > 0 {
		return nil
	}
	return &recheck{r, before}
}

// compare ends a check with what the fresh compilation gave. Only if the reused
// catalog's inputs still hold must both be the same.
func (k *recheck) compare(ctx context.Context, order Order, fresh Compilation, document []byte) {
	if k == nil || fresh.Inputs == nil || len(fresh.Inputs.Volatile) > 0 {
		return
	}
	r := k.reuser
	now := Now{Engine: fresh.Inputs.Engine, Order: order, Asked: fresh.Inputs.Asked}
	if fresh.Catalog != k.before.Catalog {
		if ok, _ := Holds(k.before.Inputs, now); !ok {
			return
		}
	}
	r.count.checked.Add(1)
	if fresh.Catalog == k.before.Catalog {
		return
	}
	r.count.wrong.Add(1)
	stop := ReuseStop{
		Node: fresh.Node, Environment: fresh.Environment, Version: fresh.Version, At: time.Now(),
		Reused: k.before.Catalog, Fresh: fresh.Catalog, Inputs: k.before.Inputs.Digest(),
	}
	if old, err := r.Documents.Document(ctx, k.before.Catalog); err == nil {
		stop.Differs = catalog.Differing(old, document, maxDiffers)
	}
	r.Log.ErrorContext(ctx, "a catalog that was used again is not what a fresh compilation gives: no catalog of this node and version is used again",
		"node", stop.Node, "environment", stop.Environment, "version", stop.Version.Short(), "reused", stop.Reused.Short(), "fresh", stop.Fresh.Short(),
		"differs", stop.Differs, "inputs", stop.Inputs.Short(), "values", len(k.before.Inputs.Values), "sources", k.before.Inputs.Sources.Count(),
		"asked", len(k.before.Inputs.Asked))
	if err := r.Store.StopReuse(ctx, stop); err != nil {
		r.Log.ErrorContext(ctx, "that its catalogs must not be used again could not be stored", "node", stop.Node, "err", err)
	}
}

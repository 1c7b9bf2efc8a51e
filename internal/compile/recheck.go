package compile

import (
	"bytes"
	"context"
	"slices"
	"time"
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
		stop.Differs = differing(old, document)
	}
	r.Log.ErrorContext(ctx, "a catalog that was used again is not what a fresh compilation gives: no catalog of this node and version is used again",
		"node", stop.Node, "environment", stop.Environment, "version", stop.Version.Short(), "reused", stop.Reused.Short(), "fresh", stop.Fresh.Short(),
		"differs", stop.Differs, "inputs", stop.Inputs.Short(), "values", len(k.before.Inputs.Values), "sources", k.before.Inputs.Sources.Count(),
		"asked", len(k.before.Inputs.Asked))
	if err := r.Store.StopReuse(ctx, stop); err != nil {
		r.Log.ErrorContext(ctx, "that its catalogs must not be used again could not be stored", "node", stop.Node, "err", err)
	}
}

// differing names the resources in which two stored documents differ.
func differing(a, b []byte) []string {
	was, is := resourcesOf(a), resourcesOf(b)
	var names []string
	for name, text := range was {
		if !bytes.Equal(text, is[name]) {
			names = append(names, name)
		}
	}
	for name := range is {
		if was[name] == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = append(names, "the order of resources, or edges")
	}
	slices.Sort(names)
	return names[:min(maxDiffers, len(names))]
}

// resourcesOf is a document's resources by their references; exported ones begin
// with @@.
func resourcesOf(document []byte) map[string][]byte {
	found := map[string][]byte{}
	exported, catalog, err := Split(document)
	if err != nil {
		return found
	}
	add := func(prefix string, list []byte) {
		for _, resource := range elements(list) {
			var kind, title string
			for m := range members(resource) {
				switch string(m.name) {
				case `"type"`:
					kind = nameOf(m.value)
				case `"title"`:
					title = nameOf(m.value)
				}
			}
			found[prefix+kind+"["+title+"]"] = resource
		}
	}
	add("@@", exported)
	for m := range members(catalog) {
		if string(m.name) == `"resources"` {
			add("", m.value)
		}
	}
	return found
}

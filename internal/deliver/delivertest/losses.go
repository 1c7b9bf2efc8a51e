package delivertest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// losses is what a Fake keeps as deliver.LossStore.
type losses struct {
	all  []deliver.Loss
	lets []let
	has  map[fleet.Certname]int // resources of the newest catalog
}

type let struct {
	node             fleet.Certname
	catalog, version fleet.Digest
}

// given ends what a catalog that is made the newest brings to an end.
func (l *losses) given(node fleet.Certname, catalog fleet.Digest) {
	l.end(func(o deliver.Loss) bool {
		return o.Node == node && (o.Ruling == deliver.Hold || o.Catalog.Digest != catalog)
	}, time.Now(), "")
}

func (l *losses) end(fits func(deliver.Loss) bool, at time.Time, by string) (nodes []fleet.Certname) {
	for i := range l.all {
		if o := &l.all[i]; o.Ended.IsZero() && fits(*o) {
			o.Ended, o.By = at, by
			nodes = append(nodes, o.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// Had implements deliver.LossStore.
func (f *Fake) Had(_ context.Context, node fleet.Certname) (deliver.Catalog, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest[node], f.losses.has[node], nil
}

// NoteLoss implements deliver.LossStore.
func (f *Fake) NoteLoss(_ context.Context, l deliver.Loss) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, there := f.newest[l.Node]; !there || c.Digest != l.Kept.Digest {
		return fault.New(fault.Conflict, "%s has another catalog by now", l.Node)
	}
	f.losses.end(func(o deliver.Loss) bool { return o.Node == l.Node }, time.Now(), "")
	l.ID, l.Ended, l.By = int64(len(f.losses.all)+1), time.Time{}, ""
	f.losses.all = append(f.losses.all, l)
	return nil
}

// EndHold implements deliver.LossStore.
func (f *Fake) EndHold(_ context.Context, node fleet.Certname, kept fleet.Digest, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.losses.end(func(o deliver.Loss) bool { return o.Node == node && o.Ruling == deliver.Hold && o.Kept.Digest == kept }, now, "")
	return nil
}

// Losses implements deliver.LossStore.
func (f *Fake) Losses(_ context.Context, p deliver.LossFilter) (list []deliver.Loss, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.losses.all {
		open := l.Ended.IsZero() && (l.Ruling == deliver.Hold || f.newest[l.Node].Digest == l.Catalog.Digest)
		if (open || p.Past) && (len(p.Nodes) == 0 || slices.Contains(p.Nodes, l.Node)) && (p.Ruling == "" || l.Ruling == p.Ruling) &&
			(p.Environment == "" || l.Catalog.Environment == p.Environment) && (p.Version == "" || l.Catalog.Version == p.Version) {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b deliver.Loss) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(b.ID, a.ID)) })
	return list, nil
}

// Let implements deliver.LossStore.
func (f *Fake) Let(_ context.Context, l deliver.Let) ([]fleet.Certname, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.losses.all {
		if l.Node != "" && o.Node == l.Node && o.Ended.IsZero() && o.Ruling == deliver.Hold {
			f.losses.lets = append(f.losses.lets, let{node: l.Node, catalog: o.Catalog.Digest})
		}
	}
	nodes := f.losses.end(func(o deliver.Loss) bool {
		return o.Ruling == deliver.Hold && (l.Node == "" || o.Node == l.Node) && (l.Version == "" || o.Catalog.Version == l.Version)
	}, l.At, l.By)
	if len(nodes) == 0 {
		return nil, fault.New(fault.NotFound, "nothing of it is held")
	}
	if l.Version != "" {
		f.losses.lets = append(f.losses.lets, let{version: l.Version})
	}
	return nodes, nil
}

// Confirmed implements deliver.LossStore.
func (f *Fake) Confirmed(_ context.Context, node fleet.Certname, catalog, version fleet.Digest) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.losses.lets, let{node: node, catalog: catalog}) || slices.Contains(f.losses.lets, let{version: version}), nil
}

// PruneLosses implements deliver.LossStore.
func (f *Fake) PruneLosses(_ context.Context, before time.Time) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.losses.all)
	f.losses.all = slices.DeleteFunc(f.losses.all, func(l deliver.Loss) bool { return !l.Ended.IsZero() && l.Ended.Before(before) })
	return n - len(f.losses.all), nil
}

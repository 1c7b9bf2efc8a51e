package preview

import (
	"cmp"
	"context"
	"slices"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Logs is what compilers wrote. Whoever has the compilations has them.
type Logs interface {
	// Logs is what the compiler wrote for compilations, also nothing; of those that are missing it is not known.
	Logs(ctx context.Context, compilations []int64) (map[int64][]compile.Log, error)
	// Standing names, for the catalogs that nodes have and those that were compiled for previews, what compiled them.
	Standing(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]Origin, error)
}

// Origin is where a stored catalog is from.
type Origin struct {
	Compilation int64 // that stands for it
	Compiled    int64 // that made it
	Staged      bool  // no node has it
}

// Warning is something that the compiler wrote for catalogs of a preview.
type Warning struct {
	compile.Log
	Nodes    int              // whose catalogs say it
	Examples []fleet.Certname // the first of them
	New      bool             // it was written for no catalog that the preview's nodes have
}

// maxExamples is how many nodes of a warning are named.
const maxExamples = 3

// Warnings is what the compiler warns of in a preview's catalogs, each once: what is new first, and then what most nodes have.
// unknown is the nodes with a catalog of which nobody knows any more what was written for it. Where that is so of what the nodes have,
// what they were warned of is new.
func (s *Service) Warnings(ctx context.Context, p Preview) (all []Warning, unknown int, err error) {
	said := hearing{found: map[compile.Log]*Warning{}, old: map[compile.Log]bool{}}
	for from := uint32(0); ; {
		shares, err := s.Store.PreviewShares(ctx, p.ID, SharePage{From: from, Limit: askAtOnce})
		if err != nil {
			return nil, 0, err
		}
		if len(shares) == 0 {
			break
		}
		from = shares[len(shares)-1].Number + 1
		if err := said.hear(ctx, s.Logs, p.Environment, shares); err != nil {
			return nil, 0, err
		}
	}
	for log, w := range said.found {
		w.New = !said.old[log]
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b Warning) int {
		switch {
		case a.New && !b.New:
			return -1
		case b.New && !a.New:
			return 1
		default:
			return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), compile.CompareLogs(a.Log, b.Log))
		}
	})
	return all, said.unknown, nil
}

// hearing is what was written for a preview's catalogs, and for those that its nodes have.
type hearing struct {
	found   map[compile.Log]*Warning
	old     map[compile.Log]bool
	unknown int
}

// hear takes in what was written for shares.
func (h *hearing) hear(ctx context.Context, from Logs, env fleet.Environment, shares []Share) error {
	nodes := make([]fleet.Certname, len(shares))
	for i, share := range shares {
		nodes[i] = share.Node
	}
	standing, err := from.Standing(ctx, env, nodes)
	if err != nil {
		return err
	}
	has, fresh := make([]int64, len(shares)), make([]int64, len(shares))
	for i, share := range shares {
		fresh[i] = share.Compilation
		for _, o := range standing[share.Node] {
			if o.Compilation == share.Compilation {
				fresh[i] = o.Compiled
			}
			if !o.Staged {
				has[i] = o.Compiled
			}
		}
	}
	logs, err := from.Logs(ctx, slices.Concat(has, fresh))
	if err != nil {
		return err
	}
	for i, share := range shares {
		for _, log := range compile.Warnings(logs[has[i]]) {
			h.old[log] = true
		}
		written, known := logs[fresh[i]]
		if !known && share.Fresh != "" {
			h.unknown++
		}
		for _, log := range compile.Warnings(written) {
			h.add(log, share.Node)
		}
	}
	return nil
}

func (h *hearing) add(log compile.Log, node fleet.Certname) {
	w := h.found[log]
	if w == nil {
		w = &Warning{Log: log}
		h.found[log] = w
	}
	if w.Nodes++; len(w.Examples) < maxExamples {
		w.Examples = append(w.Examples, node)
	}
}

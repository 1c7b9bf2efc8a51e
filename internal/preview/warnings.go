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
	// Logs is what the compiler wrote for compilations, as far as it is known.
	Logs(ctx context.Context, compilations []int64) (map[int64][]compile.Log, error)
	// Newest names the compilations that gave nodes what they have.
	Newest(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname]int64, error)
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

// Warnings is what the compiler warns of in a preview's catalogs, each once, what is new first and then what most nodes have. What
// was compiled so long ago that nobody knows what was written then says nothing: then everything is new.
func (s *Service) Warnings(ctx context.Context, p Preview) ([]Warning, error) {
	found := map[compile.Log]*Warning{}
	old := map[compile.Log]bool{}
	for from := uint32(0); ; {
		shares, err := s.Store.PreviewShares(ctx, p.ID, SharePage{From: from, Limit: askAtOnce})
		if err != nil {
			return nil, err
		}
		if len(shares) == 0 {
			break
		}
		from = shares[len(shares)-1].Number + 1
		if err := s.addWarnings(ctx, p.Environment, shares, found, old); err != nil {
			return nil, err
		}
	}
	all := make([]Warning, 0, len(found))
	for log, w := range found {
		w.New = !old[log]
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b Warning) int {
		return cmp.Or(-compareBool(a.New, b.New), cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
	return all, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// addWarnings takes in what was written for shares, and for what their nodes have.
func (s *Service) addWarnings(ctx context.Context, env fleet.Environment, shares []Share, found map[compile.Log]*Warning, old map[compile.Log]bool) error {
	nodes := make([]fleet.Certname, len(shares))
	for i, share := range shares {
		nodes[i] = share.Node
	}
	newest, err := s.Logs.Newest(ctx, env, nodes)
	if err != nil {
		return err
	}
	var compilations []int64
	for _, share := range shares {
		compilations = append(compilations, share.Compilation, newest[share.Node])
	}
	logs, err := s.Logs.Logs(ctx, compilations)
	if err != nil {
		return err
	}
	for _, share := range shares {
		for _, log := range warnings(logs[newest[share.Node]]) {
			old[log] = true
		}
		for _, log := range warnings(logs[share.Compilation]) {
			w := found[log]
			if w == nil {
				w = &Warning{Log: log}
				found[log] = w
			}
			if w.Nodes++; len(w.Examples) < maxExamples {
				w.Examples = append(w.Examples, share.Node)
			}
		}
	}
	return nil
}

// warnings are those of the lines that warn, each once.
func warnings(logs []compile.Log) []compile.Log {
	var list []compile.Log
	for _, log := range logs {
		if log.Level == "warning" || log.Level == "err" {
			list = append(list, log)
		}
	}
	slices.SortFunc(list, func(a, b compile.Log) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(list)
}

package preview

import (
	"cmp"
	"maps"
	"slices"
)

// This file holds the decisions: values in, values out.

// Step is what an answer makes of a share that waits. compare says that its catalogs have to be compared
// before it is final: Judged does that. A share that is final stays as it is.
func Step(s Share, a Answer) (next Share, compare bool) {
	if s.State.Final() {
		return s, false
	}
	switch a.Stands {
	case Pending:
		s.Compilation = a.Compilation
	case Gone:
		s.Compilation = 0
	case Compiled:
		s.Compilation, s.Fresh, s.Reused, s.Volatile = a.Compilation, a.Catalog, a.Reused, a.Volatile
		return s, true
	case Broken:
		s.Compilation, s.State, s.Failure = a.Compilation, Failed, a.Failure
	case Impossible:
		s.State, s.Failure = Unable, a.Failure
	}
	return s, false
}

// Judged is a share whose catalog was compared with base, which is empty if its node has none.
func (s Share) judged(v Verdict) Share {
	switch {
	case s.State.Final():
	case s.Base == "":
		s.State = First
	case v == Different:
		s.State = Changed
	case v == OrderOnly:
		s.State = Reordered
	default:
		s.State = Same
	}
	return s
}

// Count counts shares by state.
func Count(shares []Share) Counts {
	c := Counts{}
	for _, s := range shares {
		c[s.State]++
	}
	return c
}

// maxUnseen is how many reasons are told apart.
const maxUnseen = 50

// unseen counts what a preview of these shares cannot see, the commonest first.
func unseen(shares []Share) []Unseen {
	count := map[string]int{}
	for _, s := range shares {
		if s.Volatile != "" {
			count[s.Volatile]++
		}
	}
	all := make([]Unseen, 0, len(count))
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		all = append(all, Unseen{reason, count[reason]})
	}
	slices.SortStableFunc(all, func(a, b Unseen) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return all[:min(len(all), maxUnseen)]
}

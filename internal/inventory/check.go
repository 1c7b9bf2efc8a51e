package inventory

import (
	"cmp"
	"slices"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// CheckPage refuses a page whose limit is out of bounds.
func CheckPage(p Page) error {
	if p.Limit < 1 || p.Limit > 1000 {
		return fault.New(fault.Invalid, "a page has 1 to 1000 rows, not %d", p.Limit)
	}
	return nil
}

// CheckNamed refuses too many names.
func CheckNamed(names []fleet.Certname) error {
	if len(names) > MaxNamed {
		return fault.New(fault.Invalid, "%d nodes are named, at most %d may be", len(names), MaxNamed)
	}
	return nil
}

// CheckReportID refuses what cannot be a report's ID or the beginning of one.
func CheckReportID(id string) error {
	if len(id) < 6 || len(id) > 64 || !scan.IsHex(id) {
		return fault.New(fault.Invalid, "a report is named by 6 to 64 digits of its ID, not %.80q", id)
	}
	return nil
}

// Distinct prepares a catalog's rows for a store: of resources that share type
// and title the first one stays, in catalog order; edges are sorted, each once.
func Distinct(resources []Resource, edges []Edge) ([]Resource, []Edge) {
	type name struct{ kind, title string }
	seen := make(map[name]bool, len(resources))
	kept := make([]Resource, 0, len(resources))
	for _, r := range resources {
		if key := (name{r.Type, r.Title}); !seen[key] {
			seen[key] = true
			kept = append(kept, r)
		}
	}
	sorted := slices.Clone(edges)
	slices.SortFunc(sorted, compareEdges)
	return kept, slices.Compact(sorted)
}

// DistinctCollected sorts by type and title and keeps the first of those that share
// both.
func DistinctCollected(collected []Collected) []Collected {
	sorted := slices.Clone(collected)
	slices.SortStableFunc(sorted, func(a, b Collected) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Title, b.Title)) })
	return slices.CompactFunc(sorted, func(a, b Collected) bool { return a.Type == b.Type && a.Title == b.Title })
}

func compareEdges(a, b Edge) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Relationship, b.Relationship))
}

// DistinctPackages sorts packages, and keeps each once.
func DistinctPackages(list []Package) []Package {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Package) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Provider, b.Provider))
	})
	return slices.Compact(sorted)
}

// PackagesDigest names a list of distinct packages; empty for none.
func PackagesDigest(list []Package) fleet.Digest {
	if len(list) == 0 {
		return ""
	}
	d := newDigester("tutti packages 1")
	for _, p := range list {
		d.texts(p.Name, p.Version, p.Provider)
	}
	return d.sum()
}

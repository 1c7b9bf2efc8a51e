package inventorytest

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// RunStore checks a store. open returns an empty one for each case; it cleans up
// through t.
func RunStore(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	cases := map[string]func(t *testing.T, s Store){
		"facts are read as saved":               factsRoundTrip,
		"facts grow by differences":             factsDifferences,
		"facts keep the order they came in":     factsAsTold,
		"facts that are broken change nothing":  factsInvalid,
		"facts of one node saved at once":       factsConcurrent,
		"facts that change type and shape":      factsShapes,
		"facts are read leaf by leaf":           factLeaves,
		"catalogs are read as saved":            catalogRoundTrip,
		"catalogs replace each other":           catalogReplace,
		"what is collected follows the catalog": catalogCollected,
		"an older catalog replaces no newer":    catalogLate,
		"a catalog's digests are listed":        catalogDigests,
		"nodes sum up what is known":            nodeSummary,
		"nodes are paged by name":               nodePages,
		"nodes are read by name":                nodesNamed,
		"purging forgets everything":            purge,
		"reports are read as saved":             reportRoundTrip,
		"reports are stored once":               reportTwice,
		"reports that come at once":             reportsAtOnce,
		"reports are listed newest first":       reportPages,
		"reports are found by a prefix":         reportPrefix,
		"reports are kept in short":             shorten,
		"pruning keeps each node's newest":      prune,
		"reports are found by their runs":       runReports,
		"many writers at once":                  manyWriters,
		"what is not there is NotFound":         notFound,
		"an older report is not the latest one": reportLate,
	}
	maps.Copy(cases, originCases())
	for name, check := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isKind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("%s: got error %v, want one of kind %s", what, err, want)
	}
}

func manyWriters(t *testing.T, s Store) {
	const writers, each = 12, 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			node := fleet.Certname(fmt.Sprintf("n%02d.example", w))
			for n := range each {
				_, _, err := s.SaveFacts(t.Context(), factSet(node, fmt.Sprintf(`{"n":%d,"shared":{"p%d":1}}`, n, n), start))
				if err == nil {
					err = s.SaveReport(t.Context(), report(node, n))
				}
				if err == nil {
					err = s.SaveCatalog(t.Context(), catalog(node, fmt.Sprint(n)))
				}
				if err != nil {
					t.Errorf("%s: %v", node, err)
				}
			}
		})
	}
	wg.Wait()
	nodes, err := s.Nodes(t.Context(), inventory.Page{Limit: 1000})
	ok(t, err)
	same(t, "nodes", writers, len(nodes))
	for _, n := range nodes {
		f, err := s.Facts(t.Context(), n.Certname)
		ok(t, err)
		same(t, "seq", int64(each), f.Seq)
		same(t, "latest", report(n.Certname, each-1).ID, n.LatestReport)
	}
}

func notFound(t *testing.T, s Store) {
	ctx := t.Context()
	_, err := s.Facts(ctx, "a.example")
	isKind(t, "facts", err, fault.NotFound)
	_, err = s.Catalog(ctx, "a.example")
	isKind(t, "catalog", err, fault.NotFound)
	_, err = s.Node(ctx, "a.example")
	isKind(t, "node", err, fault.NotFound)
	_, err = s.Report(ctx, "abcdef")
	isKind(t, "report", err, fault.NotFound)
	isKind(t, "purge", s.PurgeNode(ctx, "a.example"), fault.NotFound)
	ok(t, s.SaveReport(ctx, report("a.example", 1)))
	_, err = s.Facts(ctx, "a.example")
	isKind(t, "facts of a known node", err, fault.NotFound)
	_, err = s.Catalog(ctx, "a.example")
	isKind(t, "catalog of a known node", err, fault.NotFound)
}

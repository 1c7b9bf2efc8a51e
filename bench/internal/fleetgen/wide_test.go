package fleetgen

import (
	"encoding/json"
	"testing"
)

func TestWideFactsHaveThreeHundredLeaves(t *testing.T) {
	t.Parallel()
	for _, node := range []int{0, 1, 17, 999} {
		var values map[string]any
		if err := json.Unmarshal(marshal(fleet.WideFacts(node)), &values); err != nil {
			t.Fatal(err)
		}
		out := map[string]any{}
		leaves(values, "", out)
		if n := len(out); n < 290 || n > 310 {
			t.Errorf("node %d has %d leaves, want about 300", node, n)
		}
	}
}

func TestCatalogNamesEachResourceOnce(t *testing.T) {
	t.Parallel()
	type ref struct{ Type, Title string }
	for node := range 50 {
		var catalog struct {
			Resources []ref
			Edges     []struct{ Source, Target ref }
		}
		if err := json.Unmarshal(fleet.PuppetDBCatalog(node), &catalog); err != nil {
			t.Fatal(err)
		}
		known := map[ref]bool{}
		for _, r := range catalog.Resources {
			known[r] = true
		}
		if len(known) != ResourcesPerCatalog {
			t.Fatalf("node %d: %d resources, want %d", node, len(known), ResourcesPerCatalog)
		}
		for _, e := range catalog.Edges {
			if !known[e.Source] || !known[e.Target] {
				t.Fatalf("node %d: edge %v names a resource that is not there", node, e)
			}
		}
	}
}

func TestHistoryHasEveryKindOfRun(t *testing.T) {
	t.Parallel()
	seen, noop, events := map[string]int{}, 0, 0
	for node := range 200 {
		var report struct {
			Status    string
			Noop      bool
			Resources []struct{ Events []any }
		}
		if err := json.Unmarshal(fleet.WidePuppetDBReport(node, 1), &report); err != nil {
			t.Fatal(err)
		}
		seen[report.Status]++
		events += len(report.Resources)
		if report.Noop {
			noop++
		}
	}
	if seen["failed"] == 0 || seen["changed"] == 0 || seen["unchanged"] == 0 || noop == 0 || events < 200 {
		t.Errorf("statuses %v, %d noop, %d events", seen, noop, events)
	}
}

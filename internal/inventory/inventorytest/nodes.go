package inventorytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

func nodeSummary(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	_, _, err := s.SaveFacts(ctx, factSet("a.example", `{"a":1}`, start))
	ok(t, err)
	want := inventory.Node{Certname: "a.example", Environment: "production", FactsAt: start, CreatedAt: start}
	readNode(t, s, want)
	c := catalog("a.example", "1")
	c.Environment, c.CompiledAt = "dev", start.Add(time.Second)
	ok(t, s.SaveCatalog(ctx, c))
	want.Environment, want.CatalogAt, want.CatalogDigest = "dev", c.CompiledAt, c.Digest
	readNode(t, s, want)
	r := report("a.example", 1)
	ok(t, s.SaveReport(ctx, r))
	want.Environment, want.ReportAt, want.LatestReport, want.LatestStatus = "production", r.ReceivedAt, r.ID, r.Status
	want.LatestNoop, want.LatestCorrective = r.Noop, r.CorrectiveChange
	readNode(t, s, want)
}

func readNode(t *testing.T, s Store, want inventory.Node) {
	t.Helper()
	got, err := s.Node(t.Context(), want.Certname)
	ok(t, err)
	same(t, "node", want, got)
}

func nodePages(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []fleet.Certname{"c-1.example", "a.example", "c.example", "b_2.example", "c0.example"} {
		_, _, err := s.SaveFacts(ctx, factSet(name, `{"a":1}`, start))
		ok(t, err)
	}
	var got []fleet.Certname
	page := inventory.Page{Limit: 2}
	for {
		nodes, err := s.Nodes(ctx, page)
		ok(t, err)
		if len(nodes) == 0 {
			break
		}
		for _, n := range nodes {
			got = append(got, n.Certname)
		}
		page.After = string(nodes[len(nodes)-1].Certname)
	}
	same(t, "names", []fleet.Certname{"a.example", "b_2.example", "c-1.example", "c.example", "c0.example"}, got)
	for _, limit := range []int{0, -1, 1001} {
		_, err := s.Nodes(ctx, inventory.Page{Limit: limit})
		isKind(t, fmt.Sprint("limit ", limit), err, fault.Invalid)
		_, err = s.Reports(ctx, inventory.ReportFilter{Page: inventory.Page{Limit: limit}})
		isKind(t, fmt.Sprint("limit ", limit), err, fault.Invalid)
	}
}

func nodesNamed(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []fleet.Certname{"b.example", "a.example", "c.example"} {
		_, _, err := s.SaveFacts(ctx, factSet(name, `{"a":1}`, start))
		ok(t, err)
	}
	nodes, err := s.NodesNamed(ctx, []fleet.Certname{"c.example", "x.example", "a.example", "c.example"})
	ok(t, err)
	want, err := s.Node(ctx, "a.example")
	ok(t, err)
	if len(nodes) != 2 || nodes[1].Certname != "c.example" {
		t.Fatalf("got %v", nodes)
	}
	same(t, "the first", want, nodes[0])
	none, err := s.NodesNamed(ctx, nil)
	ok(t, err)
	same(t, "none", 0, len(none))
	_, err = s.NodesNamed(ctx, make([]fleet.Certname, inventory.MaxNamed+1))
	isKind(t, "too many", err, fault.Invalid)
}

func purge(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []fleet.Certname{"a.example", "b.example"} {
		_, _, err := s.SaveFacts(ctx, factSet(name, `{"a":1}`, start))
		ok(t, err)
		ok(t, s.SaveCatalog(ctx, catalog(name, string(name))))
		ok(t, s.SaveReport(ctx, report(name, 1)))
	}
	ok(t, s.PurgeNode(ctx, "a.example"))
	isKind(t, "purge again", s.PurgeNode(ctx, "a.example"), fault.NotFound)
	_, err := s.Node(ctx, "a.example")
	isKind(t, "node", err, fault.NotFound)
	_, err = s.Facts(ctx, "a.example")
	isKind(t, "facts", err, fault.NotFound)
	_, err = s.Catalog(ctx, "a.example")
	isKind(t, "catalog", err, fault.NotFound)
	_, err = s.Report(ctx, string(report("a.example", 1).ID))
	isKind(t, "report", err, fault.NotFound)
	readCatalog(t, s, catalog("b.example", "b.example"))
	// It may come back, and starts afresh.
	stored, changed, err := s.SaveFacts(ctx, factSet("a.example", `{"a":1}`, start))
	ok(t, err)
	same(t, "changed", []string{"a"}, changed)
	same(t, "seq", int64(1), stored.Seq)
}

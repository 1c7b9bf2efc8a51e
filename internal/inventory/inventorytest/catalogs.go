package inventorytest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

func catalog(node fleet.Certname, digest string) inventory.Catalog {
	return inventory.Catalog{
		Certname: node, Environment: "production", Digest: fleet.DigestOf([]byte(digest)), Version: fleet.DigestOf([]byte("v")),
		Origin: inventory.Origin{Producer: "tutti.example"}, ConfigVersion: "v", CodeID: "code", JobID: "9",
		UUID: "uuid-" + digest, Transaction: "tx", CompiledAt: start,
		Resources: []inventory.Resource{
			{Type: "Stage", Title: "main"},
			{Type: "File", Title: "/z", Tags: []string{"file", "node"}, File: "site.pp", Line: 3, Parameters: json.RawMessage(`{"ensure":"file","mode":"0644"}`)},
			{Type: "File", Title: "/a", Exported: true, Parameters: json.RawMessage(`{"ensure":"file","mode":"0644"}`)},
			{Type: "Apache::Vhost", Title: "ü [x]", Parameters: json.RawMessage(`{"port":80}`)},
		},
		Edges: []inventory.Edge{
			{Source: "File[/z]", Target: "Apache::Vhost[ü [x]]", Relationship: "before"},
			{Source: "Stage[main]", Target: "File[/z]", Relationship: "contains"},
		},
	}
}

func readCatalog(t *testing.T, s Store, want inventory.Catalog) {
	t.Helper()
	got, err := s.Catalog(t.Context(), want.Certname)
	ok(t, err)
	if want.ProducedAt.IsZero() {
		want.ProducedAt = want.CompiledAt
	}
	same(t, "catalog", want, got)
}

func catalogRoundTrip(t *testing.T, s Store) {
	t.Helper()
	c := catalog("a.example", "1")
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	twice := c
	twice.Certname = "b.example"
	twice.Resources = append(append([]inventory.Resource{}, c.Resources...), c.Resources[1])
	twice.Edges = append(append([]inventory.Edge{}, c.Edges...), c.Edges[0])
	ok(t, s.SaveCatalog(t.Context(), twice))
	twice.Resources, twice.Edges = c.Resources, c.Edges
	readCatalog(t, s, twice)
	empty := inventory.Catalog{Certname: "c.example", Environment: "production", Digest: fleet.DigestOf(nil), CompiledAt: start}
	ok(t, s.SaveCatalog(t.Context(), empty))
	readCatalog(t, s, empty)
}

func catalogReplace(t *testing.T, s Store) {
	t.Helper()
	c := catalog("a.example", "1")
	ok(t, s.SaveCatalog(t.Context(), c))
	c.UUID, c.CompiledAt = "again", start.Add(time.Hour) // the same digest
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	c.Digest = fleet.DigestOf([]byte("2"))
	c.Resources = []inventory.Resource{
		{Type: "User", Title: "new"},
		c.Resources[3],
		c.Resources[1],
	}
	c.Resources[2].Parameters = json.RawMessage(`{"ensure":"absent"}`)
	c.Edges = []inventory.Edge{
		{Source: "Stage[main]", Target: "File[/z]", Relationship: "contains"}, {Source: "User[new]", Target: "File[/z]", Relationship: "notifies"},
	}
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	c = catalog("a.example", "1")
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
}

func catalogCollected(t *testing.T, s Store) {
	t.Helper()
	c := catalog("a.example", "1")
	c.Collected = []inventory.Collected{
		{Type: "File", Title: "/z", Exporter: "x.example"},
		{Type: "User", Title: "u", Exporter: "y.example"},
		{Type: "File", Title: "/a", Exporter: "x.example"},
		{Type: "File", Title: "/a", Exporter: "second.example"},
	}
	ok(t, s.SaveCatalog(t.Context(), c))
	c.Collected = []inventory.Collected{c.Collected[2], c.Collected[0], c.Collected[1]} // sorted, each once
	readCatalog(t, s, c)
	// The same catalog, from other exporters.
	c.Collected = []inventory.Collected{{Type: "File", Title: "/a", Exporter: "x.example"}, {Type: "File", Title: "/z", Exporter: "z.example"}}
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	other := catalog("b.example", "1")
	other.Collected = c.Collected
	ok(t, s.SaveCatalog(t.Context(), other))
	c.Collected, c.Digest = nil, fleet.DigestOf([]byte("2"))
	ok(t, s.SaveCatalog(t.Context(), c))
	readCatalog(t, s, c)
	readCatalog(t, s, other)
	// A node that comes back after it was purged has collected nothing.
	ok(t, s.PurgeNode(t.Context(), "b.example"))
	other.Collected = nil
	ok(t, s.SaveCatalog(t.Context(), other))
	readCatalog(t, s, other)
}

func catalogLate(t *testing.T, s Store) {
	t.Helper()
	first, second := catalog("a.example", "1"), catalog("a.example", "2")
	first.Compilation, second.Compilation = 7, 8
	first.CompiledAt = start.Add(time.Hour) // it was asked for earlier and took longer, or the clock was set back
	first.Environment = "dev"
	ok(t, s.SaveCatalog(t.Context(), second))
	ok(t, s.SaveCatalog(t.Context(), first))
	readCatalog(t, s, second)
	node, err := s.Node(t.Context(), "a.example")
	ok(t, err)
	same(t, "node's catalog", second.Digest, node.CatalogDigest)
	same(t, "node's environment", second.Environment, node.Environment)
	again := second // a compilation whose row was not finished is repeated
	again.UUID, again.Digest = "again", fleet.DigestOf([]byte("3"))
	ok(t, s.SaveCatalog(t.Context(), again))
	readCatalog(t, s, again)
}

func catalogDigests(t *testing.T, s Store) {
	t.Helper()
	a, b, c := catalog("a.example", "1"), catalog("b.example", "1"), catalog("c.example", "2")
	for _, each := range []inventory.Catalog{a, b, c} {
		ok(t, s.SaveCatalog(t.Context(), each))
	}
	got, err := s.CatalogDigests(t.Context())
	ok(t, err)
	want := []fleet.Digest{a.Digest, c.Digest}
	slices.Sort(want)
	slices.Sort(got)
	same(t, "digests", want, got)
}

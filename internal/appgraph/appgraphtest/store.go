// Package appgraphtest has the conformance suite of appgraph.Store, and the store in memory.
package appgraphtest

import (
	"cmp"
	"context"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Catalog is what a node's newest catalog holds, as far as the graph cares.
type Catalog struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Declared    []appgraph.Declared   // without Node and Environment
	Collected   []appgraph.Collection // one each: Exporter, Type, Title
	Gone        bool                  // the node is not active
}

// Store is the fake: the catalogs that it holds.
type Store []Catalog

// Declared implements appgraph.Store.
func (s Store) Declared(context.Context) ([]appgraph.Declared, error) {
	var list []appgraph.Declared
	for _, c := range s.active() {
		for _, d := range c.Declared {
			if d.Type == appgraph.ApplicationType || d.Type == appgraph.ComponentType {
				d.Node, d.Environment = c.Node, c.Environment
				list = append(list, d)
			}
		}
	}
	slices.SortFunc(list, func(a, b appgraph.Declared) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Title, b.Title))
	})
	return list, nil
}

// Collections implements appgraph.Store.
func (s Store) Collections(context.Context) ([]appgraph.Collection, error) {
	type key struct {
		collector, exporter fleet.Certname
		kind                string
	}
	groups := map[key]appgraph.Collection{}
	for _, c := range s.active() {
		for _, one := range c.Collected {
			k := key{c.Node, one.Exporter, one.Type}
			if one.Exporter == c.Node {
				continue
			}
			group, known := groups[k]
			if !known || one.Title < group.Title {
				group.Title = one.Title
			}
			groups[k] = appgraph.Collection{Collector: c.Node, Exporter: one.Exporter, Type: one.Type, Title: group.Title, Count: group.Count + 1}
		}
	}
	list := make([]appgraph.Collection, 0, len(groups))
	for _, group := range groups {
		list = append(list, group)
	}
	slices.SortFunc(list, func(a, b appgraph.Collection) int {
		return cmp.Or(cmp.Compare(a.Collector, b.Collector), cmp.Compare(a.Exporter, b.Exporter), cmp.Compare(a.Type, b.Type))
	})
	return list, nil
}

func (s Store) active() []Catalog {
	return slices.DeleteFunc(slices.Clone(s), func(c Catalog) bool { return c.Gone })
}

// RunStore runs the conformance suite. open returns a store that holds the catalogs.
func RunStore(t *testing.T, open func(t *testing.T, catalogs []Catalog) appgraph.Store) {
	t.Helper()
	component := func(title, parameters string) appgraph.Declared {
		return appgraph.Declared{Type: appgraph.ComponentType, Title: title, Parameters: []byte(parameters)}
	}
	catalogs := []Catalog{
		{
			Node: "web.example", Environment: "production",
			Declared: []appgraph.Declared{
				component("Shop::Web[eu]", `{"application":"Shop[eu]","consumes":["Sql[eu]"]}`),
				{Type: appgraph.ApplicationType, Title: "Shop[eu]", Parameters: []byte(`{"description":"sells"}`)},
				{Type: "File", Title: "/etc/shop", Parameters: []byte(`{}`)},
			},
			Collected: []appgraph.Collection{
				{Exporter: "db.example", Type: "Host", Title: "db"},
				{Exporter: "db.example", Type: "Host", Title: "backup"},
				{Exporter: "db.example", Type: "File", Title: "/db"},
				{Exporter: "web.example", Type: "Host", Title: "web"},
				{Exporter: "away.example", Type: "Host", Title: "away"},
			},
		},
		{Node: "db.example", Environment: "next", Declared: []appgraph.Declared{component("Shop::Db[eu]", `{"application":"Shop[eu]","produces":["Sql[eu]"]}`)}},
		{Node: "plain.example", Environment: "production"},
		{
			Node: "gone.example", Environment: "production", Gone: true, Declared: []appgraph.Declared{component("Shop::Db[old]", `{}`)},
			Collected: []appgraph.Collection{{Exporter: "db.example", Type: "Host", Title: "db"}},
		},
	}
	want := Store(catalogs)
	s := open(t, catalogs)
	t.Run("what catalogs declare", func(t *testing.T) {
		t.Parallel()
		expected, _ := want.Declared(t.Context())
		got, err := s.Declared(t.Context())
		if diff := gocmp.Diff(expected, got); diff != "" || err != nil || len(got) != 3 {
			t.Errorf("error %v, declared (-want +got):\n%s", err, diff)
		}
	})
	t.Run("who collected from whom", func(t *testing.T) {
		t.Parallel()
		expected, _ := want.Collections(t.Context())
		got, err := s.Collections(t.Context())
		if diff := gocmp.Diff(expected, got); diff != "" || err != nil || len(got) != 3 {
			t.Errorf("error %v, collected (-want +got):\n%s", err, diff)
		}
	})
}

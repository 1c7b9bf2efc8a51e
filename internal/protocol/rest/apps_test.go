package rest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/appgraph/appgraphtest"
)

// shop is an application of two tiers, and a node that collects from one of them.
var shop = appgraphtest.Store{
	{Node: "db-1", Environment: "production", Declared: []appgraph.Declared{
		{Type: appgraph.ComponentType, Title: "Shop::Db[eu]", Parameters: []byte(`{"application":"Shop[eu]","produces":"Sql[eu]"}`)},
	}},
	{Node: "web-1", Environment: "production", Declared: []appgraph.Declared{
		{Type: appgraph.ComponentType, Title: "Shop::Web[eu]", Parameters: []byte(`{"application":"Shop[eu]","consumes":["Sql[eu]","Mq[eu]"]}`)},
	}},
	{Node: "mon-1", Environment: "production", Collected: []appgraph.Collection{{Exporter: "db-1", Type: "Host", Title: "db"}}},
}

func TestApplications(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var apps api.List[api.App]
	b.do(t, "GET", "/applications?app=shop", "", &apps)
	want := []api.App{{
		Name: "Shop[eu]", Model: "Shop", Instance: "eu", Environment: "production", Nodes: []string{"db-1", "web-1"},
		Components: []api.AppComponent{
			{Name: "Shop::Db[eu]", Node: "db-1", Produces: []string{"Sql[eu]"}, Consumes: []string{}},
			{Name: "Shop::Web[eu]", Node: "web-1", Produces: []string{}, Consumes: []string{"Mq[eu]", "Sql[eu]"}},
		},
		Problems: []string{"Shop::Web[eu] on web-1 consumes Mq[eu], and nobody produces it"},
	}}
	if diff := cmp.Diff(want, apps.Items); diff != "" {
		t.Errorf("applications (-want +got):\n%s", diff)
	}
	var graph api.NodeGraph
	b.do(t, "GET", "/application-graph", "", &graph)
	if diff := cmp.Diff([][]string{{"db-1"}, {"mon-1", "web-1"}}, graph.Layers); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	graph = api.NodeGraph{}
	b.do(t, "GET", "/application-graph?app=Shop%5Beu%5D", "", &graph)
	edges := []api.NodeEdge{{Node: "web-1", WaitsFor: "db-1", Why: []string{"Shop::Web[eu] consumes Sql[eu]"}}}
	if diff := cmp.Diff(edges, graph.Edges); diff != "" {
		t.Errorf("edges of the application (-want +got):\n%s", diff)
	}
	b.gets(t, "GET", "/application-graph?app=Bank", "", 404, "declares an application")
}

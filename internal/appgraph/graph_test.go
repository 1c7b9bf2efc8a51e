package appgraph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/appgraph/appgraphtest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
)

type pair = graph.Edge[fleet.Certname]

func component(node, name, parameters string) appgraph.Declared {
	return appgraph.Declared{
		Node: fleet.Certname(node), Environment: "production", Type: appgraph.ComponentType, Title: name, Parameters: json.RawMessage(parameters),
	}
}

func application(node, name, parameters string) appgraph.Declared {
	d := component(node, name, parameters)
	d.Type = appgraph.ApplicationType
	return d
}

func collected(by, from, kind string) appgraph.Collection {
	return appgraph.Collection{Collector: fleet.Certname(by), Exporter: fleet.Certname(from), Type: kind, Title: "t", Count: 1}
}

// shop is three tiers on four nodes.
func shop() []appgraph.Declared {
	return []appgraph.Declared{
		component("lb1", "Shop::Lb[eu]", `{"application":"Shop[eu]","consumes":["Http[eu]"]}`),
		component("web1", "Shop::Web[eu]", `{"application":"Shop[eu]","consumes":"Sql[eu]","produces":["Http[eu]"]}`),
		component("web2", "Shop::Web[eu]", `{"application":"Shop['eu']","consumes":"Sql[eu]","produces":["Http[eu]"]}`),
		component("db1", "shop::db[eu]", `{"application":"shop[eu]","produces":["Sql[eu]"],"consumes":[]}`),
	}
}

func TestAnApplicationOfThreeTiers(t *testing.T) {
	t.Parallel()
	m := appgraph.Chart(shop(), nil)
	pairs, err := m.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	want := []pair{{Waits: "lb1", For: "web1"}, {Waits: "lb1", For: "web2"}, {Waits: "web1", For: "db1"}, {Waits: "web2", For: "db1"}}
	if diff := cmp.Diff(want, pairs); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	if why := m.Edges[0].Why[0].String(); why != "Shop::Lb[eu] consumes Http[eu]" {
		t.Errorf("reason %q", why)
	}
	apps, err := m.Find("shop[eu]", "production")
	if err != nil || len(apps) != 1 {
		t.Fatalf("found %v, %v", apps, err)
	}
	var order []string
	for _, c := range apps[0].Components {
		order = append(order, fmt.Sprintf("%s %s", c.Name, c.Node))
	}
	if diff := cmp.Diff([]string{"Shop::Db[eu] db1", "Shop::Web[eu] web1", "Shop::Web[eu] web2", "Shop::Lb[eu] lb1"}, order); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	if len(apps[0].Problems)+len(m.Problems) > 0 {
		t.Errorf("problems %v %v", apps[0].Problems, m.Problems)
	}
	if diff := cmp.Diff([]fleet.Certname{"db1", "lb1", "web1", "web2"}, apps[0].Nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	declared := append(shop(),
		application("web1", "Shop[eu]", `{"description":"sells","parameters":{"db_user":"shop"},"components":["Shop::Db[eu]","Shop::Queue[eu]"]}`),
		component("web1", "Shop::Cache[eu]", `{"application":"Shop[eu]","consumes":["Memcache[eu]"]}`),
		component("web1", "no reference", `{"application":"Shop[eu]"}`),
		component("web2", "Shop::X[eu]", `{"application":7}`),
		component("web2", "Shop::Y[eu]", `{"application":"Shop[eu]","produces":["a b"]}`),
	)
	m := appgraph.Chart(declared, nil)
	var texts []string
	for _, p := range slices.Concat(m.Problems, m.Applications[0].Problems) {
		texts = append(texts, p.Text)
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{
		`Tutti::Component[no reference] on web1: "no reference" is no reference`, "Shop::X[eu]", `"a b" is no reference`,
		"no node carries Shop::Queue[eu]", "Shop::Cache[eu] on web1 consumes Memcache[eu], and nobody produces it",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no problem %q in:\n%s", want, all)
		}
	}
	if len(texts) != 5 || m.Applications[0].Description != "sells" {
		t.Errorf("%d problems, description %q:\n%s", len(texts), m.Applications[0].Description, all)
	}
}

func TestCapabilitiesStayInTheirEnvironment(t *testing.T) {
	t.Parallel()
	declared := shop()
	declared[3].Environment = "next"
	m := appgraph.Chart(declared, nil)
	if len(m.Applications) != 2 || len(m.Edges) != 2 {
		t.Errorf("%d applications, edges %v", len(m.Applications), m.Edges)
	}
	if _, err := m.Find("Shop", "other"); fault.Of(err) != fault.NotFound {
		t.Errorf("found in another environment: %v", err)
	}
}

func TestCollectedResourcesMakeEdges(t *testing.T) {
	t.Parallel()
	m := appgraph.Chart(shop(), []appgraph.Collection{
		collected("mon", "db1", "Nagios_host"), collected("mon", "web1", "Nagios_host"), collected("web1", "db1", "File"),
	})
	pairs, err := m.Among([]fleet.Certname{"mon", "db1", "web1"}).Pairs()
	if err != nil {
		t.Fatal(err)
	}
	want := []pair{{Waits: "mon", For: "db1"}, {Waits: "mon", For: "web1"}, {Waits: "web1", For: "db1"}}
	if diff := cmp.Diff(want, pairs); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	if n := len(m.Edges[len(m.Edges)-2].Why); n != 2 { // web1 both collects from and consumes of db1
		t.Errorf("web1 waits for db1 for %d reasons", n)
	}
}

func TestWhatAllCollectFromEachOtherGivesNoOrder(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b", "c"}
	var mesh []appgraph.Collection
	for _, by := range all {
		for _, from := range all {
			if by != from {
				mesh = append(mesh, collected(by, from, "Sshkey"))
			}
		}
	}
	mesh = append(mesh, collected("mon", "a", "Sshkey"), collected("b", "a", "File"))
	m := appgraph.Chart(nil, mesh)
	pairs, err := m.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]pair{{Waits: "b", For: "a"}, {Waits: "mon", For: "a"}}, pairs); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]appgraph.Shared{{Type: "Sshkey", Nodes: []fleet.Certname{"a", "b", "c"}}}, m.Shared); diff != "" {
		t.Errorf("shared (-want +got):\n%s", diff)
	}
}

func TestACircleIsRefusedWithItsWay(t *testing.T) {
	t.Parallel()
	declared := append(shop(), component("db1", "Shop::Probe[eu]", `{"application":"Shop[eu]","consumes":["Http[eu]"]}`))
	s := appgraph.Service{Store: appgraphtest.Store{
		{Node: "db1", Environment: "production", Declared: declared[3:]},
		{Node: "web1", Environment: "production", Declared: declared[1:2]},
		{Node: "lb1", Environment: "production", Declared: declared[:1]},
	}}
	_, err := s.Edges(t.Context(), []fleet.Certname{"db1", "lb1", "web1"})
	want := "db1 waits for web1 (Shop::Probe[eu] consumes Http[eu]), web1 waits for db1 (Shop::Web[eu] consumes Sql[eu])"
	if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
		t.Errorf("error %v, want the way %q", err, want)
	}
	if edges, err := s.Edges(t.Context(), []fleet.Certname{"lb1", "web1"}); err != nil || len(edges) != 1 {
		t.Errorf("without the node that closes it: %v, %v", edges, err)
	}
	two := appgraph.Chart(nil, []appgraph.Collection{collected("a", "b", "File"), collected("b", "a", "Host")})
	if _, err := two.Pairs(); fault.Of(err) != fault.Invalid ||
		!strings.Contains(fault.Detail(err), "a waits for b (collects File[t]), b waits for a (collects Host[t])") {
		t.Errorf("a circle of two types: %v", err)
	}
}

// draw makes any fleet: components with few capabilities, and collections of few types.
func draw(t *rapid.T) ([]appgraph.Declared, []appgraph.Collection) {
	node := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	capability := rapid.SampledFrom([]string{"Sql[1]", "Http[1]", "Mq[1]"})
	var declared []appgraph.Declared
	for i := range rapid.IntRange(0, 6).Draw(t, "components") {
		text, err := json.Marshal(map[string]any{
			"application": rapid.SampledFrom([]string{"Shop[1]", "Bank[1]"}).Draw(t, "application"),
			"produces":    rapid.SliceOfN(capability, 0, 2).Draw(t, "produces"), "consumes": rapid.SliceOfN(capability, 0, 2).Draw(t, "consumes"),
		})
		if err != nil {
			t.Fatal(err)
		}
		declared = append(declared, component(node.Draw(t, "node"), fmt.Sprintf("C[%d]", i), string(text)))
	}
	var list []appgraph.Collection
	seen := map[string]bool{}
	for range rapid.IntRange(0, 8).Draw(t, "collections") {
		c := collected(node.Draw(t, "by"), node.Draw(t, "from"), rapid.SampledFrom([]string{"File", "Host"}).Draw(t, "type"))
		if key := fmt.Sprint(c); c.Collector != c.Exporter && !seen[key] {
			seen[key] = true
			list = append(list, c)
		}
	}
	return declared, list
}

// Whatever is declared and collected: there is an order or a circle, never both; each component stands behind those that it
// consumes from unless a problem says why not; and nothing depends on the order of what comes in.
func TestAnyFleetHasAnOrderOrACircle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		declared, list := draw(rt)
		m := appgraph.Chart(declared, list)
		layers, cycle := m.Layers()
		pairs, err := m.Pairs()
		if (err != nil) != (cycle != nil) {
			rt.Fatalf("refused: %v; circle %v", err, cycle)
		}
		at := map[fleet.Certname]int{}
		for i, nodes := range layers {
			for _, node := range nodes {
				at[node] = i
			}
		}
		for _, p := range pairs {
			if at[p.Waits] <= at[p.For] {
				rt.Fatalf("%s waits for %s; layers %v", p.Waits, p.For, layers)
			}
		}
		for _, a := range m.Applications {
			inOrder(rt, a)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		r.Shuffle(len(declared), func(i, j int) { declared[i], declared[j] = declared[j], declared[i] })
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if diff := cmp.Diff(m, appgraph.Chart(declared, list)); diff != "" {
			rt.Fatalf("the order of what came in shows:\n%s", diff)
		}
	})
}

func inOrder(rt *rapid.T, a appgraph.Application) {
	circle := slices.ContainsFunc(a.Problems, func(p appgraph.Problem) bool { return strings.Contains(p.Text, "consumes from the next one") })
	for i, c := range a.Components {
		for _, later := range a.Components[i:] {
			for _, capability := range c.Consumes {
				if slices.Contains(later.Produces, capability) && !circle {
					rt.Fatalf("%s stands before %s, whose %s it consumes", c.Name, later.Name, capability)
				}
			}
		}
	}
}

func TestNamesOfApplications(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Shop[eu]": "Shop[eu]", "shop::db['eu-1']": "Shop::Db[eu-1]", `Shop["a b"]`: "Shop[a b]", "Shop[]": "", "Shop": "", "[x]": "", "Shop[x": "",
		"Shop[x]y": "", "1Shop[x]": "", "Shop::[x]": "", "Shop[a\nb]": "", "Shop[a[b]]": "", "Shop['x]": "", "": "", "Shop[ x]": "",
	} {
		ref, err := appgraph.ParseRef(text)
		if got := ref.String(); want != "" && (err != nil || got != want) || want == "" && fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	for _, seed := range []string{"Shop[eu]", "shop::db['eu']", `A["x"]`, "Shop[", "a::b::C[d e]", "Ä[x]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := appgraph.ParseRef(text)
		if err != nil {
			return
		}
		again, err := appgraph.ParseRef(ref.String())
		if err != nil || again != ref {
			t.Errorf("%q became %q, and that %q, %v", text, ref, again, err)
		}
	})
}

func FuzzParameters(f *testing.F) {
	for _, seed := range []string{
		`{"application":"Shop[eu]","produces":["Sql[eu]"]}`, `{"application":null}`, `[]`, `{"consumes":{}}`, `{"components":"A[b]","parameters":7}`,
	} {
		f.Add("Shop::Db[eu]", seed)
	}
	f.Fuzz(func(t *testing.T, title, parameters string) {
		m := appgraph.Chart([]appgraph.Declared{component("a", title, parameters), application("b", title, parameters)}, nil)
		if len(m.Applications)+len(m.Problems) == 0 {
			t.Error("neither an application nor a problem")
		}
		for _, a := range m.Applications {
			if _, err := m.Find(a.Name.String(), a.Environment); err != nil {
				t.Errorf("%s cannot be found: %v", a.Name, err)
			}
		}
	})
}

package rest_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/action/catalogue/cataloguetest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// toldModules is what two nodes told of their modules: web-1 has a lamp of version 1.2, db-1 one of 1.10 and a fan that is broken. A third one, new-1, has
// told nothing but a digest.
func toldModules(t *testing.T) *catalogue.Service {
	t.Helper()
	store := cataloguetest.NewStore()
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	c := catalogue.Change{Sets: map[fleet.Digest]action.Set{}}
	add := func(node fleet.Certname, version string, more ...action.Listed) {
		m := action.Module{
			Name: "lamp", Description: "Switches lamps", Version: version, Author: "Ann", Provider: action.External,
			Actions: []action.Action{{
				Name: "on", Description: "Switch one on", Timeout: 7, Aggregates: []action.Aggregate{{Function: action.Summary, Field: "state"}},
				Input: jsontext.Value(`{"type":"object","required":["name"],"properties":{
					"bright":{"type":"integer","default":3},"code":{"type":"string","writeOnly":true},"name":{"type":"string","title":"Name","description":"Of the lamp.","maxLength":9,"x-order":1}}}`),
				Results: jsontext.Value(`{"properties":{"state":{"type":"string","enum":["on","off"]}}}`),
			}, {
				Name: "status", ReadOnly: true, Display: action.Always, Input: jsontext.Value(`{"properties":{"code":{"type":"string","writeOnly":true}}}`),
				Results: jsontext.Value(`{}`),
			}},
		}
		text := m.Text()
		set := action.NewSet(append(more, action.ListedOf(m)))
		c.Sets[set.Digest()] = set
		c.Modules = append(c.Modules, catalogue.Metadata{
			Described: catalogue.Described{
				Digest: m.Digest(), Name: m.Name, Version: version, Provider: m.Provider, Description: m.Description, Known: at, Bytes: int64(len(text)),
			}, Text: text,
		})
		c.Agents = append(c.Agents, catalogue.Agent{Node: node, Set: set.Digest(), Version: "1.4.0", OS: "linux", Arch: "amd64", Told: at})
	}
	add("web-1", "1.2")
	add("db-1", "1.10", action.Listed{Name: "fan", Version: "2", Provider: action.Choria, Problem: "it has no metadata"})
	c.Agents = append(c.Agents, catalogue.Agent{Node: "new-1", Set: fleet.DigestOf(nil), Version: "1.4.0", OS: "linux", Arch: "amd64", Told: at})
	check(t, store.SaveCatalogue(t.Context(), c))
	s, err := catalogue.Open(t.Context(), catalogue.Parts{
		Store: store, Ask: func(context.Context, fleet.Certname, pxp.Request) error { return nil },
		Connected: func(fleet.Certname) bool { return false }, NewID: func() string { return "" }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, catalogue.DefaultLimits())
	check(t, err)
	return s
}

func TestActionList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(t, "db-1", "other")
	b.seed(t, "new-1", "other")
	list := func(query string) string {
		t.Helper()
		var list api.List[api.ActionModule]
		b.do(t, "GET", "/actions"+query, "", &list)
		var lines []string
		for _, m := range list.Items {
			line := fmt.Sprint(m.Module, " ", m.Nodes, ":")
			for _, v := range m.Versions {
				line += fmt.Sprint(" ", v.Version, "x", v.Nodes)
			}
			for _, a := range m.Actions {
				line += " " + a.Name
				if a.ReadOnly {
					line += " (reads)"
				}
			}
			for _, p := range m.Problems {
				line += fmt.Sprint(" ", p.Problem, " ", p.Nodes, p.Examples)
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	const broken = "fan 0: it has no metadata 1 [db-1]"
	for query, want := range map[string]string{
		"":                         broken + "\nlamp 2: 1.10x1 1.2x1 on status (reads)",
		"?problems=true":           broken,
		"?node=web-1":              "lamp 1: 1.2x1 on status (reads)",
		"?node=db-1&problems=true": broken,
	} {
		if diff := cmp.Diff(want, list(query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	b.gets(t, "GET", "/actions?node=stranger", "", 404, "stranger")
	b.gets(t, "GET", "/actions?node=new-1", "", 503, "new-1 has not told yet which modules it has; try again in a moment")
	b.seed(t, "stock-1", "other")
	b.gets(t, "GET", "/actions?node=stock-1", "", 404, "only a tutti agent does")
}

func TestActionShow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var m api.ActionModule
	b.do(t, "GET", "/actions/lamp", "", &m)
	if m.Author != "Ann" || m.Nodes != 2 || len(m.Versions) != 2 || m.Versions[0].Version != "1.10" || len(m.Actions) != 2 {
		t.Fatalf("%+v", m)
	}
	want := []api.ActionField{
		{Name: "name", Title: "Name", Description: "Of the lamp.", Type: "string", Required: true, MaxLength: 9},
		{Name: "bright", Title: "bright", Type: "integer", Default: []byte("3")},
		{Name: "code", Title: "code", Type: "string", Sensitive: true},
	}
	on := m.Actions[0]
	if diff := cmp.Diff(want, on.Inputs); diff != "" || on.Display != "failed" || on.Timeout != 7 || on.Aggregates[0].Function != "summary" {
		t.Errorf("%+v\n%s", on, diff)
	}
	if diff := cmp.Diff([]api.ActionField{{Name: "state", Title: "state", Type: "string", Values: []string{"on", "off"}}}, on.Outputs); diff != "" {
		t.Error(diff)
	}
	b.gets(t, "GET", "/actions/none", "", 404, `no node has told of a module`)
	var broken api.ActionModule
	b.do(t, "GET", "/actions/fan", "", &broken)
	if len(broken.Actions) != 0 || len(broken.Problems) != 1 {
		t.Errorf("%+v", broken)
	}
	var node api.Node
	b.do(t, "GET", "/nodes/web-1", "", &node)
	if a := node.Agent; a == nil || a.Version != "1.4.0" || len(a.Modules) != 1 || a.Modules[0].Name != "lamp" || a.Modules[0].Version != "1.2" {
		t.Errorf("%+v", node.Agent)
	}
}

// Nodes that somebody may not see do not count for them.
func TestActionsOfHiddenNodes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(t, "db-1", "other")
	for name, want := range map[string]bool{"viewer": true, "web team": false} {
		for _, path := range []string{"/actions", "/actions/lamp"} {
			text := b.call(caller(t, name), "GET", api.Prefix+path, nil).Body.String()
			if !strings.Contains(text, `"1.2"`) || strings.Contains(text, "1.10") != want || strings.Contains(text, "db-1") && !want {
				t.Errorf("%s as %s: %s", path, name, text)
			}
		}
		if w := b.call(caller(t, name), "GET", api.Prefix+"/actions?node=db-1", nil); (w.Code == 200) != want {
			t.Errorf("a node as %s: %d %s", name, w.Code, w.Body)
		}
		if w := b.call(caller(t, name), "GET", api.Prefix+"/actions/fan", nil); (w.Code == 200) != want {
			t.Errorf("a module of hidden nodes as %s: %d %s", name, w.Code, w.Body)
		}
	}
}

package compiletest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// InventoryBackend is one empty inventory under test.
type InventoryBackend struct {
	Inventory compile.Inventory
	// Replace makes resources all that a node's catalog holds.
	Replace func(node fleet.Certname, resources ...Resource)
	// Deactivate takes a node out of use.
	Deactivate func(node fleet.Certname)
}

// RunInventory is the conformance suite of compile.Inventory.
func RunInventory(t *testing.T, open func(t *testing.T) InventoryBackend) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, InventoryBackend){
		"CollectorsFindWhatOthersExport": findsExported,
		"FiltersNarrow":                  filtersNarrow,
		"BadFiltersAreInvalid":           badFilters,
		"QueriesHaveRows":                queriesHaveRows,
		"ReachesNarrow":                  reachesNarrow,
		"BadQueriesAreInvalid":           badQueries,
		"AnswersAreBounded":              answersAreBounded,
		"CancelledQuestionsEnd":          cancelledQuestions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.Replace("a.example",
				Resource{
					Environment: "production", Type: "File", Title: "/a", Exported: true, Tags: []string{"file", "web"},
					Parameters: json.RawMessage(`{"mode":"0644","n":1,"on":true}`),
				},
				Resource{Environment: "production", Type: "File", Title: "/kept", Tags: []string{"file"}, Parameters: json.RawMessage(`{}`)},
				Resource{Environment: "production", Type: "Host", Title: "a", Exported: true, Tags: []string{"host"}, Parameters: json.RawMessage(`{}`)})
			b.Replace("b.example",
				Resource{
					Environment: "other", Type: "File", Title: "/b2", Exported: true, Tags: []string{"file"}, Parameters: json.RawMessage(`{"mode":"0600","list":["x"]}`),
				},
				Resource{
					Environment: "other", Type: "File", Title: "/b1", Exported: true, Tags: []string{"file", "web"},
					Parameters: json.RawMessage(`{"mode":"0644","n":2,"deep":["x",[1,true]]}`),
				})
			test(t, b)
		})
	}
}

const plenty = 1 << 20

// titles lists what a collector finds as exporter:title.
func titles(t *testing.T, b InventoryBackend, node fleet.Certname, kind, filter string) []string {
	t.Helper()
	found, err := b.Inventory.Exported(t.Context(), compile.Collector{Node: node, Type: kind, Filter: json.RawMessage(filter), MaxBytes: plenty})
	if err != nil {
		t.Errorf("collect %s %s: %v", kind, filter, err)
	}
	names := []string{}
	for _, r := range found {
		if r.Type != kind {
			t.Errorf("collect %s: found a %s", kind, r.Type)
		}
		names = append(names, string(r.Exporter)+":"+r.Title)
	}
	return names
}

func findsExported(t *testing.T, b InventoryBackend) {
	t.Helper()
	for node, want := range map[fleet.Certname]string{
		"c.example": "a.example:/a b.example:/b1 b.example:/b2",
		"a.example": "b.example:/b1 b.example:/b2",
		"b.example": "a.example:/a",
	} {
		if got := strings.Join(titles(t, b, node, "File", ""), " "); got != want {
			t.Errorf("%s collects %q, want %q", node, got, want)
		}
	}
	found, err := b.Inventory.Exported(t.Context(), compile.Collector{Node: "b.example", Type: "File", MaxBytes: plenty})
	if err != nil || len(found) != 1 || string(found[0].Parameters) != `{"mode":"0644","n":1,"on":true}` {
		t.Errorf("parameters: %+v, %v", found, err)
	}
	if got := strings.Join(titles(t, b, "c.example", "Host", ""), " "); got != "a.example:a" {
		t.Errorf("hosts: %q", got)
	}
	b.Deactivate("b.example")
	if got := strings.Join(titles(t, b, "c.example", "File", ""), " "); got != "a.example:/a" {
		t.Errorf("a deactivated node still exports: %q", got)
	}
	b.Replace("a.example")
	if got := titles(t, b, "c.example", "File", "null"); len(got) != 0 {
		t.Errorf("after the exporter exports nothing more: %v", got)
	}
}

func filtersNarrow(t *testing.T, b InventoryBackend) {
	t.Helper()
	for filter, want := range map[string]string{
		`["=","tag","web"]`:                                                       "a.example:/a b.example:/b1",
		`["=","title","/b2"]`:                                                     "b.example:/b2",
		`["=",["parameter","mode"],"0644"]`:                                       "a.example:/a b.example:/b1",
		`["=",["parameter","n"],2]`:                                               "b.example:/b1",
		`["=",["parameter","on"],true]`:                                           "a.example:/a",
		`["=",["parameter","list"],["x"]]`:                                        "b.example:/b2",
		`["=",["parameter","list"],["x","y"]]`:                                    "",
		`["=",["parameter","list"],["y"]]`:                                        "",
		`["=",["parameter","deep"],["x",[1,true]]]`:                               "b.example:/b1",
		`["=",["parameter","deep"],["x",[1]]]`:                                    "",
		`["not",["=",["parameter","list"],["x"]]]`:                                "a.example:/a b.example:/b1",
		`["=",["parameter","absent"],"x"]`:                                        "",
		`["not",["=","tag","web"]]`:                                               "b.example:/b2",
		`["not",["=",["parameter","n"],2]]`:                                       "a.example:/a b.example:/b2",
		`["and",["=","tag","web"],["not",["=","title","/a"]]]`:                    "b.example:/b1",
		`["or",["=","title","/a"],["=",["parameter","mode"],"0600"]]`:             "a.example:/a b.example:/b2",
		`["and",["or",["=","title","/a"],["=","title","/b1"]],["=","tag","web"]]`: "a.example:/a b.example:/b1",
	} {
		if got := strings.Join(titles(t, b, "c.example", "File", filter), " "); got != want {
			t.Errorf("%s finds %q, want %q", filter, got, want)
		}
	}
}

// What is asked with a reach is answered as if there were no other nodes.
func reachesNarrow(t *testing.T, b InventoryBackend) {
	t.Helper()
	for reach, want := range map[string]string{
		"":                          "a.example b.example b.example",
		`certname = "a.example"`:    "a.example",
		`certname = "b.example"`:    "b.example b.example",
		`certname = ""`:             "",
		`!(certname = "a.example")`: "b.example b.example",
	} {
		found, err := b.Inventory.Exported(t.Context(), compile.Collector{Node: "c.example", Type: "File", MaxBytes: plenty, Reach: reach})
		if err != nil {
			t.Fatalf("collect within %s: %v", reach, err)
		}
		var names []string
		for _, r := range found {
			names = append(names, string(r.Exporter))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("collected within %s: of %q, want of %q", reach, got, want)
		}
		rows, err := b.Inventory.Query(t.Context(), compile.Query{
			Text: `resources[certname]{ type = "File" and exported = true or title = "/a" }`, MaxBytes: plenty, Reach: reach,
		})
		if err != nil {
			t.Fatalf("ask within %s: %v", reach, err)
		}
		var list []struct{ Certname string }
		if err := json.Unmarshal(rows, &list); err != nil {
			t.Fatal(err)
		}
		names = nil
		for _, r := range list {
			names = append(names, r.Certname)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("asked within %s: %q, want %q", reach, got, want)
		}
	}
}

func badFilters(t *testing.T, b InventoryBackend) {
	t.Helper()
	for _, filter := range []string{`["=","title"]`, `["from","nodes"]`, `{}`, `[`, `["=","nothing","x"]`} {
		_, err := b.Inventory.Exported(t.Context(), compile.Collector{Node: "c.example", Type: "File", Filter: json.RawMessage(filter), MaxBytes: plenty})
		if fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%s: got %v, want Invalid", filter, err)
		}
	}
}

func queriesHaveRows(t *testing.T, b InventoryBackend) {
	t.Helper()
	for _, text := range []string{
		`resources[certname, title]{type = "File" and exported = true}`,
		`["from","resources",["extract",["certname","title"],["and",["=","type","File"],["=","exported",true]]]]`,
	} {
		rows, err := b.Inventory.Query(t.Context(), compile.Query{Text: text, MaxBytes: plenty})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []map[string]string
		if err := json.Unmarshal(rows, &got); err != nil {
			t.Fatal(err)
		}
		want := []map[string]string{{"certname": "a.example", "title": "/a"}, {"certname": "b.example", "title": "/b1"}, {"certname": "b.example", "title": "/b2"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	rows, err := b.Inventory.Query(t.Context(), compile.Query{Text: `resources[title]{type = "Nothing"}`, MaxBytes: plenty})
	if err != nil || string(rows) != "[]" {
		t.Errorf("no rows are %s, %v", rows, err)
	}
}

func badQueries(t *testing.T, b InventoryBackend) {
	t.Helper()
	for text, want := range map[string]string{
		"resources[title]{":                 "line 1, column",
		"":                                  "",
		`["from"]`:                          "",
		"nothing{}":                         "line 1, column 1",
		`resources[nothing]{type = "File"}`: "nothing",
	} {
		_, err := b.Inventory.Query(t.Context(), compile.Query{Text: text, MaxBytes: plenty})
		if err == nil || fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%q: got %v, want Invalid with %q", text, err, want)
		}
	}
}

func answersAreBounded(t *testing.T, b InventoryBackend) {
	t.Helper()
	_, err := b.Inventory.Query(t.Context(), compile.Query{Text: `resources[title, parameters]{type = "File"}`, MaxBytes: 30})
	if err == nil || fault.Of(err) != fault.Invalid {
		t.Errorf("query: got %v, want Invalid", err)
	}
	_, err = b.Inventory.Exported(t.Context(), compile.Collector{Node: "c.example", Type: "File", MaxBytes: 30})
	if err == nil || fault.Of(err) != fault.Invalid {
		t.Errorf("collect: got %v, want Invalid", err)
	}
}

func cancelledQuestions(t *testing.T, b InventoryBackend) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, query := b.Inventory.Query(ctx, compile.Query{Text: `resources[title]{type = "File"}`, MaxBytes: plenty})
	_, collect := b.Inventory.Exported(ctx, compile.Collector{Node: "c.example", Type: "File", MaxBytes: plenty})
	if slices.ContainsFunc([]error{query, collect}, func(err error) bool { return err == nil || fault.Of(err) == fault.Invalid }) {
		t.Errorf("cancelled: %v", errors.Join(query, collect))
	}
}

package server

import (
	"encoding/json"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// What a catalog exports and collected becomes rows: an exported resource in the form
// that others are given, and of what was collected only what the catalog holds.
func TestSaveCatalogKeepsWhatIsExportedAndCollected(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Data = filepath.Join(t.TempDir(), "data")
	p, err := open(t.Context(), c, newLogger(c, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	document, digest, err := catalog.Normalise(json.RawMessage(`{"resources":[
			{"type":"Notify","title":"own","exported":true,"parameters":{"message":{"__ptype":"Timestamp","__pvalue":"2020"}}},
			{"type":"Notify","title":"theirs","exported":false,"parameters":{}}],"edges":[]}`), json.RawMessage(`[{"type":"Notify","title":"own","exported":true,"parameters":{"message":"2020"}},
			{"type":"Notify","title":"for others","exported":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	err = adapter{p}.SaveCatalog(t.Context(), compile.Result{
		Compilation: compile.Compilation{ID: 1, Node: "n.example", Environment: "production", Catalog: digest},
		Document:    document,
		Collected: []compile.Collected{
			{Type: "Notify", Title: "theirs", Exporter: "x.example"},
			{Type: "Notify", Title: "only looked at", Exporter: "x.example"},
			{Type: "Notify", Title: "own", Exporter: "x.example"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := p.store.Catalogs.Catalog(t.Context(), fleet.Certname("n.example"))
	if err != nil {
		t.Fatal(err)
	}
	want := []inventory.Resource{
		{Type: "Notify", Title: "own", Exported: true, Parameters: json.RawMessage(`{"message":"2020"}`)},
		{Type: "Notify", Title: "theirs", Parameters: json.RawMessage(`{}`)},
		{Type: "Notify", Title: "for others", Exported: true},
	}
	if diff := cmp.Diff(want, stored.Resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]inventory.Collected{{Type: "Notify", Title: "theirs", Exporter: "x.example"}}, stored.Collected); diff != "" {
		t.Errorf("collected (-want +got):\n%s", diff)
	}
}

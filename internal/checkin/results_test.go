package checkin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// ruling is a brake that always says the same.
type ruling struct {
	*world
	is deliver.Ruled
}

func (r ruling) Rule(context.Context, fleet.Certname, deliver.Catalog, func() (int, error)) (deliver.Ruled, error) {
	return r.is, nil
}

// What the brake holds is not shown, and neither is what was compiled for a node that came into released mode meanwhile.
func TestWhatIsNotShown(t *testing.T) {
	t.Parallel()
	w := newWorld()
	document, err := w.Document(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	result := compile.Result{Compilation: compile.Compilation{ID: 1, Node: web, Environment: "production", Catalog: "d", FinishedAt: noon}, Document: document}
	results := checkin.Results{Brake: ruling{w, deliver.Ruled{Ruling: deliver.Hold}}, Shown: w, Documents: w}
	if err := results.SaveCatalog(t.Context(), result); !errors.Is(err, compile.ErrHeld) {
		t.Errorf("held: %v", err)
	}
	if held, err := results.Held(t.Context(), result.Compilation); !held || err != nil {
		t.Errorf("it would not be held: %v", err)
	}
	w.released = true
	if err := results.SaveCatalog(t.Context(), result); err != nil {
		t.Errorf("released: %v", err)
	}
	if held, err := results.Held(t.Context(), result.Compilation); held || err != nil {
		t.Errorf("released and held: %v", err)
	}
	if shown, err := w.Fake.Catalog(t.Context(), web); err == nil {
		t.Errorf("%+v is shown", shown)
	}
}

// What a catalog exports and collected becomes rows: an exported resource in the form
// that others are given, and of what was collected only what the catalog holds.
func TestSaveCatalogKeepsWhatIsExportedAndCollected(t *testing.T) {
	t.Parallel()
	w := newWorld()
	results := checkin.Results{Brake: ruling{w, deliver.Ruled{Ruling: deliver.Give}}, Shown: w, Documents: w}
	document, digest, err := catalog.Normalise(json.RawMessage(`{"resources":[
			{"type":"Notify","title":"own","exported":true,"parameters":{"message":{"__ptype":"Timestamp","__pvalue":"2020"}}},
			{"type":"Notify","title":"theirs","exported":false,"parameters":{}}],"edges":[]}`),
		json.RawMessage(`[{"type":"Notify","title":"own","exported":true,"parameters":{"message":"2020"}},
			{"type":"Notify","title":"for others","exported":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	err = results.SaveCatalog(t.Context(), compile.Result{
		Compilation: compile.Compilation{ID: 1, FinishedAt: noon, Node: "n.example", Environment: "production", Catalog: digest},
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
	stored, err := w.Fake.Catalog(t.Context(), fleet.Certname("n.example"))
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

package server

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// TestHintsAreWhatAgentsRead: what a server tells is what an agent takes.
func TestHintsAreWhatAgentsRead(t *testing.T) {
	t.Parallel()
	p := deliver.Pointer{
		Mode: deliver.Released, Catalog: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Environment: "production", Version: "v",
		Generation: 3, UUID: "u", CompiledAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), FactsRead: "f",
	}
	text, err := hintParams(p, deliver.AtOnce)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pxp.ParseCatalogChange(text)
	if err != nil {
		t.Fatal(err)
	}
	want := pxp.CatalogChange{Apply: pxp.ApplyNow, CatalogPointer: pxp.CatalogPointer{
		Mode: "released", Catalog: string(p.Catalog), Environment: "production", Version: "v", Generation: 3, UUID: "u", CompiledAt: p.CompiledAt, FactsRead: "f",
	}}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	pointer, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pxp.ParseCatalogPointer(pointer); err != nil || got != want.CatalogPointer {
		t.Errorf("as a pointer: %+v %v", got, err)
	}
}

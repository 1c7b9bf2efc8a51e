package checkin

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/store/sql"
)

func TestCompilesAskTheStore(t *testing.T) {
	t.Parallel()
	compiletest.RunInventory(t, func(t *testing.T) compiletest.InventoryBackend {
		t.Helper()
		store := openStore(t)
		serial := int64(0)
		return compiletest.InventoryBackend{
			Inventory: Questions{store.Queries},
			Replace: func(node fleet.Certname, resources ...compiletest.Resource) {
				serial++
				text, _ := json.Marshal(resources)
				c := inventory.Catalog{Certname: node, Environment: "production", Digest: fleet.DigestOf(text), Compilation: serial}
				for _, r := range resources {
					c.Environment = r.Environment
					c.Resources = append(c.Resources, inventory.Resource{
						Type: r.Type, Title: r.Title, Tags: r.Tags, Exported: r.Exported, Parameters: r.Parameters,
					})
				}
				if err := store.Catalogs.SaveCatalog(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			},
			Deactivate: func(node fleet.Certname) {
				if err := store.Nodes.DeactivateNode(t.Context(), node, time.Now()); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// openStore opens a store and closes it with the test.
func openStore(t *testing.T) *sql.Store {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := sql.Open(t.Context(), sql.Config{Path: filepath.Join(t.TempDir(), "tutti.db")}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

package compiletest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/compile/compiletest"
)

func TestInventory(t *testing.T) {
	t.Parallel()
	compiletest.RunInventory(t, func(*testing.T) compiletest.InventoryBackend {
		i := compiletest.NewInventory()
		return compiletest.InventoryBackend{Inventory: i, Replace: i.Replace, Deactivate: i.Deactivate}
	})
}

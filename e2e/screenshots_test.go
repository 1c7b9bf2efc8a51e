//go:build screenshots

package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/sim"
)

// Pictures of the console's pages, to be looked at, and those of the README: `make screenshots`.
func TestScreenshots(t *testing.T) {
	begin(t, 60)
	out, err := filepath.Abs(filepath.Join("..", "bin", "screenshots"))
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Abs(filepath.Join("..", "docs", "pictures"))
	if err != nil {
		t.Fatal(err)
	}
	startConsole(t, sim.Names(120, "example.test")).browse(t, "screenshots.mjs", "TUTTI_SCREENSHOTS="+out, "TUTTI_PICTURES="+pictures)
}

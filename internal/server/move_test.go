package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// A data directory that is named from a directory which is gone cannot be found, and that is what is said.
func TestAMoveFromADirectoryThatIsGone(t *testing.T) {
	from, to := settings.Default(), settings.Default()
	from.Data, to.Data = t.TempDir(), "data"
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	_, err := Move(t.Context(), from, to, MoveOptions{})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Detail(err), "data is not absolute") ||
		strings.Contains(fault.Detail(err), "keeps the data directory") {
		t.Errorf("the new settings: %v", err)
	}
	from.Data = "data"
	if _, err = Move(t.Context(), from, to, MoveOptions{}); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(fault.Detail(err), "data is not absolute") {
		t.Errorf("the settings of now: %v", err)
	}
	t.Chdir(t.TempDir())
	if _, err = Move(t.Context(), settings.Config{Data: "/srv/tutti"}, to, MoveOptions{}); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(fault.Detail(err), "data, which is ") {
		t.Errorf("another directory: %v", err)
	}
}

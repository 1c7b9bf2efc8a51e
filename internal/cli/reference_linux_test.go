package cli_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cli"
)

var update = flag.Bool("update", false, "write docs/reference and console/src/api anew")

func TestReferencePagesAreCurrent(t *testing.T) {
	t.Parallel()
	areCurrent(t, filepath.Join("..", "..", "docs", "reference"), cli.References())
}

// areCurrent holds that the files of a folder are what would be generated now; with -update they are written first.
func areCurrent(t *testing.T, folder string, generated map[string]string) {
	t.Helper()
	for name, want := range generated {
		path := filepath.Join(folder, name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not current; run `make generate` (-want +got):\n%s", path, diff)
		}
	}
}

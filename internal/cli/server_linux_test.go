package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault/checkup"
)

// Who checks what the service would do without naming the service's settings checks another server.
func TestSettingsThatWereNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.yaml")
	if found := notRead(path); len(found) != 0 {
		t.Errorf("there is no file: %v", found)
	}
	if err := os.WriteFile(path, []byte("dns_alt_names: [puppet]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := notRead(path); len(found) != 1 || found[0].State != checkup.Warning || !strings.HasSuffix(found[0].Mend, "--config "+path) {
		t.Errorf("%v", found)
	}
}

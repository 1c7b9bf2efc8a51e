package ruby

import (
	"os"
	"path/filepath"
	"testing"
)

// The time zone is read in C, from a file that no catalog names: another zone is another compiler.
func TestTheTimeZoneNamesTheCompiler(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone")
	t.Setenv("TZ", ":"+path)
	name := func(zone string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("/usr/share/zoneinfo", zone))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := identify(t.Context(), Config{NoJIT: true})
		if err != nil {
			t.Fatal(err)
		}
		return found.name
	}
	berlin := name("Europe/Berlin")
	if tokyo := name("Asia/Tokyo"); tokyo == berlin {
		t.Errorf("both zones name %s", berlin)
	}
	if again := name("Europe/Berlin"); again != berlin {
		t.Errorf("the same zone names %s and %s", berlin, again)
	}
}

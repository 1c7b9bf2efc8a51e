package console_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Most bytes of JavaScript, packed: of the first load, and of each part that comes when it is needed.
const (
	firstLoad = 300 << 10
	laterPart = 150 << 10
)

// The console stays quick to load.
func TestBudgets(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := filepath.Glob("dist/assets/*.js")
	if err != nil || len(parts) < 5 {
		t.Fatalf("%d parts: nothing was looked at (%v)", len(parts), err)
	}
	first := 0
	for _, path := range parts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(text)
		_ = z.Close()
		if regexp.MustCompile(regexp.QuoteMeta(filepath.Base(path))).Match(index) {
			first += packed.Len()
		} else if packed.Len() > laterPart {
			t.Errorf("%s is %d bytes packed, more than %d", path, packed.Len(), laterPart)
		}
	}
	t.Logf("the first load is %d bytes of JavaScript, packed", first)
	if first == 0 || first > firstLoad {
		t.Errorf("the first load is %d bytes of JavaScript, packed; %d are allowed", first, firstLoad)
	}
}

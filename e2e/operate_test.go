package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every command of the pages about installing and operating, on a server with a node; the figures that they name are there.
func TestThePagesAboutOperating(t *testing.T) {
	begin(t, 40)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0")
	versionOf(t, s, releasedCode(t, "operated"))
	if err := s.checkIn("web-1.test", map[string]any{"scratch": "/nowhere", "plugged": "x"}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sh := newShell(t, dir, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TUTTI_DATA="+s.data, "SERVER="+s.url, "HOME="+t.TempDir())
	for _, page := range []string{"install.md", "operate.md"} {
		text, err := os.ReadFile(filepath.Join(docs, page))
		if err != nil {
			t.Fatal(err)
		}
		sh.follows(page, strings.ReplaceAll(string(text), "https://localhost:8140", s.url))
		if page != "operate.md" {
			continue
		}
		figures := execute(t, cleanEnv(), time.Minute, "sh",
			"-c", `curl --silent --cacert "$1/ca/ca_crt.pem" --header "Authorization: Bearer $(cat "$2/scrape.token")" "$3/metrics"`, "-", s.data, dir, s.url).out
		passing := []string{"tutti_compile_slowed", "tutti_compile_trouble"} // they are there while an environment is slowed, or something waits
		for _, figure := range regexp.MustCompile("`(tutti_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(figures, "# TYPE "+figure[1]+" ") && !slices.Contains(passing, figure[1]) {
				t.Errorf("%s names the figure %s, and there is none", page, figure[1])
			}
		}
	}
}

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
)

// Every command has a manual page, which mandoc and man read without a word of complaint.
func TestManualPages(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"mandoc", "man"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: make test-deps", program)
		}
	}
	dir := t.TempDir()
	newShell(t).must(t, "man", dir)
	eachVerb(func(cmd *cobra.Command) {
		if _, err := os.Stat(filepath.Join(dir, manName(cmd)+".1")); err != nil {
			t.Errorf("%s has no page: %v", cmd.CommandPath(), err)
		}
	})
	pages, err := filepath.Glob(filepath.Join(dir, "tutti*.1"))
	if err != nil || len(pages) < 100 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	root := (&app{}).root()
	root.InitDefaultCompletionCmd()
	for name, text := range manPages(root, api.Build{Version: "1.2.3", Date: "2026-11-20T10:00:00Z"}) { // this test has no date
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "mandoc", append([]string{"-T", "lint", "-W", "warning"}, pages...)...).CombinedOutput(); err != nil {
		t.Errorf("mandoc: %v\n%.3000s", err, out)
	}
	page := exec.CommandContext(t.Context(), "man", "-l", filepath.Join(dir, "tutti-node-list.1"))
	page.Env = append(os.Environ(), "MANWIDTH=200", "LC_ALL=C")
	out, err := page.CombinedOutput()
	if err != nil {
		t.Fatalf("man: %v\n%s", err, out)
	}
	for _, want := range []string{"tutti-node-list - List", "--where", "  tutti node list", "tutti-node(1)", "EXIT STATUS"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("man tutti-node-list has no %q:\n%s", want, out)
		}
	}
}

// The same source gives the same pages: their date is the source's.
func TestManualPagesDependOnTheSourceOnly(t *testing.T) {
	t.Parallel()
	build := api.Build{Version: "1.2.3", Date: "2026-11-20T10:00:00Z"}
	one, other := manPages((&app{}).root(), build), manPages((&app{}).root(), build)
	for name, text := range one {
		if other[name] != text {
			t.Errorf("%s differs from one time to the next", name)
		}
	}
	if text := one["tutti.1"]; !strings.HasPrefix(text, `.TH "TUTTI" 1 "2026-11-20" "tutti 1.2.3" "Tutti"`) {
		t.Errorf("tutti.1 begins with %.80q", text)
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{".SH": `\&.SH`, "'x'": `\&'x'`, `a\b`: `a\eb`, "--all": `\-\-all`} {
		if got := roff(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
)

// The page for authors of modules: its programs are written to files, and its commands are typed.
func TestThePageAboutWritingActions(t *testing.T) {
	begin(t, 60)
	text, err := os.ReadFile(filepath.Join(docs, "writing-actions.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := regexp.MustCompile("(?ms)^`([a-z.-]+)`:\n\n```[a-z]+\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(files) != 7 {
		t.Errorf("the page has %d files: some are lost", len(files))
	}
	for _, f := range files {
		path := filepath.Join(dir, f[1])
		write(t, path, f[2])
		if strings.HasPrefix(f[2], "#!") {
			if err := os.Chmod(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	if strings.Count(string(text), "\n$ ") < 15 {
		t.Error("the page has fewer commands: some are lost")
	}
	sh := newShell(t, dir, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "HOME="+t.TempDir(), "GOFLAGS=-trimpath", "GOWORK=off",
		"GOCACHE="+goCache(t), "LANG=C.UTF-8")
	sh.follows("writing-actions.md", string(text))
}

// goCache is where compiled packages are, so that they are not compiled once more.
func goCache(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "go-build")
}

// The page's table of formats is that of the program.
func TestThePageAboutWritingActionsHasAllFormats(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(docs, "writing-actions.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| format | a text must be |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var want []string
	for _, f := range action.Formats() {
		want = append(want, f.Name+": "+f.Expects)
	}
	var got []string
	for row := range strings.SplitSeq(table, "\n") {
		name, expects, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(row, "| `"), " |"), "` | ")
		expects = strings.ReplaceAll(strings.ReplaceAll(expects, "`` ` $ ; \\| & > < ``", "\x00 $ ; | & > <"), "`", "")
		got = append(got, name+": "+strings.ReplaceAll(expects, "\x00", "`"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-program +page):\n%s", diff)
	}
}

package tutti_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)(…?)(?:/[^`]*)?`")
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
)

// A page that says by which test something is held names a test that is there.
func TestPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	var all []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunc.FindAllStringSubmatch(string(text), -1) {
			all = append(all, found[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(pages, "README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testName.FindAllStringSubmatch(string(text), -1) {
			named++
			if !there(all, found[1], found[2] != "") {
				t.Errorf("%s names %s, and there is no such test", page, found[0])
			}
		}
	}
	if named < 20 {
		t.Errorf("pages name %d tests: this one has lost its eyes", named)
	}
}

// A row of the threat model ends with tests, not with a package or a file in which some may be.
func TestTheThreatModelNamesTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile("`(internal/[a-z/]+|[a-z]+_test\\.go)`")
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) == 5 && place.MatchString(cells[3]) {
			t.Errorf("no test is named: %s", line)
		}
	}
}

func there(all []string, name string, beginning bool) bool {
	for _, test := range all {
		if test == name || beginning && strings.HasPrefix(test, name) {
			return true
		}
	}
	return false
}

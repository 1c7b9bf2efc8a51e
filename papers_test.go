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

func there(all []string, name string, beginning bool) bool {
	for _, test := range all {
		if test == name || beginning && strings.HasPrefix(test, name) {
			return true
		}
	}
	return false
}

// A target that `make` lists does something whatever files there are: it is phony.
func TestListedTargetsArePhony(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	phony := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindAllStringSubmatch(string(text), -1) {
		for name := range strings.FieldsSeq(line[1]) {
			phony[name] = true
		}
	}
	listed := regexp.MustCompile(`(?m)^([a-z-]+):.*##`).FindAllStringSubmatch(string(text), -1)
	if len(listed) < 20 {
		t.Errorf("make lists %d targets: this test has lost its eyes", len(listed))
	}
	for _, target := range listed {
		if !phony[target[1]] {
			t.Errorf("make %s is not phony", target[1])
		}
	}
}

package tutti_test

import (
	"go/ast"
	"go/parser"
	"go/token"
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

var (
	placeName = regexp.MustCompile("(?:`|\\()((?:internal|bench|e2e|docs|cmd|decisions|packaging)/[A-Za-z0-9_./-]+)")
	identName = regexp.MustCompile(`\b([a-z][a-z0-9]+)\.([A-Z][A-Za-z0-9]+)`)
)

// The pages that lead through the code name folders, files and declarations that are there.
func TestPagesNamePlacesThatExist(t *testing.T) {
	t.Parallel()
	declared := declarations(t)
	places, names := 0, 0
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/finding-your-way.md", "docs/adding-an-operation.md", "docs/threat-model.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range placeName.FindAllStringSubmatch(string(text), -1) {
			places++
			if _, err := os.Stat(found[1]); err != nil {
				t.Errorf("%s names %s, and there is no such file or folder", page, found[1])
			}
		}
		for _, found := range identName.FindAllStringSubmatch(string(text), -1) {
			in, ours := declared[found[1]]
			if !ours {
				continue
			}
			names++
			if !in[found[2]] {
				t.Errorf("%s names %s, and package %s declares no %s", page, found[0], found[1], found[2])
			}
		}
	}
	if places < 30 || names < 30 {
		t.Errorf("pages name %d places and %d declarations: this test has lost its eyes", places, names)
	}
}

// declarations are the exported names of each package of ours, by its last name: functions, types, methods, values.
func declarations(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	err := filepath.WalkDir("internal", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name := filepath.Base(filepath.Dir(path))
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				all[name][d.Name.Name] = true
			case *ast.GenDecl:
				declare(all[name], d)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func declare(in map[string]bool, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			in[s.Name.Name] = true
			if port, ok := s.Type.(*ast.InterfaceType); ok {
				for _, method := range port.Methods.List {
					for _, name := range method.Names {
						in[name.Name] = true
					}
				}
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				in[name.Name] = true
			}
		}
	}
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
	listed := regexp.MustCompile(`(?m)^([a-z0-9-]+):.*##`).FindAllStringSubmatch(string(text), -1)
	if len(listed) < 20 {
		t.Errorf("make lists %d targets: this test has lost its eyes", len(listed))
	}
	for _, target := range listed {
		if !phony[target[1]] {
			t.Errorf("make %s is not phony", target[1])
		}
	}
}

// A target that runs tests by name runs them: go test has nothing against a name that no test has.
func TestTestsOfTargetsAreThere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
		named[name] = true
	}
	if len(named) < 30 {
		t.Errorf("the Makefile names %d tests: this test has lost its eyes", len(named))
	}
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			for name := range named { // a target may run all whose names begin so
				if strings.HasPrefix(string(found[1]), name) {
					delete(named, name)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range named {
		t.Errorf("the Makefile runs %s, which is no test", name)
	}
}

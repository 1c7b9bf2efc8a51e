package tutti_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What `make test` leaves out by its name is there once, in a package where `make stories` runs it: another test of that name would be left out by both.
func TestWhatMakeTestLeavesOutIsInTheStories(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	variable := func(name string) string {
		joined := regexp.MustCompile(`\$\\\n\s*`).ReplaceAllString(string(text), "")
		found := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindStringSubmatch(joined)
		if found == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return found[1]
	}
	told := strings.Fields(variable("LONG_IN"))
	names := regexp.MustCompile(`\bTest\w+`).FindAllString(variable("LONG"), -1)
	if len(names) < 40 || len(told) < 5 {
		t.Fatalf("%d tests in %d packages: the Makefile is not understood", len(names), len(told))
	}
	there := testsByName(t)
	for _, name := range names {
		if in := there[name]; len(in) != 1 || !slices.Contains(told, in[0]) {
			t.Errorf("%s is in LONG; it must be in one package of LONG_IN, and is in %v", name, in)
		}
	}
}

// testsByName is the packages that have a test, by its name.
func testsByName(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || file != "." && strings.HasPrefix(entry.Name(), ".")) {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		in := "./" + path.Dir(filepath.ToSlash(file))
		if in == "./." {
			in = "."
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && !slices.Contains(all[f.Name.Name], in) {
				all[f.Name.Name] = append(all[f.Name.Name], in)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

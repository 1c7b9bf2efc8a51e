package tutti_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What `make test` leaves out by its name is there once, in a package where `make stories` runs it: another test of that name would be left out by both.
// What is named to be run on Puppet 8 is there, too.
func TestWhatMakeTestLeavesOutIsInTheStories(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	variable := func(name string) string {
		joined := regexp.MustCompile(`\$?\\\n\s*`).ReplaceAllString(string(text), "")
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
	// A pattern that fits no test makes `go test` succeed.
	const ruby, e2e = "./internal/compiler/ruby", "./e2e"
	for list, in := range map[string]string{"PUPPET8_CORE": ruby, "PUPPET8_LONG": ruby, "WORLDS8": "./internal/server", "SERVERS8": e2e, "PUPPET8_STORIES": e2e} {
		names := regexp.MustCompile(`\bTest\w+`).FindAllString(variable(list), -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", list)
		}
		for _, name := range names {
			if !slices.Contains(there[name], in) {
				t.Errorf("%s is in %s; it must be in %s, and is in %v", name, list, in, there[name])
			}
		}
	}
}

// testsByName is the packages that have a test, by its name.
func testsByName(t *testing.T) map[string][]string {
	t.Helper()
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	all := map[string][]string{}
	for file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		in := "."
		if dir := filepath.ToSlash(filepath.Dir(file)); dir != "." {
			in = "./" + dir
		}
		for _, found := range test.FindAllStringSubmatch(string(text), -1) {
			if name := found[1]; !slices.Contains(all[name], in) {
				all[name] = append(all[name], in)
			}
		}
	}
	return all
}

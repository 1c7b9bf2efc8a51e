package ruby

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const functionsFile = "testdata/functions_in_c.txt"

// knownFunctions reads functionsFile: reasons, and below each, indented, the functions that it holds for. A name may end in *.
func knownFunctions(t *testing.T) (names map[string]bool, beginnings []string) {
	t.Helper()
	text, err := os.ReadFile(functionsFile)
	if err != nil {
		t.Fatal(err)
	}
	names = map[string]bool{}
	reason := ""
	for number, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			reason = line
			continue
		}
		if reason == "" {
			t.Fatalf("%s:%d: no reason is above it", functionsFile, number+1)
		}
		owner := ""
		for word := range strings.FieldsSeq(line) {
			if before, found := strings.CutSuffix(word, ":"); found && owner == "" {
				owner = before
				continue
			}
			if beginning, found := strings.CutSuffix(owner+word, "**"); found {
				beginnings = append(beginnings, beginning)
			} else {
				names[owner+word] = true
			}
		}
	}
	return names, beginnings
}

// Each function of Ruby that is written in C could open a file, read the clock or take a hash of facts whole, and nobody would notice.
// So each is hooked, or somebody has looked at it.
func TestFunctionsInCAreKnown(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/functions.rb")
	if err != nil {
		t.Fatal(err)
	}
	root := tree(t, withConf(map[string]string{
		"manifests/site.pp": "notify { 'x': message => rows::functions().join(\"\\n\") }\n",
		"modules/rows/lib/puppet/functions/rows/functions.rb": string(text),
	}))
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("functions"): root})
	made := mustCompile(t, pool, order(t, "production", "functions", "a.example.org")).find("Notify[x]")
	list, _ := made.Parameters["message"].(string)
	names, beginnings := knownFunctions(t)
	hooked, unknown := map[string]bool{}, []string{}
	all := strings.Fields(strings.ReplaceAll(list, "hooked ", "hooked:"))
	for _, name := range all {
		if name, found := strings.CutPrefix(name, "hooked:"); found {
			hooked[name] = true
			continue
		}
		if !names[name] && !slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(name, b) }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		t.Errorf("nobody has looked at these functions that Ruby has in C:\n%s\n"+
			"Does one open a file, read the clock, the environment or the system, or take a hash with all that is in it? Then add it to FUNCTIONS in "+
			"zygote/native_reads.rb, and a row to the tests of stale catalogs. Otherwise add it to %s, below the reason that holds.",
			strings.Join(unknown, "\n"), functionsFile)
	}
	for name := range hooked {
		if names[name] {
			t.Errorf("%s is hooked, and in %s", name, functionsFile)
		}
		if called, found := strings.CutPrefix(name, "Kernel#"); found && kernelCalls[called] == "" {
			t.Errorf("%s is hooked and has no row in kernelCalls", name)
		}
	}
	for called := range kernelCalls {
		if !hooked["Kernel#"+called] {
			t.Errorf("Kernel#%s has a row in kernelCalls and is not hooked", called)
		}
	}
	if len(all) < 3000 || len(hooked) < 200 {
		t.Errorf("only %d functions, %d of them hooked: the list is not complete", len(all), len(hooked))
	}
	if path := os.Getenv("TUTTI_FUNCTIONS"); path != "" {
		if err := os.WriteFile(path, []byte(fmt.Sprintln(list)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

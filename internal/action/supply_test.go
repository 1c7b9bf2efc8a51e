package action_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func suppliedFile(path string, size int64) action.SuppliedFile {
	return action.SuppliedFile{Path: path, Digest: fleet.DigestOf([]byte(path)), Size: size}
}

func suppliedModule(module, name string, files ...action.SuppliedFile) action.Supplied {
	return action.Supplied{Name: name, Module: module, Files: append(files, suppliedFile("metadata.json", 1))}
}

// What an environment has becomes what its nodes are told; what they cannot have says why, and what is told can be read.
func TestSupply(t *testing.T) {
	t.Parallel()
	many := suppliedModule("a", "many")
	for i := range action.MaxSuppliedFiles {
		many.Files = append(many.Files, suppliedFile(fmt.Sprint(i), 1))
	}
	s := action.NewSupply("production", []action.Supplied{
		suppliedModule("zoo", "twice"), suppliedModule("b", "good", suppliedFile("lib/x.py", 5)), suppliedModule("ark", "twice"), suppliedModule("c", "twice"), many,
		{Name: "empty", Module: "a"},
		suppliedModule("a", "-odd"), suppliedModule("a", "huge", suppliedFile("x", 200<<20), suppliedFile("y", 200<<20)),
		suppliedModule("a", "up", suppliedFile("../x", 1)), suppliedModule("a", "drive", suppliedFile("c:x", 1)),
	})
	want := map[string]string{
		"twice": "two Puppet modules have a module of actions of this name: ark and ", "good": "", "many": "it has 201 files, at most 200 are allowed",
		"empty": "its folder has no metadata.json",
		"-odd":  "is no name", "huge": "its files have more than", "up": `the file "../x" has a name`, "drive": `the file "c:x" has a name`,
	}
	if len(s.Modules) != len(want) {
		t.Errorf("%d modules, want %d", len(s.Modules), len(want))
	}
	for _, m := range s.Modules {
		if wanted := want[m.Name]; !strings.Contains(m.Problem, wanted) || (wanted == "") != (m.Problem == "") || wanted != "" && m.Files != nil {
			t.Errorf("%s: %q, want %q; files %v", m.Name, m.Problem, wanted, m.Files)
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	read, err := action.ParseSupply(text)
	if err != nil || read.Digest() != s.Digest() {
		t.Errorf("%v, %s", err, text)
	}
	again := suppliedModule("elsewhere", "good", suppliedFile("lib/x.py", 5))
	if again.Digest() != suppliedModule("b", "good", suppliedFile("lib/x.py", 5)).Digest() ||
		again.Digest() == suppliedModule("b", "good", suppliedFile("lib/x.py", 6)).Digest() {
		t.Error("a version is not named by its files")
	}
}

// A node believes no server that tells it nonsense.
func TestSuppliesThatAreRefused(t *testing.T) {
	t.Parallel()
	good := string(fleet.DigestOf(nil))
	file := func(path string) string { return `{"path":"` + path + `","sha256":"` + good + `","size":1}` }
	module := func(files string) string { return `{"modules":[{"name":"a","module":"m","files":[` + files + `]}]}` }
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":        {`x`, "it is not a list"},
		"no metadata":    {module(file("run")), "its folder has no metadata.json"},
		"a way up":       {module(file("metadata.json") + "," + file("a/../../x")), "has a name that not every node can have"},
		"an absolute":    {module(file("metadata.json") + "," + file("/etc/passwd")), "has a name that not every node can have"},
		"a backslash":    {module(file("metadata.json") + "," + file(`a\\b`)), "has a name that not every node can have"},
		"a bad digest":   {module(strings.Replace(file("metadata.json"), good, "x", 1)), "metadata.json"},
		"a large file":   {module(strings.Replace(file("metadata.json"), `"size":1`, `"size":268435457`, 1)), "has more than"},
		"one name twice": {`{"modules":[{"name":"a","problem":"x"},{"name":"a","problem":"x"}]}`, "each once"},
		"a bad name":     {strings.Replace(module(file("metadata.json")), `"a"`, `"../a"`, 1), "is no name"},
		"too many":       {`{"modules":[` + strings.Repeat(`{},`, 100) + `{}]}`, "at most 100 are allowed"},
	} {
		if _, err := action.ParseSupply([]byte(c.text)); fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

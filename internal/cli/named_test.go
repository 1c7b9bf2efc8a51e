package cli

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is wrong with a file that somebody names is said in one way by all commands: what it was for, the path, why, and what to do.
func TestFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"grups.yaml": "groups: []\n", "there": "", "key": "AGE-SECRET-KEY-1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newJobServer(t)
	here := func(name string) string { return filepath.Join(dir, name) }
	missing := here("nofile") + ": no such file or directory; it was looked for in " + dir
	for _, c := range []struct{ line, want string }{
		{"group apply -f " + here("groups.yaml"), "cannot read the groups: " + here("groups.yaml") + ": no such file or directory; did you mean grups.yaml?"},
		{"group apply -f " + dir, "cannot read the groups: " + dir + ": is a directory; name a file in it"},
		{"catalog diff web-1 --with " + here("nofile"), "cannot read the catalog of --with: " + missing},
		{"query @" + here("nofile"), "cannot read the query: " + missing},
		{"run --targets @" + here("nofile"), "cannot read the list of nodes: " + missing},
		{"script run " + here("nofile") + " --all", "cannot read the file: " + missing},
		{"file send " + here("nofile") + " /tmp/x --all", "cannot read the file: " + missing},
		{"action import " + here("nofile") + ".ddl", "cannot read the file: " + strings.Replace(missing, "nofile", "nofile.ddl", 1)},
		{"app module " + here("nofile"), "cannot write the module: " + missing},
		{"app module " + here("nowhere/modules"), "there is no directory " + here("nowhere")},
		{"action new disk --lang sh --dir " + here("there"), "cannot write the module: " + here("there") + ": not a directory; name a directory"},
		{"audit verify " + here("nofile") + " --ca-file " + here("there"), "whose log is it?"},
		{"audit verify " + here("nofile") + " --ca-file " + here("key"), "cannot read the export: " + missing},
		{"audit verify --ca-file " + here("nofile"), "cannot read the file: " + here("nofile") +
			": no such file or directory; name a file that you may read with --ca-file"},
		{"code source add x git@host:x --key-file " + here("nofile"), "cannot read the private key: " + missing},
		{"backup create " + here("b") + " --data " + dir + " --recipients-file " + here("nofile"), "cannot read the public keys: " + missing},
		{"backup create " + here("b") + " --data " + dir + " --passphrase-file " + here("nofile"), "cannot read the passphrase: " + missing},
		{"backup create " + here("b") + " --data " + dir +
			" --passphrase-file /dev/zero", "the first line of /dev/zero has more than 4096 bytes; it must be the passphrase: is it the right file?"},
		{"node list --ca-file /dev/zero", "cannot read the file: /dev/zero: it has more than 1048576 bytes; name a file that you may read with --ca-file"},
		{"node list --token-file /dev/zero", "cannot read the file: /dev/zero: it has more than 1048576 bytes; name a file that you may read with --token-file"},
		{"server --config /dev/zero", "configuration file /dev/zero: it has more than 1048576 bytes; is it the right file?"},
		{"backup verify " + here("b") + " --identity-file " + here("nofile"), "cannot read the private key: " + missing},
	} {
		var out bytes.Buffer
		got := s.tutti(t.Context(), "", func(system *System) { system.Err = &out }, strings.Fields(c.line)...)
		if got.code != exitUsage || !strings.Contains(out.String(), c.want) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("tutti %s: exit code %d, %q; want %d, %q", c.line, got.code, &out, exitUsage, c.want)
		}
	}
}

// Only named.go opens what people name. Elsewhere files are opened that Tutti itself keeps, or that need not be there.
func TestOneWayToOpenWhatIsNamed(t *testing.T) {
	t.Parallel()
	own := map[string][]string{
		"agentjoin.go":    {"Stat"}, // is there a file?
		"app.go":          {"Stat"}, // its error is said by unwritten
		"clienttools.go":  {"Open", "Stat"},
		"code.go":         {"Stat"},
		"server_linux.go": {"Stat"}, // is there a file?
		"named.go":        {"Open", "OpenFile"},
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := call.X.(*ast.Ident)
			opens := ok && pkg.Name == "os" && slices.Contains([]string{"Open", "OpenFile", "ReadFile", "Create", "Stat"}, call.Sel.Name)
			if opens && !slices.Contains(own[path], call.Sel.Name) {
				t.Errorf("%s calls os.%s: what people name is opened by openNamed, readNamed or createNamed", path, call.Sel.Name)
			}
			return true
		})
	}
}

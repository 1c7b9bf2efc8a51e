package tutti_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tutti-project/tutti/"

// ranks is the architecture: a package imports only packages of a lower rank.
// Words have a finer order among themselves. A package that is not named here
// fails the test: decide where it belongs first.
var ranks = map[string]int{
	// words
	"internal/fault": 0,
	"internal/graph": 0,
	"internal/bell":  0,
	"internal/crew":  0,
	"internal/fleet": 1,
	"internal/rate":  1,
	"internal/pql":   1,
	"internal/wire":  1,
	"internal/pxp":   1,
	"api":            2,
	// for the tests of every package
	"internal/programtest": 0,
	"internal/memory":      2,
	// cores: own their ports, import no core
	"internal/appgraph":  10,
	"internal/backup":    10,
	"internal/broker":    10,
	"internal/bucket":    10,
	"internal/cas":       9, // the others stand on it
	"internal/classify":  10,
	"internal/code":      10,
	"internal/datatype":  9, // tasks are checked with it
	"internal/compile":   10,
	"internal/deliver":   10,
	"internal/diff":      10,
	"internal/errand":    10,
	"internal/event":     10,
	"internal/intake":    10,
	"internal/inventory": 10,
	"internal/job":       10,
	"internal/pki":       10,
	"internal/policy":    10,
	"internal/preview":   10,
	"internal/release":   10,
	"internal/rbac":      10,
	"internal/relay":     10,
	"internal/routine":   10,
	"internal/task":      10,
	"internal/usage":     10,
	// flows: may import cores
	"internal/codecheck": 12,
	// edges: implement ports, import no edge
	"internal/blobfs":        20,
	"internal/cell":          19, // edges run programs in it
	"internal/yamljson":      19, // edges read with it
	"internal/caapi":         20,
	"internal/classifierapi": 20,
	"internal/eventlog":      20,
	"internal/exechook":      20,
	"internal/gitsource":     20,
	"internal/httpapi":       20,
	"internal/nodeapi":       20,
	"internal/fetch":         20,
	"internal/pcp":           20,
	"internal/pdbapi":        20,
	"internal/process":       20,
	"internal/external":      20,
	"internal/facter":        20,
	"internal/puppetrun":     20,
	"internal/puppetenv":     19, // edges run Puppet with it
	"internal/puppetapi":     20,
	"internal/ruby":          20,
	"internal/spool":         20,
	"internal/sqlstore":      20,
	"internal/tlsfront":      20,
	"internal/worktree":      20,
	"internal/ws":            20,
	// wholes: wire parts together, decide nothing
	"internal/agent":  30,
	"internal/server": 30,
	"internal/sim":    30,
	// they start servers as processes, for the benchmarks and e2e
	"internal/peers":         30,
	"internal/peers/load":    29,
	"internal/peers/measure": 29,
	"internal/truth":         30, // only tests import it
	"internal/cli":           32,
	"internal/demo":          31,
	"cmd/tutti":              40,
}

// testRank lets conformance suites and fakes (package xtest) import the core
// they serve and its neighbours, and nothing above.
const testRank = 11

// coreForbids names what belongs to an edge.
var coreForbids = map[string]string{
	"net/http":     "see puppetapi, httpapi",
	"database/sql": "see sqlstore",
	"os/exec":      "see ruby, exechook",
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for path, file := range goFiles(t) {
		pkg := filepath.ToSlash(filepath.Dir(path))
		if pkg == "." || strings.HasPrefix(pkg, "e2e") || strings.HasPrefix(pkg, "bench") || strings.HasPrefix(pkg, "tools") {
			continue // they stand outside and may see everything
		}
		rank, known := rankOf(pkg)
		if !known {
			t.Errorf("%s: package %s has no rank in arch_test.go", path, pkg)
			continue
		}
		test := strings.HasSuffix(path, "_test.go")
		for _, spec := range file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if why, bad := coreForbids[imp]; bad && rank <= 10 && !test && pkg != "api" {
				t.Errorf("%s imports %s: not in a core, %s", path, imp, why)
			}
			to, ours := strings.CutPrefix(imp, module)
			if !ours || test { // tests may wire real parts together
				continue
			}
			if toRank, _ := rankOf(to); toRank >= rank {
				t.Errorf("%s imports %s: imports point down", path, imp)
			}
		}
	}
}

// What makes random repositories is for tests.
func TestOnlyTestsImportTruth(t *testing.T) {
	t.Parallel()
	for path, file := range goFiles(t) {
		for _, spec := range file.Imports {
			if imp, _ := strconv.Unquote(spec.Path.Value); imp == module+"internal/truth" && !strings.HasSuffix(path, "_test.go") {
				t.Errorf("%s imports %s", path, imp)
			}
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for path, file := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		pkg := filepath.Dir(path)
		documented[pkg] = documented[pkg] || file.Doc != nil
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// rankOf finds a package's rank; a test-support package ranks above its core.
func rankOf(pkg string) (int, bool) {
	if rank, ok := ranks[pkg]; ok {
		return rank, true
	}
	parent, name := filepath.ToSlash(filepath.Dir(pkg)), filepath.Base(pkg)
	if rank, ok := ranks[parent]; ok && name == filepath.Base(parent)+"test" {
		return max(testRank, rank+1), true
	}
	return 0, false
}

// goFiles parses the imports of every Go file of the module. It parses rather
// than asks the go command, whose answer the test cache would not notice.
func goFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (path != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		files[path] = file
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found")
	}
	return files
}

package tutti_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
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
	"internal/fault":          0,
	"internal/graph":          0,
	"internal/graph/layout":   0,
	"internal/hint":           0,
	"internal/hint/bus":       1, // hints reach other servers over it
	"internal/parallel":       0,
	"internal/store/durable":  0,
	"internal/store/filelock": 0,
	"internal/yamljson":       0,
	"internal/fault/checkup":  1,
	"internal/fleet":          1,
	"internal/pql":            1,
	"internal/rate":           1,
	"internal/wire":           1,
	"internal/wire/pxp":       1,
	"internal/action/filter":  2,
	"api":                     2,
	// forms: what server and agent both read and write
	"internal/action":           3,
	"internal/action/ddl":       4,
	"internal/action/skeleton":  4,
	"internal/catalog":          3,
	"internal/catalog/variants": 3,
	"internal/facts":            3,
	"internal/facts/scan":       2, // facts, reports and received catalogs are read with it
	// cores: own their ports, import no core
	"internal/action/call":      10,
	"internal/action/catalogue": 10,
	"internal/action/history":   10,
	"internal/appgraph":         10,
	"internal/broker":           10,
	"internal/cas":              9, // the others stand on it
	"internal/hint/bulk":        10,
	"internal/classify":         10,
	"internal/code":             10,
	"internal/compile":          10,
	"internal/deliver":          10,
	"internal/diff":             10,
	"internal/event":            10,
	"internal/facts/factqueue":  10,
	"internal/cas/filebucket":   10,
	"internal/inventory":        10,
	"internal/inventory/saved":  10,
	"internal/job":              10,
	"internal/job/memo":         10,
	"internal/pki":              10,
	"internal/policy":           10,
	"internal/rbac":             10,
	"internal/store/backup":     10,
	"internal/store/lease":      10,
	"internal/store/move":       11, // rows travel as in backups
	"internal/store/usage":      10,
	"internal/task":             10,
	"internal/task/datatype":    9,  // tasks are checked with it
	"internal/inventory/chart":  11, // it draws what the inventory knows
	// flows: may import cores
	"internal/checkin":              12,
	"internal/checkin/near":         13, // it stands before a checkin
	"internal/code/source":          12,
	"internal/codecheck":            12,
	"internal/codecheck/groupcheck": 12,
	"internal/preview":              12,
	"internal/release":              12,
	"internal/target":               12,
	"internal/action/invoke":        12,
	"internal/job/submit":           12,
	"internal/job/schedule":         13, // it submits
	"internal/action/supply":        12,
	"internal/event/trace":          13, // it stands before releases, too
	// edges: implement ports, import no edge
	"internal/compiler/ruby":         20,
	"internal/compiler/worktree":     20,
	"internal/hint/natsbus":          20,
	"internal/program/cell":          19, // edges run programs in it
	"internal/program/git":           20,
	"internal/program/group":         18, // what is ended takes along all that it started
	"internal/program/hook":          20,
	"internal/program/output":        18, // what programs print is kept in it
	"internal/protocol/classifier":   20,
	"internal/protocol/front":        21, // before the edges
	"internal/protocol/node":         20,
	"internal/protocol/puppet":       20,
	"internal/protocol/puppetca":     20,
	"internal/protocol/puppetdb":     20,
	"internal/protocol/rest":         20,
	"internal/protocol/tls":          20,
	"internal/protocol/websocket":    20,
	"internal/store/blobdir":         20,
	"internal/store/blobs3":          20,
	"internal/store/local":           20,
	"internal/store/sql":             20,
	"internal/store/sql/query":       19, // questions become statements in it
	"internal/protocol/orchestrator": 20,
	"internal/protocol/pejson":       19, // edges answer with it
	"internal/program/r10k":          20,
	"internal/protocol/codemanager":  20,
	"internal/protocol/rbacapi":      20,
	"internal/protocol/console":      20,
	// an island: only a node has it
	"internal/agent":                   30, // its door
	"internal/agent/orders":            10,
	"internal/agent/actionpolicy":      10,
	"internal/agent/events":            10,
	"internal/agent/schedule":          10,
	"internal/agent/orders/orderstest": 12, // its suites start programs of a machine in memory
	"internal/agent/puppetenv":         19,
	"internal/agent/builtin":           19, // its modules stand on it
	"internal/agent/builtin/filemgr":   20,
	"internal/agent/builtin/packages":  20,
	"internal/agent/builtin/processes": 20,
	"internal/agent/builtin/self":      20,
	"internal/agent/builtin/service":   20,
	"internal/agent/builtin/tool":      19,
	"internal/agent/builtin/puppet":    20,
	"internal/agent/builtin/resource":  20,
	"internal/agent/connection":        20,
	"internal/agent/eventlog":          20,
	"internal/agent/facter":            20,
	"internal/agent/files":             20,
	"internal/agent/modules":           20,
	"internal/agent/process":           20,
	"internal/agent/puppetrun":         20,
	"internal/agent/spool":             20,
	// wholes: wire parts together, decide nothing
	"internal/server/settings":  27,
	"internal/server/datadir":   27,
	"internal/server/preflight": 28,
	"internal/server":           30,
	"internal/sim":              30,
	"internal/sim/machine":      11, // a node in memory: tests and the simulator run on it
	"internal/sim/demo":         31,
	"internal/cli":              32,
	"internal/cli/print":        31,
	"cmd/tutti":                 40,
	// for the tests of every package
	"internal/program/programtest": 0,
	"internal/store/memory":        2,
}

// rooms is how many folders internal may have: more cannot be seen in one look.
const rooms = 40

// testRank lets conformance suites and fakes (package xtest) import the core
// they serve and its neighbours, and nothing above.
const testRank = 11

// coreForbids names what belongs to an edge.
var coreForbids = map[string]string{
	"net/http":     "see protocol",
	"database/sql": "see store/sql",
	"os/exec":      "see compiler, program",
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
		forTests := test || strings.HasSuffix(pkg, "test")
		for _, spec := range file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if why, bad := coreForbids[imp]; bad && rank <= 10 && !forTests && pkg != "api" {
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

func TestInternalIsSeenInOneLook(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > rooms {
		t.Errorf("internal has %d folders, and %d may be: find the island to which the new one belongs", len(entries), rooms)
	}
}

// The agent is an island: the server never enters it, others enter by its door. The simulator exercises its parts one by one.
func TestTheAgentIsAnIsland(t *testing.T) {
	t.Parallel()
	const island = "internal/agent"
	entered := 0
	for path, file := range goFiles(t) {
		pkg := filepath.ToSlash(filepath.Dir(path))
		inside := pkg == island || strings.HasPrefix(pkg, island+"/")
		outside := strings.HasPrefix(pkg, "bench") || strings.HasPrefix(pkg, "e2e") || strings.HasPrefix(pkg, "internal/sim")
		if outside || strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, spec := range file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			to := strings.TrimPrefix(imp, module)
			door := !inside && to == island && !strings.HasPrefix(pkg, "internal/server")
			if door {
				entered++
			}
			if inside && to == "internal/inventory" {
				t.Errorf("%s imports %s: what an agent shares with the inventory is a form", path, imp)
			}
			if !inside && (to == island || strings.HasPrefix(to, island+"/")) && !door {
				t.Errorf("%s imports %s: the agent is entered through %s, and never by the server", path, imp, island)
			}
		}
	}
	if entered == 0 {
		t.Error("nobody enters the agent: this test has lost its eyes")
	}
}

// What is shipped holds nothing that only tests need.
func TestTheBinaryHoldsNoTests(t *testing.T) {
	t.Parallel()
	files := goFiles(t)
	imports := map[string][]string{}
	for path, file := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		for _, spec := range file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			imports[pkg] = append(imports[pkg], strings.TrimPrefix(imp, module))
		}
	}
	seen := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, imp := range imports[pkg] {
			if onlyForTests(imp) {
				t.Errorf("%s, which is shipped, imports %s", pkg, imp)
			}
			visit(imp)
		}
	}
	visit("cmd/tutti")
	if len(seen) < 50 {
		t.Errorf("%d packages are looked at: this test has lost its eyes", len(seen))
	}
}

// onlyForTests tells of an import, without the module's name, that nothing that is shipped may need.
func onlyForTests(imp string) bool {
	suite := strings.HasPrefix(imp, "internal/") && strings.HasSuffix(imp, "test")
	return suite || imp == "testing" || strings.HasPrefix(imp, "testing/") || strings.Contains(imp, "go-cmp")
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

func packageOf(path string) string { return filepath.ToSlash(filepath.Dir(path)) }

// wholeFiles are the files of goFiles that are no tests, with all that they declare; what only tests use is among them.
func wholeFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	fset := token.NewFileSet()
	for path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = file
	}
	return files
}

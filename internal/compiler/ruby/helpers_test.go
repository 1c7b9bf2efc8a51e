package ruby

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/cell"
)

const debianModules = "/usr/share/puppet/modules"

// needPuppet fails with the command that installs what is missing.
func needPuppet(tb testing.TB) {
	tb.Helper()
	list, err := os.ReadFile("testdata/modules.txt")
	if err != nil {
		tb.Fatal(err)
	}
	packages := strings.Join(strings.Fields(string(list)), " ")
	if _, err := exec.LookPath("puppet"); err != nil {
		tb.Fatalf("no puppet here: apt-get install puppet-agent %s", packages)
	}
	if _, err := os.Stat(debianModules + "/apache"); err != nil {
		tb.Fatalf("no Puppet modules here: apt-get install %s", packages)
	}
}

// directories is a checkout of plain directories.
type directories map[fleet.Digest]string

func (d directories) Path(_ context.Context, id fleet.Digest) (string, func(), error) {
	dir, ok := d[id]
	if !ok {
		return "", nil, fault.New(fault.NotFound, "no version %s", id.Short())
	}
	return dir, func() {}, nil
}

// version makes up a digest.
func version(name string) fleet.Digest { return fleet.DigestOf([]byte(name)) }

// tree writes files, path to text, into a new directory with Debian's modules as
// base modules.
func tree(tb testing.TB, files map[string]string) string {
	tb.Helper()
	root := tb.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	withBaseModules(tb, root)
	return root
}

// copyTree copies a fixture, so that base modules can be added.
func copyTree(tb testing.TB, from string) string {
	tb.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, from+"/")] = string(text)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return tree(tb, files)
}

func withBaseModules(tb testing.TB, root string) {
	tb.Helper()
	if err := os.Mkdir(filepath.Join(root, ".base_modules"), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.Symlink(debianModules, filepath.Join(root, ".base_modules", "0")); err != nil {
		tb.Fatal(err)
	}
}

// open is how this machine's cells are tried out, once for all tests.
var open = sync.OnceValues(func() (*cell.Keeper, error) {
	dir, err := os.MkdirTemp("", "cells-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return cell.Open(context.Background(), cell.Config{Mode: cell.BestEffort, Dir: dir})
})

// keeper makes the cells that tests compile in.
func keeper(tb testing.TB) *cell.Keeper {
	tb.Helper()
	k, err := open()
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// loose makes no cells: for tests of what holds without one, too.
var loose = new(cell.Keeper)

// lenient are Puppet 7's defaults, which an operator of Puppet 8 may choose.
var lenient = Settings{Strict: "warning", StrictVariables: new(false)}

// running starts a pool and stops it with the test.
func running(tb testing.TB, cfg Config, checkout directories) *Pool {
	tb.Helper()
	return runningWith(tb, cfg, checkout, compiletest.NewInventory())
}

// runningWith is running with an inventory that the code may ask.
func runningWith(tb testing.TB, cfg Config, checkout directories, known compile.Inventory) *Pool {
	tb.Helper()
	needPuppet(tb)
	if cfg.Dir == "" {
		cfg.Dir = tb.TempDir()
	}
	if cfg.Keeper == nil {
		cfg.Keeper = keeper(tb)
	}
	if cfg.Grants == nil { // what code reads outside is noted; that some of it is closed is another test's
		open := []string{"/etc"}
		if cfg.Ruby != "" { // a script beside what it runs
			open = append(open, filepath.Dir(cfg.Ruby))
		}
		cfg.Grants = func(fleet.Environment) Grants { return Grants{Read: open} }
	}
	level := slog.LevelInfo
	if os.Getenv("TUTTI_TEST_DEBUG") != "" {
		level = slog.LevelDebug
	}
	pool := New(cfg, checkout, known, slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: level})))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pool.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	return pool
}

// facts is the recorded set of facts with the node's names in it.
func facts(tb testing.TB, node string) json.RawMessage {
	tb.Helper()
	text, err := os.ReadFile("testdata/facts/debian12.json")
	if err != nil {
		tb.Fatal(err)
	}
	return bytes.ReplaceAll(text, []byte("node1.example.org"), []byte(node))
}

func order(tb testing.TB, env, ver, node string) compile.Order {
	tb.Helper()
	return compile.Order{
		Node: fleet.Certname(node), Environment: fleet.Environment(env), Version: version(ver),
		Facts: facts(tb, node),
		Trusted: json.RawMessage(`{"authenticated":"remote","certname":"` + node + `","extensions":{"pp_role":"test"},"hostname":"` +
			strings.Split(node, ".")[0] + `","domain":"example.org","external":{}}`),
		ServerFacts: json.RawMessage(`{"serverversion":"7.23.0","servername":"puppet.example.org","serverip":"192.0.2.1"}`),
	}
}

// catalog is what tests look at.
type catalog struct {
	Name, Version, Environment string
	CodeID                     string `json:"code_id"`
	UUID                       string `json:"catalog_uuid"`
	Format                     int    `json:"catalog_format"`
	Classes                    []string
	Edges                      []struct{ Source, Target string }
	Resources                  []resource
}

type resource struct {
	Type, Title, File   string
	Line                int
	Exported            bool
	Tags                []string
	Parameters          map[string]any
	SensitiveParameters []string `json:"sensitive_parameters"`
}

func (c catalog) find(ref string) *resource {
	for i, r := range c.Resources {
		if r.Type+"["+r.Title+"]" == ref {
			return &c.Resources[i]
		}
	}
	return nil
}

func parse(tb testing.TB, document json.RawMessage) catalog {
	tb.Helper()
	var c catalog
	if err := json.Unmarshal(document, &c); err != nil {
		tb.Fatalf("the catalog is no JSON: %v", err)
	}
	return c
}

func mustCompile(tb testing.TB, pool *Pool, o compile.Order) catalog {
	tb.Helper()
	outcome, err := pool.Compile(tb.Context(), o)
	if err != nil {
		tb.Fatalf("compile %s: %v", o.Node, err)
	}
	return parse(tb, outcome.Catalog)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

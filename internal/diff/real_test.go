package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// realNodes are catalogs of Debian's modules: virtual hosts, databases, templates,
// concatenated files, rich data with Sensitive values, relations, exported resources.
var realNodes = []string{"apache", "mysql", "concat", "rich", "defines", "virtual", "firewall"}

// realCatalogs compiles them once, with the real compiler, into the stored form.
var realCatalogs = sync.OnceValues(func() (map[string][]byte, error) {
	return compileReal("../compiler/ruby/testdata/equality", realNodes)
})

func realCatalog(tb testing.TB, node string) []byte {
	tb.Helper()
	all, err := realCatalogs()
	if err != nil {
		tb.Fatalf("%v; the real compiler and Debian's modules are needed: make test-deps", err)
	}
	return all[node]
}

func compileReal(fixture string, nodes []string) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "diff")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	code := filepath.Join(dir, "code")
	if err := os.CopyFS(code, os.DirFS(fixture)); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(code, ".base_modules"), 0o755); err != nil {
		return nil, err
	}
	if err := os.Symlink("/usr/share/puppet/modules", filepath.Join(code, ".base_modules", "0")); err != nil {
		return nil, err
	}
	facts, err := os.ReadFile("../compiler/ruby/testdata/facts/debian12.json")
	if err != nil {
		return nil, err
	}
	pool := ruby.New(ruby.Config{Dir: filepath.Join(dir, "ruby"), Workers: 1, NoJIT: true}, checkout(code), compiletest.NewInventory(),
		slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pool.Run(ctx) }()
	defer func() {
		cancel()
		<-ended //nolint:errcheck // what counts is what it compiled
	}()
	all := map[string][]byte{}
	for _, node := range nodes {
		name := node + ".example.org"
		outcome, err := pool.Compile(ctx, compile.Order{
			Node: fleet.Certname(name), Environment: "production", Version: fleet.DigestOf(nil),
			Facts: bytes.ReplaceAll(factsOf(node, facts), []byte("node1.example.org"), []byte(name)),
			Trusted: json.RawMessage(`{"authenticated":"remote","certname":"` + name + `","extensions":{},"hostname":"` + node +
				`","domain":"example.org","external":{}}`),
			ServerFacts: json.RawMessage(`{"serverversion":"7.23.0","servername":"puppet.example.org","serverip":"192.0.2.1"}`),
		})
		if err != nil {
			return nil, err
		}
		if all[node], _, err = catalog.Normalise(outcome.Catalog, outcome.Exported); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// factsOf gives the nodes that have the same code, pattern1 and so on, other facts.
func factsOf(node string, facts []byte) []byte {
	n, numbered := strings.CutPrefix(node, "pattern")
	if !numbered {
		return facts
	}
	for old, fresh := range map[string]string{"bookworm": "release" + n, "12.11": "12." + n, `"eth0"`: `"eth` + n + `"`} {
		facts = bytes.ReplaceAll(facts, []byte(old), []byte(fresh))
	}
	return facts
}

// checkout is a directory as the only version.
type checkout string

func (c checkout) Path(_ context.Context, id fleet.Digest) (string, func(), error) {
	if id != fleet.DigestOf(nil) {
		return "", nil, fault.New(fault.NotFound, "no version %s", id.Short())
	}
	return string(c), func() {}, nil
}

package ruby

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
)

// equalNodes are compiled by us and by the stock compiler. What each is made of
// stands in testdata/equality/manifests/site.pp.
var equalNodes = []string{
	"apache", "mysql", "ntp", "haproxy", "postgresql", "rabbitmq", "small-servers", "apt", "firewall", "inifile",
	"concat", "vcsrepo", "stdlib", "hiera", "templates", "virtual", "rich", "defines", "types", "pattern7", "classified",
}

// benchNodes are the catalogs that compilers are measured with.
var benchNodes = []string{"small-9", "medium-9", "large-9"}

func TestCatalogsEqualTheStockCompilers(t *testing.T) {
	t.Parallel()
	for fixture, nodes := range map[string][]string{"equality": equalNodes, "bench": benchNodes} {
		t.Run(fixture, func(t *testing.T) {
			t.Parallel()
			checkEqual(t, fixture, nodes)
		})
	}
}

func checkEqual(t *testing.T, fixture string, nodes []string) {
	t.Helper()
	pool := running(t, Config{Workers: 2}, directories{version(fixture): copyTree(t, "testdata/"+fixture)})
	orders := make([]compile.Order, len(nodes))
	for i, node := range nodes {
		orders[i] = order(t, "production", fixture, node+".example.org")
		if node == "classified" {
			orders[i].Classes = json.RawMessage(`{"sample":{"greeting":"hello","merged":{"k":["v",1]}},"sample::contained":{}}`)
			orders[i].Parameters = json.RawMessage(`{"role_param":"from the classifier","osfamily":"wins over the fact"}`)
		}
	}
	want := stockCatalogs(t, fixture, orders)
	modules := map[string]bool{}
	for i, o := range orders {
		for round := range 2 { // cold, and with what the first round left behind
			outcome, err := pool.Compile(t.Context(), o)
			if err != nil {
				t.Errorf("%s: %v", o.Node, err)
				break
			}
			equal := compareCatalogs(t, nodes[i], want[i], outcome.Catalog)
			if round == 0 && equal {
				c := parse(t, outcome.Catalog)
				t.Logf("equal: %-16s %5d resources, %5d edges", nodes[i], len(c.Resources), len(c.Edges))
				for _, r := range c.Resources {
					if name, ok := moduleOf(r.File); ok {
						modules[name] = true
					}
				}
			}
		}
	}
	if names := sortedKeys(modules); fixture == "equality" && len(names) < 12 {
		t.Errorf("resources come from %d modules, want at least 12: %v", len(names), names)
	} else {
		t.Logf("resources come from the modules %v", names)
	}
}

func moduleOf(file string) (string, bool) {
	_, rest, ok := strings.Cut(file, "/.base_modules/0/")
	name, _, _ := strings.Cut(rest, "/")
	return name, ok
}

func sortedKeys(set map[string]bool) []string {
	var keys []string
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// compareCatalogs compares everything but version, uuid and code_id: every
// resource with its parameters and tags, and every edge, in order.
func compareCatalogs(t *testing.T, node string, want, got json.RawMessage) bool {
	t.Helper()
	wanted, gotten := generic(t, want), generic(t, got)
	for _, key := range []string{"version", "catalog_uuid", "code_id"} {
		delete(wanted, key)
		delete(gotten, key)
	}
	if diff := cmp.Diff(wanted, gotten); diff != "" {
		t.Errorf("%s: stock (-) and ours (+) differ:\n%.3000s", node, diff)
		return false
	}
	// The order of parameters is lost in maps; the texts have it.
	if diff := cmp.Diff(parts(t, want), parts(t, got)); diff != "" {
		t.Errorf("%s: the order within resources differs, stock (-) and ours (+):\n%.3000s", node, diff)
		return false
	}
	return true
}

// parts is the text of each resource.
func parts(t *testing.T, document json.RawMessage) []string {
	t.Helper()
	var c struct{ Resources []json.RawMessage }
	if err := json.Unmarshal(document, &c); err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(c.Resources))
	for i, r := range c.Resources {
		texts[i] = string(r)
	}
	return texts
}

// stockCatalogs runs the stock compiler once for all orders.
func stockCatalogs(t *testing.T, fixture string, orders []compile.Order, env ...string) []json.RawMessage {
	t.Helper()
	source, err := filepath.Abs("testdata/" + fixture)
	if err != nil {
		t.Fatal(err)
	}
	return stockCatalogsOf(t, source, orders, env...)
}

// stockCatalogsOf is stockCatalogs for the environment in a directory. With FRESH=1 in its
// environment each order is compiled by a process that compiled nothing before.
func stockCatalogsOf(t *testing.T, source string, orders []compile.Order, env ...string) []json.RawMessage {
	t.Helper()
	environments, scratch := t.TempDir(), t.TempDir()
	if err := os.Symlink(source, filepath.Join(environments, "production")); err != nil {
		t.Fatal(err)
	}
	wire := make([]*wireOrder, len(orders))
	for i, o := range orders {
		wire[i] = toWire(o)
	}
	input, err := json.Marshal(wire)
	if err != nil {
		t.Fatal(err)
	}
	script, _ := filepath.Abs("testdata/reference.rb")
	cmd := exec.CommandContext(t.Context(), "ruby", script, environments, "production", scratch)
	cmd.Stdin, cmd.Env = bytes.NewReader(input), append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("the stock compiler: %v\n%s", err, stderr.String())
	}
	text := strings.NewReplacer(
		environments+"/production", "/etc/puppetlabs/code/environments/production",
		debianModules, "/etc/puppetlabs/code/environments/production/.base_modules/0",
	).Replace(string(output))
	var catalogs []json.RawMessage
	if err := json.Unmarshal([]byte(text), &catalogs); err != nil {
		t.Fatal(err)
	}
	return catalogs
}

func generic(t *testing.T, document json.RawMessage) map[string]any {
	t.Helper()
	var m map[string]any
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

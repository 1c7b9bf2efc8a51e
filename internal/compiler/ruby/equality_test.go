package ruby

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	// One after the other: parallel parts of a test begin when all other tests have, and then nothing is left that would run beside them.
	t.Run("equality", func(t *testing.T) { checkEqual(t, "equality", equalNodes) })
	t.Run("bench", func(t *testing.T) { checkEqual(t, "bench", benchNodes) })
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
	want, eight := stockCatalogs(t, fixture, orders), puppetEight(t)
	modules, refused := map[string]bool{}, []string{}
	for i, o := range orders {
		for round := range 2 { // cold, and with what the first round left behind
			outcome, err := pool.Compile(t.Context(), o)
			if message := stockError(t, want[i]); message != "" && eight {
				failed, ok := errors.AsType[*compile.Error](err)
				if !ok || failed.Message != message {
					t.Errorf("%s: the stock compiler refuses it: %s\nours: %v", o.Node, message, err)
				}
				if round == 0 {
					refused = append(refused, nodes[i])
				}
				continue
			}
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
	if len(refused) > 0 {
		t.Logf("refused in the same words: %v", refused)
	}
	enough := 12
	if eight {
		enough = 8
	}
	if 2*len(refused) > len(nodes) {
		t.Errorf("%d of %d are refused: that compares too few catalogs", len(refused), len(nodes))
	}
	if names := sortedKeys(modules); fixture == "equality" && len(names) < enough {
		t.Errorf("resources come from %d modules, want at least %d: %v", len(names), enough, names)
	} else {
		t.Logf("resources come from the modules %v", names)
	}
}

// puppetEight says whether the Puppet here is 8 or later. It refuses some of the code of the fixtures, which is written for 7: strict is an
// error there, and Debian's modules are newer.
func puppetEight(t *testing.T) bool {
	t.Helper()
	major, _, _ := strings.Cut(puppetVersion(t), ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		t.Fatalf("puppet --version begins with %q", major)
	}
	return n >= 8
}

func puppetVersion(t *testing.T) string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "puppet", "--version").Output()
	if err != nil {
		t.Fatalf("no Puppet here: make test-deps: %v", err)
	}
	return strings.TrimSpace(string(version))
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

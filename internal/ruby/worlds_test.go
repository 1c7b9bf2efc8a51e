package ruby

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
)

// mainManifests are environments by the way in which their main manifest is made, each with
// nodes a and b. Most were once served as an empty or a half catalog.
var mainManifests = map[string]map[string]string{
	"function":           {"manifests/site.pp": "function sitefn($x) { \"fn ${x}\" }\nnotify { 'always': message => sitefn('a') }\n"},
	"type alias":         {"manifests/site.pp": "type Sitealias = Integer\nSitealias $n = 3\nnotify { \"n is ${n}\": }\n"},
	"function elsewhere": {"manifests/a.pp": "notify { 'a': message => later(1) }\n", "manifests/z.pp": "function later($n) { $n + 1 }\n"},
	"many things": {
		"manifests/1_types.pp": "type Port = Integer[1, 65535]\nfunction port_of(Port $p) >> String { \"port ${p}\" }\n",
		"manifests/2_site.pp":  "class local(Port $port = 80) { notify { port_of($port): } }\ndefine thing() { notify { \"thing ${title}\": } }\n",
		"manifests/3_nodes.pp": "node 'a.example.org' { include local thing { 'x': } }\nnode default { class { 'local': port => 8080 } }\n",
	},
	"class and define of one name": {"manifests/site.pp": "class twice { }\ndefine twice() { }\nnotify { 'served': }\n"},
	"node twice":                   {"manifests/site.pp": "node 'a.example.org' { notify { '1': } }\nnode 'a.example.org' { notify { '2': } }\n"},
	"node and class of one name":   {"manifests/site.pp": "node 'twice' { }\nclass twice { }\nnode default { notify { 'served': } }\n"},
	"function twice":               {"manifests/site.pp": "function twice() { 1 }\nfunction twice() { 2 }\nnotify { 'served': }\n"},
	"alias of nothing":             {"manifests/site.pp": "type Odd = Nothing[Here]\nOdd $x = 1\nnotify { 'served': }\n"},
	"syntax error in one file":     {"manifests/a.pp": "class fine { notify { 'fine': } }\ninclude fine\n", "manifests/b.pp": "class broken {\n"},
	"class in the wrong file of a module": {
		"manifests/site.pp": "include m\n", "modules/m/manifests/init.pp": "class m { include m::a include m::b }\n",
		"modules/m/manifests/a.pp": "class m::a { }\nclass m::b { }\n", "modules/m/manifests/b.pp": "class m::b { }\n",
	},
	"function of a name that Puppet has": {"manifests/site.pp": "function notice($x) { 'mine' }\n$got = notice('x')\nnotify { 'x': message => String($got) }\n"},
	"no manifest":                        {"manifests/.keep": ""},
}

// Each catalog is plain Puppet's, or fails in the words of a Puppet that compiled nothing
// before: the first time, in the same process again, and for another node.
func TestMainManifestsEqualPlainPuppets(t *testing.T) {
	t.Parallel()
	worldsEqual(t, mainManifests, "a.example.org", "b.example.org")
}

// worldsEqual compares what each environment gives to each node.
func worldsEqual(t *testing.T, worlds map[string]map[string]string, nodes ...string) {
	t.Helper()
	roots := directories{}
	for name, files := range worlds {
		roots[version(name)] = tree(t, withConf(files))
	}
	pool := running(t, Config{Workers: 2}, roots)
	for name := range worlds {
		t.Run(name, func(t *testing.T) {
			orders := make([]compile.Order, len(nodes))
			for i, node := range nodes {
				orders[i] = order(t, "production", name, node)
			}
			want := stockCatalogsOf(t, roots[version(name)], orders, "FRESH=1")
			for round := range 2 {
				for i, o := range orders {
					sameAsPlain(t, pool, o, want[i], round)
				}
			}
		})
	}
}

func sameAsPlain(t *testing.T, pool *Pool, o compile.Order, want json.RawMessage, round int) {
	t.Helper()
	var failed struct{ Error string }
	if err := json.Unmarshal(want, &failed); err != nil {
		t.Fatal(err)
	}
	if failed.Error != "" {
		if diff := cmp.Diff(failed.Error, fails(t, pool, o).Message); diff != "" {
			t.Errorf("%s, round %d, plain Puppet's message (-) and ours (+):\n%s", o.Node, round, diff)
		}
		return
	}
	outcome, err := pool.Compile(t.Context(), o)
	if err != nil {
		t.Errorf("%s, round %d: plain Puppet compiles it, here it fails: %v", o.Node, round, err)
		return
	}
	compareCatalogs(t, string(o.Node), want, outcome.Catalog)
}

// withConf is files with an environment.conf that names no directories of the machine.
func withConf(files map[string]string) map[string]string {
	whole := map[string]string{"environment.conf": "modulepath = modules\n"}
	for path, text := range files {
		whole[path] = text
	}
	for path := range whole {
		if strings.HasSuffix(path, ".keep") {
			whole[path] = "# kept\n"
		}
	}
	return whole
}

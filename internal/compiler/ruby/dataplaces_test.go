package ruby

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
)

// A mistake in Hiera's data or configuration is shown where it is: in the file, not where a manifest asked for the data. What Puppet says of
// it stays as it is.
func TestMistakesInDataSayWhere(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"manifests/site.pp": "if $facts['fails'] {\n  fail('no')\n}\nif $facts['asks'] {\n  notify { lookup('a', String): }\n}\nif $facts['module'] {\n  include \"${facts['module']}\"\n}\n",
		"hiera.yaml": "---\nversion: 5\nhierarchy:\n  - name: each node\n    path: \"nodes/%{trusted.certname}.yaml\"\n  - name: text\n    path: \"json/%{trusted.certname}.json\"\n" +
			"    data_hash: json_data\n  - name: common\n    path: common.yaml\n",
		"data/common.yaml":                  "---\ncfg::port: 80\n\"typed::port\": eighty\na: 5\n",
		"modules/cfg/manifests/init.pp":     "class cfg(Integer $port, String $name_of = 'x') { notify { \"${port}${name_of}\": } }\n",
		"modules/typed/manifests/init.pp":   "class typed(Integer $port) { }\n",
		"modules/missing/manifests/init.pp": "class missing(Integer $port) { }\n",
	}
	for module, hiera := range map[string]string{ // each has a hierarchy of its own
		"word":   "---\nversion: 5\nhierarchy:\n  - name: common\n    pth: common.yaml\n",
		"broken": "---\nversion: 5\nhierarchy: [\n",
		"two":    "---\nversion: 5\nhierarchy:\n  - {name: c, path: a.yaml, paths: [b.yaml]}\n",
		"data":   "---\nversion: 5\nhierarchy:\n  - {name: c, path: common.yaml}\n",
	} {
		files["modules/"+module+"/hiera.yaml"] = hiera
		files["modules/"+module+"/manifests/init.pp"] = "class " + module + "(Integer $port) { }\n"
	}
	files["modules/data/data/common.yaml"] = "---\nother::port: 80\n data: x\n"
	cases := map[string]struct {
		node, classes, words, file string // node: its data
		module                     string // that it includes; empty: cfg
		facts                      string
		line                       int
	}{
		"yaml that does not parse": {node: "---\ncfg::port: 80\ncfg::name_of: \"open\n", words: "Unable to parse", file: "node", line: 3},
		"yaml with a tab":          {node: "---\ncfg:\n\tport: 80\n", words: "Unable to parse", file: "node", line: 3},
		"json that does not parse": {node: "{\n\"cfg::port\": 80,\n}\n", words: "Unable to parse", file: "node"},
		"a type": {
			node: "---\n# ports\ncfg::port: eighty\n", words: "parameter 'port' expects an Integer value, got String", file: "node", line: 3,
		},
		"a type for all nodes": {module: "typed", words: "parameter 'port' expects an Integer", file: "data/common.yaml", line: 3},
		"a type of a group's": {
			node: "---\ncfg::port: 'x'\n", classes: `{"cfg":{}}`, facts: `{"module":false}`, words: "expects an Integer", file: "node", line: 2,
		},
		"an unknown method":        {node: "---\ncfg::name_of: \"%{nosuch('x')}\"\n", words: "Unknown interpolation method 'nosuch'", file: "node", line: 2},
		"lookups that go round":    {node: "---\n'cfg::name_of': \"%{lookup('cfg::name_of')}\"\n", words: "Recursive lookup", file: "node", line: 2},
		"options":                  {node: "---\nlookup_options: 5\n", words: "lookup_options must be a hash", file: "node", line: 2},
		"a hierarchy's word":       {module: "word", words: "unrecognized key 'pth'", file: "modules/word/hiera.yaml"},
		"a hierarchy":              {module: "broken", words: "while parsing a flow node", file: "modules/broken/hiera.yaml", line: 4},
		"a hierarchy's two places": {module: "two", words: "Only one of path, paths", file: "modules/two/hiera.yaml"},
		"a module's data":          {module: "data", words: "mapping values are not allowed", file: "modules/data/data/common.yaml", line: 3},
		"a manifest that asks":     {facts: `{"asks":true}`, words: "expects a String value, got Integer", file: "manifests/site.pp", line: 5},
		"a manifest":               {facts: `{"fails":true}`, words: "no", file: "manifests/site.pp", line: 2},
		"a value that is missing":  {module: "missing", words: "expects a value for parameter 'port'", file: "manifests/site.pp", line: 8},
	}
	for name, c := range cases {
		at := "data/nodes/" + host(name) + ".yaml"
		if strings.HasPrefix(c.node, "{") {
			at = "data/json/" + host(name) + ".json"
		}
		if c.node != "" {
			files[at] = c.node
		}
		if c.file == "node" {
			c.file = at
			cases[name] = c
		}
	}
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("data"): tree(t, files)})
	for name, want := range cases {
		o := order(t, "production", "data", host(name))
		o.Facts = json.RawMessage(cmp.Or(want.facts, `{"module":"`+cmp.Or(want.module, "cfg")+`"}`))
		if want.classes != "" {
			o.Classes = json.RawMessage(want.classes)
		}
		got := fails(t, pool, o)
		if got.Cause != compile.CauseCode || !strings.Contains(got.Message, want.words) || got.File != want.file || got.Line != want.line {
			t.Errorf("%s: %q at %s:%d, want %q at %s:%d", name, got.Message, got.File, got.Line, want.words, want.file, want.line)
		}
	}
}

// host is a node's name that is made of a case's.
func host(name string) string {
	return strings.NewReplacer(" ", "-", "'", "").Replace(name) + ".example.org"
}

package ruby

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
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
	maps.Copy(whole, files)
	for path := range whole {
		if strings.HasSuffix(path, ".keep") {
			whole[path] = "# kept\n"
		}
	}
	return whole
}

// valuesCode shows what code can see of values: whether they are frozen, in which order they
// stand, which of them a template finds.
var valuesCode = map[string]string{
	"manifests/site.pp": `
$role = 'web'
$other = { 'z' => 1, 'a' => { 'k' => [1, 'x'] } }
$in_puppet = $facts['deep'].map |$k, $v| { "${k}=${v}" }
notify { 'within what is taken whole': message => inline_template('<%= @taken.values.map { |v| [v.frozen?, v["m"].frozen?] }.inspect %>') }
notify { 'order in Puppet': message => $in_puppet.join(' ') }
notify { 'order of all facts': message => $facts.keys.join(' ') }
notify { 'order of trusted': message => "${trusted.keys.join(' ')} ${trusted['extensions'].keys.join(' ')}" }
notify { 'in ERB': message => template('v/values.erb') }
notify { 'scanned': message => template('v/scan.erb') }
notify { 'helper': message => template('v/helper.erb') }
notify { 'block': message => template('v/block.erb') }
notify { 'inline': message => inline_template("<% s = '%%>' + @role.to_s %><%= s %>") }
notify { 'trusted information': message => v::trusted() }
notify { 'settings': message => "${settings::strict} ${settings::strict_variables} ${settings::certname} ${settings::modulepath}" }
notify { 'in Ruby': message => v::frozen($facts, $trusted, $other) }
notify { 'all variables': message => v::all() }
`,
	"modules/v/templates/values.erb": `<%- @deep.each do |k, v| -%><%= k %>=<%= v.inspect %>
<%- end -%>
frozen: <%= [@deep, @deep['m'], @deep['m']['y'], @deep['l'], @deep['s'], @facts, @facts['deep'], @facts['deep']['m'],
  @trusted, @trusted['extensions'], @other, @other['a'],
  scope['deep'], scope['deep']['m'], scope['facts'], scope.lookupvar('deep'), @role].map(&:frozen?).inspect %>
change: <%= begin; @deep['new'] = 1; 'could'; rescue => e; e.class; end %>
change within: <%= begin; @deep['m']['new'] = 1; 'could'; rescue => e; e.class; end %>
json: <%= require 'json'; @deep.to_json %>
`,
	"modules/v/templates/scan.erb":   "<% s = '%%>' + @role.to_s %><%= s %> <%% @role %> @role <%# @role %>\n% @role\n",
	"modules/v/templates/helper.erb": "<% require File.expand_path('../lib/v_helper', File.dirname(file)) %><%= VHelper.role(self) %> <%= VHelper.deep(self) %>",
	"modules/v/templates/block.erb":  "<% require File.expand_path('../lib/v_helper', File.dirname(file)) %><%= VHelper.of_block { } %>",
	"modules/v/lib/v_helper.rb": `module VHelper
  def self.role(template) = template.instance_variable_get(:@role)
  def self.deep(template) = template.instance_eval { @deep.keys.join(',') }
  def self.of_block(&block) = block.binding.receiver.instance_variable_get(:@role)
end
`,
	"modules/v/lib/puppet/functions/v/trusted.rb": `Puppet::Functions.create_function(:'v::trusted') do
  dispatch(:act) {}
  def act
    known = Puppet.lookup(:trusted_information)
    [known.certname, known.authenticated, known.extensions, known.hostname, known.domain, known.external, known.to_h].inspect
  end
end
`,
	"modules/v/lib/puppet/functions/v/all.rb": `Puppet::Functions.create_function(:'v::all') do
  dispatch(:act) {}
  def act
    apart = closure_scope.to_hash['apart']
    [apart, apart['m'], apart['m']['l'], apart['m']['l'][0]].map(&:frozen?).inspect
  end
end
`,
	"modules/v/lib/puppet/functions/v/frozen.rb": `Puppet::Functions.create_function(:'v::frozen') do
  dispatch(:act) { param 'Hash', :facts; param 'Hash', :trusted; param 'Hash', :other }
  def act(facts, trusted, other)
    deep = facts['deep']
    [facts, deep, deep['m'], deep['l'], deep['s'], trusted, trusted['extensions'], other, other['a']].map(&:frozen?).inspect
  end
end
`,
}

// What code sees of values is what it sees in plain Puppet.
func TestValuesAreAsInPlainPuppet(t *testing.T) {
	t.Parallel()
	roots := directories{version("values"): tree(t, withConf(valuesCode))}
	pool := running(t, Config{Workers: 1, Settings: Settings{Certname: "puppet.example.org"}}, roots)
	o := order(t, "production", "values", "a.example.org")
	o.Facts = json.RawMessage(`{"zone":"z","deep":{"z":{"q":1,"b":2},"m":{"y":{"1":1},"x":2},"l":[{"v":1,"c":2}],"s":"text","a":null},` +
		`"taken":{"k":{"m":{"x":1}}},"apart":{"m":{"l":[{"x":1}]}},"clientcert":"a.example.org","kernel":"Linux"}`)
	o.Trusted = json.RawMessage(`{"authenticated":"remote","certname":"a.example.org","extensions":{"pp_role":"r","pp_env":"e","a":"x"},` +
		`"hostname":"a","domain":"example.org","external":{"z":1,"b":2}}`)
	want := stockCatalogsOf(t, roots[version("values")], []compile.Order{o}, "FRESH=1", "PUPPET_ARGS=--certname puppet.example.org")
	for round := range 2 {
		sameAsPlain(t, pool, o, want[0], round)
	}
}

// Settings that an operator chooses hold as in Puppet, and name another compiler.
func TestChosenSettingsHoldAsInPuppet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hiera := filepath.Join(dir, "hiera.yaml")
	for path, text := range map[string]string{
		"hiera.yaml": "version: 5\nhierarchy:\n  - name: all\n    path: all.yaml\n    datadir: " + dir + "\n",
		"all.yaml":   "asked: from the global layer\nmerged: [global]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := tree(t, withConf(map[string]string{
		"hiera.yaml":       "version: 5\nhierarchy:\n  - name: common\n    path: common.yaml\n",
		"data/common.yaml": "merged: [environment]\n",
		"manifests/site.pp": `
notify { "${settings::strict} ${settings::strict_variables} ${settings::certname}": }
notify { lookup('asked'): }
notify { lookup('merged', Array, 'unique').join(' '): }
node 'b.example.org' { notify { "unknown: ${nowhere}": } }
node 'c.example.org' { include twice }
node default { }
`,
		"modules/twice/manifests/init.pp": "class twice { notify { { 'a' => 'one', 'a' => 'two' }['a']: } }\n",
	}))
	var orders []compile.Order
	for _, node := range []string{"a.example.org", "b.example.org", "c.example.org"} {
		orders = append(orders, order(t, "production", "chosen", node))
	}
	grants := func(fleet.Environment) Grants { return Grants{Read: []string{"/etc", dir}} }
	for _, c := range []struct {
		strict    string
		variables *bool
		args      string
	}{
		{"", nil, ""},
		{"error", new(true), "--strict error --strict_variables"},
		{"warning", new(false), "--strict warning --no-strict_variables"},
	} {
		chosen := Settings{Certname: "p.example.org", Strict: c.strict, StrictVariables: c.variables, HieraConfig: hiera}
		pool := running(t, Config{Workers: 1, Settings: chosen, Grants: grants}, directories{version("chosen"): root})
		want := stockCatalogsOf(t, root, orders, "FRESH=1", "PUPPET_ARGS=--certname p.example.org --hiera_config "+hiera+" "+c.args)
		for i, o := range orders {
			sameAsPlain(t, pool, o, want[i], 0)
		}
	}
	seen := map[string]Settings{}
	for _, s := range []Settings{
		{}, {Strict: "error"}, {Strict: "off"}, {StrictVariables: new(true)}, {StrictVariables: new(false)}, {Certname: "x"}, {HieraConfig: hiera},
	} {
		found, err := identify(t.Context(), Config{Settings: s, NoJIT: true})
		if err != nil {
			t.Fatal(err)
		}
		if other, known := seen[found.name]; known {
			t.Errorf("%+v and %+v name the same compiler %q", s, other, found.name)
		}
		seen[found.name] = s
	}
	if _, err := identify(t.Context(), Config{Settings: Settings{HieraConfig: filepath.Join(dir, "none.yaml")}, NoJIT: true}); err == nil {
		t.Error("a global hiera.yaml that is not there is no mistake")
	}
}

package ruby

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
)

// staleRow is a piece of Ruby that a node's catalog is made of.
type staleRow struct {
	name, ruby string
	want       string // a note, or how it begins
	needs      string // Ruby that fails where there is no such thing
}

// inThisRuby are the rows of what this Ruby has.
func inThisRuby(t *testing.T, rows []staleRow) (there []staleRow) {
	t.Helper()
	for _, row := range rows {
		if row.needs != "" && exec.CommandContext(t.Context(), "ruby", "-e", row.needs).Run() != nil {
			t.Logf("%s: this Ruby has none", row.name)
			continue
		}
		there = append(there, row)
	}
	return there
}

// staleNodes makes a node, a function of the module rows and a template of each row. The message of
// the one resource is "ran", or what the row's Ruby failed with.
func staleNodes(files map[string]string, rows []staleRow, before string) {
	files["environment.conf"] = "modulepath = modules\n"
	var site strings.Builder
	for i, row := range rows {
		function := fmt.Sprintf("r%d", i)
		fmt.Fprintf(&site, "node 'r%d.example.org' { notify { 'x': message => String(rows::r%d()) } }\n", i, i)
		fmt.Fprintf(&site, "node 'e%d.example.org' { notify { 'x': message => template('rows/%s.erb') } }\n", i, function)
		files["modules/rows/lib/puppet/functions/rows/"+function+".rb"] = "Puppet::Functions.create_function(:'rows::" + function +
			"') do\n  dispatch(:act) {}\n  def act\n    scope = closure_scope\n    " + before + "\n    " + row.ruby + "\n    'ran'\n" +
			"  rescue ScriptError, StandardError => e\n    raise if e.is_a?(NameError) && !e.is_a?(NoMethodError)\n    e.class.name\n" +
			"  end\nend\n"
		files["modules/rows/templates/"+function+".erb"] = "<% x = begin\n  " + before + "\n  " + row.ruby + "\n  'ran'\n" +
			"  rescue ScriptError, StandardError => e\n  e.class.name\n  end\n-%>\n<%= x -%>"
	}
	files["manifests/site.pp"] += site.String() + "node default { }\n"
}

// staleReads compiles one node and returns what it read.
func staleReads(t *testing.T, pool *Pool, node string) []string {
	t.Helper()
	notes, _ := staleRun(t, pool, node)
	return notes
}

// staleRun also says how the row's Ruby ended.
func staleRun(t *testing.T, pool *Pool, node string) (notes []string, ended string) {
	t.Helper()
	o := order(t, "production", "stale", node+".example.org")
	o.Facts = bytes.Replace(o.Facts, []byte("{"), []byte(`{"deep": {"list": [1], "sub": {"a": 1}, "x": "y"},`), 1)
	outcome, err := pool.Compile(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %v", node, err)
	}
	if made := parse(t, outcome.Catalog).find("Notify[x]"); made != nil {
		ended, _ = made.Parameters["message"].(string)
	}
	return notesOf(outcome.Reads), ended
}

func hasNote(notes []string, want string) bool {
	return slices.ContainsFunc(notes, func(note string) bool {
		return note == want || strings.HasPrefix(want, "volatile ") && strings.HasPrefix(note, want)
	})
}

// stalePool compiles files, and may read granted ones.
func stalePool(t *testing.T, files map[string]string, granted ...string) *Pool {
	t.Helper()
	read := func(fleet.Environment) Grants { return Grants{Read: append([]string{"/etc"}, granted...)} }
	return running(t, Config{Workers: 1, NoJIT: true, Grants: read}, directories{version("stale"): tree(t, files)})
}

const wholeHash = "all of it"

// takingHashes is Ruby that is handed h, a hash of facts of which a member was asked
// before: what Ruby's functions written in C take whole, and what takes none of it.
var takingHashes = []staleRow{
	{name: "a member", ruby: "h['x']"},
	{name: "dig", ruby: "h.dig('sub', 'a')"},
	{name: "fetch", ruby: "h.fetch('x'); h.fetch('no', 1)"},
	{name: "key?", ruby: "h.key?('y')"},
	{name: "other hashes", ruby: "{ 'a' => 1 }.merge({ 'b' => 2 }).merge!({ 'c' => 3 }); Hash[{ 'a' => 1 }]; { 'a' => 1 } == { 'a' => 2 }"},
	{name: "other text", ruby: "'axa'.gsub(/a/, 'b').sub('x', 'y').gsub(/b/, { 'b' => 'c' }).gsub('x') { |c| c }"},
	{name: "other dumps", ruby: "Marshal.load(Marshal.dump({ 'a' => [1] })); JSON.generate({ 'a' => 1 }); YAML.dump([1])"},
	{name: "held", ruby: "held = [h, { 'h' => h }]; held.size"},
	{name: "equal?", ruby: "h.equal?({})"},
	{name: "other MessagePack", ruby: "require 'msgpack'\n MessagePack.pack('a' => [1]); { 'a' => h['x'] }.to_msgpack"},
	{
		name: "dates with a year",
		ruby: "Date.parse('2020-05-01'); Date.parse('May 2020'); Date.strptime('2020 12', '%Y %j'); DateTime.parse('2020-01-01T10:00Z'); " +
			"Date.strptime('1', '%s'); Date.iso8601('2020-w03-2')",
	},
	{name: "times of a zone", ruby: "Time.at(0).zone; Time.new(2020, 1, 1).utc_offset; Time.at(0).localtime.hour"},
	{name: "a seed", ruby: "srand(5)\n x = rand(5)\n srand(6)\n x"},
	{name: "chance with a seed", ruby: "Random.new(5).rand(9); [1, 2].shuffle(random: Random.new(1))"},

	{name: "Hash#merge", ruby: "{}.merge(h)", want: wholeHash},
	{name: "Hash#merge of several", ruby: "{}.merge({}, h)", want: wholeHash},
	{name: "Hash#merge with a block", ruby: "{ 'x' => 1 }.merge(h) { |_, a, _| a }", want: wholeHash},
	{name: "Hash#merge of a hash within", ruby: "{}.merge(h['sub'])", want: "value /facts/deep/sub"},
	{name: "Hash#merge!", ruby: "{}.merge!(h)", want: wholeHash},
	{name: "Hash#update", ruby: "{}.update(h)", want: wholeHash},
	{name: "Hash#replace", ruby: "{}.replace(h)", want: wholeHash},
	{name: "Hash#initialize_copy", ruby: "{}.send(:initialize_copy, h)", want: wholeHash},
	{name: "Hash.new.merge of a subclass", ruby: "Class.new(Hash).new.merge(h)", want: wholeHash},
	{name: "Hash.[]", ruby: "Hash[h]", want: wholeHash},
	{name: "Hash.[] of a subclass", ruby: "Class.new(Hash)[h]", want: wholeHash},
	{name: "Hash.ruby2_keywords_hash", ruby: "Hash.ruby2_keywords_hash(h)", want: wholeHash},
	{name: "Hash#==", ruby: "{ 'a' => 1 } == h", want: wholeHash},
	{name: "Hash#== as a receiver", ruby: "h == { 'a' => 1 }", want: wholeHash},
	{name: "Hash#== within", ruby: "[{ 'a' => 1 }] == [h]", want: wholeHash},
	{name: "Hash#eql?", ruby: "{ 'a' => 1 }.eql?(h)", want: wholeHash},
	{name: "Array#include?", ruby: "[{ 'a' => 1 }].include?(h)", want: wholeHash},
	{name: "Array#index", ruby: "[{ 'a' => 1 }].index(h)", want: wholeHash},
	{name: "Hash#value?", ruby: "{ 'v' => { 'a' => 1 } }.value?(h)", want: wholeHash},
	{name: "Hash#key", ruby: "{ 'v' => { 'a' => 1 } }.key(h)", want: wholeHash},
	{name: "Array#-", ruby: "[h] - [{ 'a' => 1 }]", want: wholeHash},
	{name: "Array#uniq", ruby: "[h, {}].uniq", want: wholeHash},
	{name: "case", ruby: "case h\n when({ 'a' => 1 }) then 1 end", want: wholeHash},
	{name: "Hash#<=", ruby: "{} <= h", want: wholeHash},
	{name: "Hash#<", ruby: "{} < h", want: wholeHash},
	{name: "Hash#>=", ruby: "{ 'a' => 1 } >= h", want: wholeHash},
	{name: "Hash#>", ruby: "{ 'a' => 1 } > h", want: wholeHash},
	{name: "Hash#transform_keys", ruby: "{ 'list' => 1 }.transform_keys(h)", want: wholeHash},
	{name: "Hash#transform_keys!", ruby: "{ 'list' => 1 }.transform_keys!(h)", want: wholeHash},
	{name: "a key of a hash", ruby: "{}.store(h, 1)", want: wholeHash},
	{name: "**", ruby: "x = { 'a' => 1, **h }", want: wholeHash},
	{name: "** alone", ruby: "x = { **h }", want: wholeHash},
	{name: "a key of a literal", ruby: "x = { h => 1 }", want: wholeHash},
	{name: "a key of a long literal", ruby: "x = { h => 1, 1 => 1, 2 => 1, 3 => 1, 4 => 1, 5 => 1, 6 => 1, 7 => 1, 8 => 1, 9 => 1 }", want: wholeHash},
	{name: "MessagePack.pack", ruby: "require 'msgpack'\n MessagePack.pack(h)", want: wholeHash},
	{name: "MessagePack.pack within", ruby: "require 'msgpack'\n MessagePack.pack('a' => [h])", want: wholeHash},
	{name: "to_msgpack", ruby: "require 'msgpack'\n h.to_msgpack", want: wholeHash},
	{name: "to_msgpack within", ruby: "require 'msgpack'\n [h].to_msgpack", want: wholeHash},
	{name: "MessagePack's packer", ruby: "require 'msgpack'\n MessagePack::Packer.new.write([h]).to_s", want: wholeHash},
	{name: "MessagePack's factory", ruby: "require 'msgpack'\n MessagePack::Factory.new.dump([h])", want: wholeHash},
	{name: "** in a call", ruby: "f = ->(**o) { o }\n f.call(**h)", want: wholeHash},
	{name: "String#gsub", ruby: "'list x'.gsub(/\\w+/, h)", want: wholeHash},
	{name: "String#sub", ruby: "'list x'.sub(/\\w+/, h)", want: wholeHash},
	{name: "String#gsub by its name", ruby: "'list x'.public_send(:gsub, /\\w+/, h)", want: wholeHash},
	{name: "String#encode", ruby: "\"\\u00e4\".encode('US-ASCII', fallback: h)", want: wholeHash},
	{name: "Struct.new", ruby: "Struct.new(:list, :sub, :x, keyword_init: true).new(h)", want: wholeHash},
	{name: "Marshal.dump", ruby: "Marshal.dump(h)", want: wholeHash},
	{name: "Marshal.dump within", ruby: "Marshal.dump([{ 'a' => [h] }])", want: wholeHash},
	{name: "Marshal.dump of an object", ruby: "o = Object.new\n o.instance_variable_set(:@h, h)\n Marshal.dump(o)", want: wholeHash},
	{name: "JSON.generate", ruby: "JSON.generate(h)", want: wholeHash},
	{name: "JSON.generate within", ruby: "JSON.generate([{ 'a' => h }])", want: wholeHash},
	{name: "JSON.pretty_generate", ruby: "JSON.pretty_generate('a' => h)", want: wholeHash},
	{name: "to_json", ruby: "h.to_json", want: wholeHash},
	{name: "JSON's own generator", ruby: "JSON::State.new.generate({ 'a' => h })", want: wholeHash},
	{name: "YAML.dump", ruby: "YAML.dump(h)", want: wholeHash},
	{name: "YAML.dump within", ruby: "YAML.dump([h])", want: wholeHash},
	{name: "to_yaml", ruby: "{ 'a' => h }.to_yaml", want: wholeHash},
	{name: "Puppet's JSON", ruby: "Puppet::Util::Json.dump(h)", want: wholeHash},
	{name: "Kernel#Array", ruby: "Array(h)", want: wholeHash},
	{name: "splat", ruby: "[*h]", want: wholeHash},
	{name: "&hash", ruby: "%w[x].map(&h)", want: wholeHash},
	{name: "pattern matching", ruby: "eval(\"case h\\n in {nothing:} then 1\\n else 2\\n end\")", want: wholeHash},
	{name: "format %p", ruby: "format('%p', h)", want: wholeHash},
	{name: "format %s", ruby: "format('%s', h)", want: wholeHash},
	{name: "String#%", ruby: "'%s' % [h]", want: wholeHash},
	{name: "interpolation", ruby: "\"#{h}\"", want: wholeHash},
	{name: "Array#join", ruby: "[h].join", want: wholeHash},
	{name: "inspect within", ruby: "[h].inspect", want: wholeHash},
	{name: "puts", ruby: "StringIO.new.puts(h)", want: wholeHash},
	{name: "hash", ruby: "[h].hash", want: wholeHash},
	{name: "Set", ruby: "Set.new(h)", want: wholeHash},
	{name: "Array#zip", ruby: "[1].zip(h)", want: wholeHash},
	{name: "dup", ruby: "h.dup", want: wholeHash},
	{name: "clone", ruby: "h.clone", want: wholeHash},
	{name: "a bound method", ruby: "h.method(:to_a).call", want: wholeHash},
	{name: "a method of all hashes", ruby: "Hash.instance_method(:to_a).bind(h).call", want: wholeHash},
	{name: "a method of all hashes at once", ruby: "Hash.instance_method(:to_a).bind_call(h)", want: wholeHash},
	{name: "the method that ours calls", ruby: "h.method(:to_a).super_method.call", want: "volatile looks into Ruby's memory"},
	{name: "objects", ruby: "ObjectSpace.each_object(Hash).first", want: "volatile looks into Ruby's memory"},
	{name: "delegation", ruby: "require 'delegate'\n SimpleDelegator.new(h).to_a", want: wholeHash},
	{name: "OpenStruct", ruby: "require 'ostruct'\n OpenStruct.new(h)", want: wholeHash},
	{name: "PP", ruby: "require 'pp'\n h.pretty_inspect", want: wholeHash},
	{name: "ENV.update", ruby: "ENV.update(h)", want: wholeHash},
	{name: "ERB with a hash", ruby: "ERB.new('x').result_with_hash(h)", want: wholeHash},
	{name: "URI", ruby: "URI.encode_www_form(h)", want: wholeHash},
	{name: "Ractor", ruby: "Ractor.new(h) { |x| x }", want: "volatile starts a thread"},
	{name: "deep_merge", ruby: "require 'deep_merge/core'\n DeepMerge.deep_merge!(h, {})", want: wholeHash},
	{name: "a member again", ruby: "h['x']"},
	{name: "other text again", ruby: "'axa'.gsub(/a/, 'b')"},
}

func TestHashesOfFactsThatAreTakenWhole(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	staleNodes(files, takingHashes, "h = scope['facts']['deep']\n    h['list']")
	pool := stalePool(t, files)
	for i, row := range takingHashes {
		for _, kind := range []string{"r", "e"} {
			notes, ended := staleRun(t, pool, fmt.Sprintf("%s%d", kind, i))
			whole := hasNote(notes, "value /facts/deep") || hasNote(notes, "value /facts")
			switch row.want {
			case "":
				if ended != "ran" {
					t.Errorf("%s (%s): it ended with %s", row.name, kind, ended)
				}
				if whole || !hasNote(notes, "value /facts/deep/list") || hasNote(notes, "volatile ") {
					t.Errorf("%s (%s): all is said to be read: %q", row.name, kind, append(kindOf(notes, "value "), kindOf(notes, "volatile ")...))
				}
			case wholeHash:
				if !whole {
					t.Errorf("%s (%s): it is not noted that all was read: %q", row.name, kind, kindOf(notes, "value "))
				}
			default:
				if !whole && !hasNote(notes, row.want) {
					t.Errorf("%s (%s): %q is missing", row.name, kind, row.want)
				}
			}
		}
	}
}

// Code that takes a hash in a way that cannot be watched is noticed by whoever uses
// it, also when another node's compile has loaded it; others stay precise.
func TestCarelessCodeIsNoticedAgain(t *testing.T) {
	t.Parallel()
	pool := stalePool(t, map[string]string{
		"environment.conf": "modulepath = modules\n",
		"manifests/site.pp": `
node 'first.example.org' { notify { 'x': message => String(rows::spread()) } }
node 'second.example.org' { notify { 'y': message => String(rows::spread()) } }
node 'template.example.org' { notify { 'y': message => template('rows/spread.erb') } }
node 'given.example.org' { notify { 'x': message => String(rows::given($facts['deep'])) } }
node 'precise.example.org' { notify { 'x': message => "${rows::one()} ${facts['deep']['x']}" } }
`,
		"modules/rows/lib/puppet/functions/rows/spread.rb": rowsFunction("spread", "", "h = closure_scope['facts']['deep']\n    h['list']\n"+
			"    { 'a' => 1, **h }.size"),
		"modules/rows/lib/puppet/functions/rows/given.rb": rowsFunction("given", "Struct[{list => Array, sub => Hash, x => String}]",
			"'list'.gsub(/list/, given)"),
		"modules/rows/lib/puppet/functions/rows/one.rb": rowsFunction("one", "", "closure_scope['facts']['deep']['x']"),
		"modules/rows/templates/spread.erb":             "<% h = scope['facts']['deep']\nh['list'] -%>\n<%= { 'a' => 1, **h }.size %>\n",
	})
	for _, node := range []string{"first", "second", "template", "template", "given", "given"} {
		if notes := staleReads(t, pool, node); !hasNote(notes, "value /facts/deep") && !hasNote(notes, "value /facts") {
			t.Errorf("%s: it is not noted that all was read: %q", node, kindOf(notes, "value "))
		}
	}
	if notes := staleReads(t, pool, "precise"); !hasNote(notes, "value /facts/deep/x") || hasNote(notes, "value /facts") || hasNote(notes,
		"value /facts/deep") {
		t.Errorf("precise code is not: %q", kindOf(notes, "value "))
	}
}

// rowsFunction is a function of the module rows, with a parameter of a type perhaps.
func rowsFunction(name, kind, body string) string {
	parameter, argument := "", ""
	if kind != "" {
		parameter, argument = "    param '"+kind+"', :given\n", "given"
	}
	return "Puppet::Functions.create_function(:'rows::" + name + "') do\n  dispatch(:act) do\n" + parameter + "  end\n  def act(" + argument + ")\n" +
		"    " + body + "\n  end\nend\n"
}

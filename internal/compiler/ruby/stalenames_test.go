package ruby

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// formerlyHarmless are the names of directories below lib/puppet whose code was once
// thought unable to shape a catalog, wherever they stand in a path.
var formerlyHarmless = []string{"type", "provider", "application", "face", "reports", "feature", "confine", "util/feature", "util/network_device"}

// A directory's name says nothing: files, templates, data and Ruby that code uses are
// inputs, or make catalogs volatile, whatever they are below.
func TestNoNameOfADirectoryIsHarmless(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"environment.conf": "modulepath = modules\n",
		"hiera.yaml": "---\nversion: 5\ndefaults: { datadir: data, data_hash: yaml_data }\nhierarchy:\n" +
			"  - { name: f, path: \"facter/%{trusted.certname}.yaml\" }\n  - { name: p, path: \"puppet/type/web.yaml\" }\n",
		"data/puppet/type/web.yaml":                           "---\nsome::key: 1\n",
		"modules/facter/manifests/web.pp":                     "class facter::web { notify { 'x': message => template('facter/a.erb') } }\n",
		"modules/facter/templates/a.erb":                      "a\n",
		"modules/facter/files/a":                              "a\n",
		"modules/facter/lib/puppet/functions/facter/clock.rb": strings.ReplaceAll(rowsFunction("clock", "", "Time.now.year"), "rows::", "facter::"),
		"modules/facter/functions/plain.pp":                   "function facter::plain() { 1 }\n",
		"modules/rows/templates/facter/role.erb":              "role\n",
		"modules/rows/files/facter/role.txt":                  "role\n",
		"modules/rows/lib/facter/own.rb":                      "module OwnFact\n  def self.year\n    Time.now.year\n  end\nend\n",
		"modules/rows/lib/puppet/functions/rows/fact.rb":      "require_relative '../../../facter/own'\n" + rowsFunction("fact", "", "OwnFact.year"),
		"modules/rows/lib/puppet/functions/rows/fact_text.rb": rowsFunction("fact_text", "",
			"File.read(File.join(__dir__, '../../../facter/own.rb')).size"),
		"modules/rows/lib/puppet/type/clocked.rb": "Puppet::Type.newtype(:clocked) { newparam(:name)\n" +
			" newparam(Time.now.year > 1 ? :year : :none) }\n",
		"modules/rows/lib/puppet/type/system.rb": "Puppet::Type.newtype(:system) { newparam(:name)\n" +
			" newparam(Facter.value(:kernel) == 'none' ? :a : :b) }\n",
		"modules/rows/lib/puppet/type/listed.rb": "Puppet::Type.newtype(:listed) { newparam(:name)\n" +
			" newparam(:\"p#{Dir.children(File.join(__dir__, '../provider/listed')).size}\") }\n",
		"modules/rows/lib/puppet/type/read.rb": "Puppet::Type.newtype(:read) { newparam(:name)\n" +
			" newparam(File.read(File.join(__dir__, '../../../data/parameter')).strip.to_sym) }\n",
		"modules/rows/data/parameter": "text\n",
		"modules/rows/lib/puppet/provider/listed/one.rb": "Puppet::Type.type(:listed).provide(:one) { NOW = Time.now\n" +
			" File.exist?('/etc/passwd')\n Facter.value(:kernel)\n def self.year\n Time.now.year\n end }\n",
		"modules/rows/lib/puppet/functions/rows/provided.rb": rowsFunction("provided", "", "Puppet::Type.type(:listed).provider(:one).year"),
		"modules/rows/lib/puppet/functions/rows/loads.rb":    rowsFunction("loads", "", "Puppet::Type.type(:listed).name.to_s"),
		"modules/rows/lib/puppet/functions/rows/packages.rb": rowsFunction("packages", "",
			"Puppet::Type.type(:user).provider(:useradd).new(name: 'x').respond_to?(:x)\n    Puppet::Type.type(:user).provider(:useradd).command(:add).to_s"),
		"modules/rows/lib/puppet/feature/tested.rb":             "Puppet.features.add(:tested) { File.exist?('/etc/passwd') }\n",
		"modules/rows/lib/puppet/functions/rows/featured.rb":    rowsFunction("featured", "", "Puppet.features.tested?"),
		"modules/rows/lib/puppet/functions/rows/featureless.rb": rowsFunction("featureless", "", "Puppet.features.untested?"),
	}
	rows := []struct{ name, code, want, not string }{
		{"template", "notify { 'x': message => template('rows/facter/role.erb') }", "file modules/rows/templates/facter/role.erb", "volatile "},
		{"file", "notify { 'x': message => file('rows/facter/role.txt') }", "file modules/rows/files/facter/role.txt", "volatile "},
		{"no file", "if find_file('rows/facter/none') { notify { 'x': } }", "file modules/rows/files/facter/none", "volatile "},
		{"data", "notify { 'x': message => String(lookup('some::key')) }", "file data/facter/n3.example.org.yaml", "volatile "},
		{"more data", "notify { 'x': message => String(lookup('some::key')) }", "file data/puppet/type/web.yaml", "volatile "},
		{"manifest of facter", "include facter::web", "file modules/facter/manifests/web.pp", "volatile "},
		{"template of facter", "include facter::web", "file modules/facter/templates/a.erb", "volatile "},
		{"file of facter", "notify { 'x': message => file('facter/a') }", "file modules/facter/files/a", "volatile "},
		{"Ruby of facter", "notify { 'x': message => String(facter::clock()) }", "volatile reads the clock", ""},
		{"function of facter", "notify { 'x': message => String(facter::plain()) }", "tree modules/facter/functions", "volatile "},
		{"Ruby of a fact", "notify { 'x': message => String(rows::fact()) }", "volatile reads the clock", ""},
		{"text of a fact", "notify { 'x': message => String(rows::fact_text()) }", "file modules/rows/lib/facter/own.rb", "volatile "},
		{"type by the clock", "clocked { 'x': year => 1 }", "volatile reads the clock", ""},
		{"type by Facter", "system { 'x': b => 1 }", "tree modules/rows/lib", "volatile "},
		{"type by a file", "read { 'x': text => 1 }", "file modules/rows/data/parameter", "volatile "},
		{"type by a list", "listed { 'x': p1 => 1 }", "list modules/rows/lib/puppet/provider/listed", "volatile "},
		{"provider that is loaded for code", "notify { 'x': message => rows::loads() }", "tree modules/rows/lib", "volatile "},
		{"provider that is called", "notify { 'x': message => String(rows::provided()) }", "volatile reads the clock", ""},
		{"provider of Puppet that is called", "notify { 'x': message => rows::packages() }", "volatile reads /", ""},
		{"feature", "notify { 'x': message => String(rows::featured()) }", "volatile reads /etc/passwd", ""},
		{"no feature", "notify { 'x': message => String(rows::featureless()) }", "anywhere lib/puppet/feature/untested.rb", "volatile "},
	}
	for _, name := range formerlyHarmless {
		module := strings.ReplaceAll(name, "/", "_")
		files["modules/rows/lib/puppet/"+name+"/own_"+module+".rb"] = "module Own" + module + "\n  def self.year\n    Time.now.year\n  end\nend\n"
		files["modules/rows/lib/puppet/functions/rows/uses_"+module+".rb"] = "require_relative '../../" + name + "/own_" + module + "'\n" +
			rowsFunction("uses_"+module, "", "Own"+module+".year")
		files["modules/rows/files/puppet/"+name+"/text"] = "text\n"
		files["modules/rows/templates/puppet/"+name+"/text.erb"] = "text\n"
		rows = append(
			rows,
			struct{ name, code, want, not string }{name, "notify { 'x': message => String(rows::uses_" + module + "()) }", "volatile reads the clock", ""},
			struct{ name, code, want, not string }{
				name, "notify { 'x': message => file('rows/puppet/" + name + "/text') }",
				"file modules/rows/files/puppet/" + name + "/text", "volatile ",
			},
			struct{ name, code, want, not string }{
				name, "notify { 'x': message => template('rows/puppet/" + name + "/text.erb') }", "file modules/rows/templates/puppet/" + name +
					"/text.erb", "volatile ",
			},
		)
	}
	var site strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&site, "node 'n%d.example.org' { %s }\n", i, row.code)
	}
	files["manifests/site.pp"] = site.String()
	pool := stalePool(t, files)
	for round := range 2 {
		for i, row := range rows {
			notes := staleReads(t, pool, fmt.Sprintf("n%d", i))
			if !hasNote(notes, row.want) {
				t.Errorf("%s, round %d: %q is missing; there is %q", row.name, round, row.want, kindOf(notes, row.want))
			}
			if row.not != "" && hasNote(notes, row.not) {
				t.Errorf("%s, round %d: there is %q", row.name, round, kindOf(notes, row.not))
			}
		}
	}
}

// What was read when something was loaded belongs to it, by whichever spelling of its name it is found again.
func TestSpellingsOfANameAreOne(t *testing.T) {
	t.Parallel()
	const size = "Dir.children(File.join(__dir__, '../'.*(4), 'data')).size"
	files := map[string]string{"environment.conf": "modulepath = modules\n", "modules/rows/data/one": "1\n"}
	var site strings.Builder
	var nodes []string
	add := func(kind, asks, manifest string, askedFirst bool) {
		name := fmt.Sprintf("%s%d", kind, len(nodes))
		constant := strings.ToUpper(name)
		asks, manifest = strings.ReplaceAll(asks, "NAME", name), strings.ReplaceAll(manifest, "NAME", name)
		text := map[string]string{
			"type":     "Puppet::Type.newtype(:" + name + ") { newparam(:name)\n newparam(:\"p#{" + strings.Replace(size, "4", "3", 1) + "}\") }\n",
			"function": constant + " = " + size + "\nPuppet::Parser::Functions.newfunction(:" + name + ", type: :rvalue) { |args| " + constant + ".to_s }\n",
			"shown":    constant + " = " + size + "\n" + rowsFunction(name, "", constant+".to_s"),
		}[kind]
		dir := map[string]string{"type": "type", "function": "parser/functions", "shown": "functions/rows"}[kind]
		files["modules/rows/lib/puppet/"+dir+"/"+name+".rb"] = text
		files["modules/rows/lib/puppet/functions/rows/asks_"+name+".rb"] = rowsFunction("asks_"+name, "", asks)
		fmt.Fprintf(&site, "node 'asks-%s.example.org' { notify { 'x': message => rows::asks_%s() } }\nnode '%s.example.org' { %s }\n", name, name, name, manifest)
		pair := []string{"asks-" + name, name}
		if !askedFirst {
			slices.Reverse(pair)
		}
		nodes = append(nodes, pair...)
	}
	for _, askedFirst := range []bool{true, false} {
		add("type", "Puppet::Type.type(:NAME).name.to_s", "NAME { 'x': p1 => 1 }", askedFirst)
		add("type", "Puppet::Type.type('NAME'.capitalize).name.to_s", "NAME { 'x': p1 => 1 }", askedFirst)
		add("function", "Puppet::Parser::Functions.function(:NAME).to_s", "notify { 'x': message => NAME() }", askedFirst)
		add("shown", "call_function(:'rows::NAME')", "notify { 'x': message => rows::NAME() }", askedFirst)
	}
	files["manifests/site.pp"] = site.String()
	pool := stalePool(t, files)
	for _, node := range nodes {
		if notes := staleReads(t, pool, node); !hasNote(notes, "list modules/rows/data") {
			t.Errorf("%s, in %q: there is %q", node, nodes, kindOf(notes, "list "))
		}
	}
}

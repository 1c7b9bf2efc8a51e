package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// exportedCode is an environment whose nodes export and collect. A member's files lie
// where the keeper collects them: in a directory that holds nothing else.
var exportedCode = map[string]string{
	"manifests/site.pp": `
case $facts['role'] {
  'member': {
    @@file { "${facts['keeper']}/members/${trusted['certname']}":
      content => "member of ${environment}\n",
      mode    => '0600',
      tag     => 'members',
    }
    @@keeper::greeting { $trusted['certname']: text => "hello from ${trusted['certname']}" }
    file { "${facts['scratch']}/me": content => "me\n" }
  }
  'keeper': { include keeper }
  default: { }
}
`,
	"modules/keeper/manifests/init.pp": `
class keeper {
  $dir = "${facts['scratch']}/members"
  file { $dir: ensure => directory, recurse => true, purge => true }
  File <<| tag == 'members' |>> { mode => '0640' }
  Keeper::Greeting <<| |>>

  $pql = puppetdb_query('inventory[certname]{ facts.role = "member" and nodes { deactivated is null } }')
  $ast = puppetdb_query(['from', 'resources', ['extract', ['certname', 'parameters'],
    ['and', ['=', 'type', 'Keeper::Greeting'], ['=', 'exported', true]]]])
  $members = $pql.map |$row| { $row['certname'] }
  $texts = $ast.map |$row| { $row['parameters']['text'] }
  file { "${facts['scratch']}/queried": content => "${members} ${texts}\n" }
}
`,
	"modules/keeper/manifests/greeting.pp": `
define keeper::greeting(String $text) {
  file { "${facts['scratch']}/greeting": content => "${text}\n" }
}
`,
}

// One node exports, another collects and asks; both are known of in the inventory.
// When the exporter is purged, the next run of the other has nothing of it any more.
func TestNodesCollectWhatOthersExport(t *testing.T) {
	begin(t, 50)
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s")
	dir := t.TempDir()
	for path, text := range exportedCode {
		write(t, filepath.Join(dir, path), text)
	}
	s.tutti(t, "code", "deploy", "production", dir)
	s.tutti(t, "code", "deploy", "other", dir)
	keeper := newAgent(t, s, "keeper.test", "role=keeper")
	member := newAgent(t, s, "member.test", "role=member", "keeper="+keeper.scratch)

	keeper.run(t, 2)
	same(t, "before anybody exports", map[string]string{"members/": "", "queried": "[] []\n"}, keeper.tree(t, "."))
	member.run(t, 2, "--environment", "other") // collectors look into every environment
	same(t, "the exporter's own files", map[string]string{"me": "me\n"}, member.tree(t, "."))

	out := keeper.run(t, 2)
	contains(t, out, "Keeper::Greeting["+member.name+"]")
	same(t, "what was collected", map[string]string{
		"members/": "", "members/" + member.name: "member of other\n",
		"greeting": "hello from " + member.name + "\n",
		"queried":  "[" + member.name + "] [hello from " + member.name + "]\n",
	}, keeper.tree(t, "."))
	keeper.run(t, 0)

	title := keeper.scratch + "/members/" + member.name
	collected := []map[string]string{
		{"certname": keeper.name, "environment": "production", "type": "File", "title": title, "exporter": member.name},
		{"certname": keeper.name, "environment": "production", "type": "Keeper::Greeting", "title": member.name, "exporter": member.name},
	}
	all := `collected{ exporter = "` + member.name + `" order by type }`
	same(t, "who collected from whom", collected, decode[[]map[string]string](t, s, "query", all))
	same(t, "joined with the exporter's catalog", collected[:1], decode[[]map[string]string](t, s, "query",
		`collected{ [exporter, type, title] in resources[certname, type, title]{ exported = true and tag = "members" } }`))

	s.tutti(t, "node", "purge", member.name)
	contains(t, keeper.run(t, 2), "members/"+member.name)
	same(t, "after the exporter was purged", map[string]string{
		"members/": "", "greeting": "hello from " + member.name + "\n", "queried": "[] []\n",
	}, keeper.tree(t, "."))
	same(t, "who collected from whom", []map[string]string{}, decode[[]map[string]string](t, s, "query", all))
	if catalog := s.tutti(t, "catalog", "show", keeper.name, "-o", "json"); strings.Contains(catalog, member.name) {
		t.Errorf("the keeper's catalog still has something of %s", member.name)
	}
}

// Two nodes that export the same, and a query that is wrong, fail the run in Puppet's
// words, with the place.
func TestCollectingFailsAsInPuppet(t *testing.T) {
	begin(t, 40)
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), `
case $facts['role'] {
  'exporter': { @@notify { 'the same': } }
  'wrong': {
    $rows = puppetdb_query('nodes { certname ! "x" }')
  }
  default: { Notify <<| |>> }
}
`)
	s.tutti(t, "code", "deploy", "production", dir)
	for _, name := range []string{"first.test", "second.test"} {
		newAgent(t, s, name, "role=exporter").run(t, 0)
	}
	collector := newAgent(t, s, "collector.test", "role=collector")
	contains(t, collector.run(t, 1), "A duplicate resource was found while collecting exported resources, with the type and title Notify[the same]")
	collector.env = append(collector.env, "FACTER_role=wrong")
	contains(t, collector.run(t, 1), "(line 1, column 18)", "environments/production/manifests/site.pp, line: 5")
}

package server

// reuseControlRepo is what the nodes of a reuseWorld are compiled of: every way in
// which code reads something.
var reuseControlRepo = map[string]string{
	"hiera.yaml": `---
version: 5
defaults: { datadir: data, data_hash: yaml_data }
hierarchy:
  - { name: node, path: "nodes/%{trusted.certname}.yaml" }
  - { name: role, path: "role/%{facts.role}.yaml" }
  - { name: system, paths: ["os/%{facts.os.family}-%{facts.os.release.major}.yaml", "os/%{::osfamily}.yaml"] }
  - { name: more, glob: "more/*.yaml" }
  - { name: labels, mapped_paths: [facts.zones, zone, "zone/%{zone}.yaml"] }
  - { name: common, path: common.yaml }
`,
	"data/common.yaml": "---\nprofile::base::banner: hello\nprofile::base::level: 1\ndb::settings: { a: 1 }\nweb::port: 80\nntp::servers: [ntp.example]\n" +
		"lookup_options:\n  db::settings: { merge: deep }\n",
	"data/role/web.yaml":   "---\nweb::port: 8080\n",
	"data/os/Debian.yaml":  "---\ndb::settings: { b: 2 }\n",
	"data/more/one.yaml":   "---\nmore::one: 1\n",
	"manifests/site.pp":    "node 'mon1.example' { include role::mon }\nnode default { include \"role::${facts['role']}\" }\n",
	"manifests/globals.pp": "$site_name = 'here'\nFile { backup => false }\n",

	"modules/role/manifests/web.pp":   "class role::web { include profile::base include profile::web }\n",
	"modules/role/manifests/db.pp":    "class role::db { include profile::base include profile::db }\n",
	"modules/role/manifests/mon.pp":   "class role::mon { include profile::base include profile::mon }\n",
	"modules/role/manifests/plain.pp": "class role::plain { include profile::base }\n",

	"modules/profile/manifests/base.pp": `class profile::base (
  String $banner = 'none',
  Integer[0] $level = 0,
  Profile::Names $names = ['a', 'b'],
) {
  include ntp
  file { '/etc/motd': content => template('profile/motd.erb') }
  file { '/etc/issue': content => epp('profile/issue.epp', { 'banner' => $banner }) }
  notify { 'chosen': message => file('/etc/puppetlabs/none', 'profile/choice-a.txt', 'profile/choice-b.txt') }
  notify { 'level': message => profile::level($level) }
  if defined('profile::optional') { include profile::optional }
  if find_file('profile/marker') { notify { 'marked': } }
  notify { 'legacy': message => "${::osfamily} ${operatingsystemrelease} ${site_name}" }
  notify { 'dig': message => String($facts.dig('networking', 'mtu')) }
  notify { 'has extra': message => String('extra' in $facts) }
  notify { 'label count': message => String($facts['labels'].length) }
  $facts['labels'].each |$k, $v| { notify { "label ${k}": message => String($v) } }
  $os = $facts['os']
  notify { 'os': message => "${os['name']} ${os['release']['major']}" }
  if $facts['role'] == 'plain' { notify { 'merged': message => String({ 'none' => 0 } + $facts['memory']) } }
  file { '/opt/tree': ensure => directory, recurse => true, source => 'puppet:///modules/profile/tree' }
  file { '/opt/one': source => ["puppet:///modules/profile/one.${facts['networking']['hostname']}", 'puppet:///modules/profile/one'] }
  notify { 'table': message => profile::table() }
  notify { 'quiet': message => String(lookup('quiet::key', { 'default_value' => 'unset' })) }
  ini_setting { 'x': ensure => present, path => '/etc/x.ini', section => 's', setting => 'banner', value => $banner }
}
`,
	"modules/profile/manifests/web.pp": `class profile::web {
  $port = lookup('web::port')
  file { '/etc/web': content => "port ${port}\n" }
  profile::site { ['a', 'b']: port => $port }
  @@concat::fragment { "member ${facts['networking']['hostname']}":
    target => '/etc/pool', tag => 'pool', content => "server ${facts['networking']['ip']}:${port} weight ${facts['weight']}\n" }
}
`,
	"modules/profile/manifests/site.pp": "define profile::site (Integer $port, String $docroot = \"/srv/${title}\") {\n  file { $docroot: ensure => directory }\n" +
		"  file { \"/etc/sites/${title}\": content => \"${port} ${profile::shout($title)}\" }\n}\n",
	"modules/profile/manifests/db.pp": `class profile::db {
  $settings = lookup('db::settings')
  file { '/etc/db': content => to_json($settings + { 'more' => lookup('more::one', Any, 'first', 0) }) }
  notify { 'weights': message => String(puppetdb_query('facts[certname, value] { name = "weight" order by certname }')) }
  notify { 'web servers': message => String(puppetdb_query('resources[certname] { type = "Class" and title = "Profile::Web" order by certname }').length) }
}
`,
	"modules/profile/manifests/mon.pp": `class profile::mon {
  concat { '/etc/pool': ensure => present }
  Concat::Fragment <<| tag == 'pool' |>>
}
`,
	"modules/profile/types/name.pp":       "type Profile::Name = Pattern[/\\A[a-z]+\\z/]\n",
	"modules/profile/types/names.pp":      "type Profile::Names = Array[Profile::Name]\n",
	"modules/profile/functions/level.pp":  "function profile::level(Integer $n) >> String { \"level ${n}\" }\n",
	"modules/profile/templates/motd.erb":  "<%= @banner %> on <%= @facts['networking']['fqdn'] %> <%= scope['facts']['os']['family'] %><% if @is_virtual %> virtual<% end %>\n",
	"modules/profile/templates/issue.epp": "<%- | String $banner | -%>\n<%= $banner %> <%= $facts['kernel'] %>\n",
	"modules/profile/files/choice-b.txt":  "b\n",
	"modules/profile/files/one":           "one\n",
	"modules/profile/files/tree/a":        "a\n",
	"modules/profile/data/other.txt":      "second\n",
	"modules/profile/data/table.txt":      "first\n",
	"modules/profile/lib/puppet/functions/profile/table.rb": rubyFunction("table", "",
		"File.read(File.join(closure_scope.environment.module('profile').path, 'data', 'table.txt'))"),
	"modules/profile/lib/puppet/functions/profile/shout.rb": "require_relative '../../../profile_text'\n" +
		rubyFunction("shout", "text", "ProfileText.loud(text)"),
	"modules/profile/lib/profile_text.rb":                      "module ProfileText\n  def self.loud(text)\n    text.upcase\n  end\nend\n",
	"modules/unused/manifests/init.pp":                         "class unused { notify { 'unused': } }\n",
	"modules/unused/lib/puppet/functions/unused/nobody.rb":     rubyFunction("nobody", "", "1"),
	"modules/profile/lib/puppet/parser/functions/old_style.rb": "Puppet::Parser::Functions.newfunction(:old_style, type: :rvalue) { |args| args[0].to_s }\n",
}

// rubyFunction is a function of the module profile.
func rubyFunction(name, argument, body string) string {
	parameter, module := "", "profile"
	if name == "nobody" {
		module = "unused"
	}
	if argument != "" {
		parameter = "    param 'String', :" + argument + "\n"
	}
	return "Puppet::Functions.create_function(:'" + module + "::" + name + "') do\n  dispatch(:act) do\n" + parameter +
		"  end\n  def act(" + argument + ")\n    " + body + "\n  end\nend\n"
}

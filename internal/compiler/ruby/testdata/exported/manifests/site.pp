# What each node collects; testdata/exported/resources.json says what others export.
node 'plain.example.org' {
  Notify <<| |>>
}

node 'filters.example.org' {
  Notify <<| tag == 'web' |>>
  File <<| title == '/srv/one' or mode == '0600' |>>
  Site::Thing <<| size == 3 and on == true and tag != 'hidden' |>>
  Host <<| (tag == 'Web' and ip == '192.0.2.1') or (title != 'b' and comment == 'x y') |>>
}

# Its own exported resources come from its own compile.
node 'own.example.org' {
  @@notify { 'mine': message => 'own', tag => 'web' }
  @@notify { 'not collected': message => 'own' }
  @notify { 'virtual': tag => 'web' }
  notify { 'declared': }
  Notify <<| tag == 'web' |>>
  Notify <| tag == 'web' |>
}

node 'overrides.example.org' {
  File <<| tag == 'web' |>> {
    mode    => '0755',
    tag     => 'changed',
    before  => Notify['after'],
  }
  notify { 'after': }
}

# Relations between what is collected and what is declared.
node 'relations.example.org' {
  Notify['first'] -> File <<| tag == 'web' |>> ~> Notify['last']
  notify { ['first', 'last']: }
  Site::Related <<| |>>
  class { 'site::target': }
}

# Defined types that are collected declare resources, which are collected again.
node 'nested.example.org' {
  Site::Thing <<| |>>
  Notify <<| tag == 'nested' |>>
}

node 'tags.example.org' {
  tag 'of_node'
  class { 'site::collects': }
}

node 'concat.example.org' {
  concat { '/etc/app.conf': }
  Concat::Fragment <<| target == '/etc/app.conf' |>>
}

node 'empty.example.org' {
  User <<| |>>
  notify { 'nobody': }
}

# The same collector twice, and two that overlap.
node 'twice.example.org' {
  Notify <<| tag == 'web' |>>
  Notify <<| tag == 'web' |>>
  Notify <<| |>>
}

node 'defaults.example.org' {
  File { owner => 'root', mode => '0400' }
  File <<| |>>
}

node 'queries.example.org' {
  $pql = puppetdb_query('resources[certname, title]{exported = true and type = "Notify"}')
  $ast = puppetdb_query(['from', 'resources', ['extract', ['certname', 'title', 'parameters'], ['=', 'type', 'Site::Thing']]])
  $none = puppetdb_query('resources[title]{type = "User"}')
  notify { 'pql': message => $pql.map |$row| { "${row['certname']}:${row['title']}" } }
  notify { 'ast': message => $ast }
  notify { 'none': message => "${none}" }
  notify { 'helper': message => site::helper('resources[title]{type = "Host"}') }
}

# These do not compile.
node 'conflict.example.org' {
  notify { 'a says hello': message => 'declared here' }
  Notify <<| |>>
}

node 'two-exporters.example.org' {
  Package <<| |>>
}

node 'unknown-type.example.org' {
  Nothing::Here <<| |>>
}

node 'wrong-parameter.example.org' {
  Site::Strict <<| |>>
}

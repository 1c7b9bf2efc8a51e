node 'apache.example.org' {
  class { 'apache': default_vhost => false, mpm_module => 'prefork' }
  class { ['apache::mod::ssl', 'apache::mod::status', 'apache::mod::php']: }
  apache::vhost { 'one.example.org': port => 80, docroot => '/srv/one', redirect_status => 'permanent', redirect_dest => 'https://one.example.org/' }
  apache::vhost { 'two.example.org':
    port        => 443,
    ssl         => true,
    docroot     => '/srv/two',
    directories => [{ 'path' => '/srv/two', 'allow_override' => ['None'], 'require' => 'all granted' }],
    rewrites    => [{ 'rewrite_cond' => ['%{HTTPS} off'], 'rewrite_rule' => ['^ - [F]'] }],
  }
}
node 'mysql.example.org' {
  class { 'mysql::server': root_password => 'x', remove_default_accounts => true, override_options => { 'mysqld' => { 'bind-address' => '::' } } }
  mysql::db { ['shop', 'wiki']: user => 'app', password => 'secret', grant => ['ALL'] }
  include mysql::client
}
node 'ntp.example.org' { include ntp }
node 'haproxy.example.org' {
  class { 'haproxy': global_options => { 'maxconn' => '4000' }, merge_options => true }
  haproxy::listen { 'web': collect_exported => false, ipaddress => '0.0.0.0', ports => '80', options => { 'mode' => 'http', 'option' => ['httplog'] } }
  haproxy::balancermember { ['w1', 'w2']: listening_service => 'web', ports => '8080', server_names => $title, ipaddresses => '192.0.2.20', options => 'check' }
}
node 'postgresql.example.org' {
  class { 'postgresql::globals': version => '15' }
  class { 'postgresql::server': postgres_password => 'x', listen_addresses => '*' }
  postgresql::server::db { 'shop': user => 'shop', password => 'pw' }
  postgresql::server::pg_hba_rule { 'net': type => 'host', database => 'shop', user => 'shop', address => '192.0.2.0/24', auth_method => 'md5' }
}
node 'rabbitmq.example.org' {
  class { 'rabbitmq': repos_ensure => false, service_manage => true, port => 5672, delete_guest_user => true, config_variables => { 'hipe_compile' => true } }
}
node 'small-servers.example.org' {
  include xinetd
  xinetd::service { 'echo': port => '7', server => '/bin/cat', service_type => 'UNLISTED' }
  class { 'tftp': directory => '/srv/tftp', inetd => false }
  tftp::file { 'pxelinux.0': content => 'x' }
  class { 'rsync::server': use_xinetd => false }
  rsync::server::module { 'repo': path => '/srv/repo', require => File['/srv'] }
  file { '/srv': ensure => directory }
}
node 'apt.example.org' {
  class { 'apt': update => { 'frequency' => 'daily' }, purge => { 'sources.list' => true } }
  apt::source { 'internal': location => 'http://deb.example.org/debian', repos => 'main', release => 'bookworm', key => { 'id' => '6F6B15509CF8E59E6E469F327F438280EF8D349F', 'server' => 'keys.example.org' } }
  apt::pin { 'internal': priority => 700, origin => 'deb.example.org' }
  apt::conf { 'proxy': content => 'Acquire::http::Proxy "http://proxy.example.org:3128";', priority => 10 }
}
node 'firewall.example.org' {
  include firewall
  firewallchain { 'INPUT:filter:IPv4': ensure => present, policy => drop }
  firewall { '001 ssh': proto => 'tcp', dport => 22, action => 'accept' }
  firewall { '002 web': proto => 'tcp', dport => [80, 443], action => 'accept', require => Firewallchain['INPUT:filter:IPv4'] }
}
node 'inifile.example.org' {
  Integer[1, 5].each |$n| {
    ini_setting { "s${n}": path => '/etc/app.ini', section => 'main', setting => "k${n}", value => String($n) }
  }
  ini_subsetting { 'opts': path => '/etc/default/app', section => '', setting => 'OPTS', subsetting => '-Xmx', value => '512m' }
  create_ini_settings({ 'top' => { 'a' => 1, 'b' => { 'ensure' => 'absent' } } }, { 'path' => '/etc/c.ini' })
}
node 'concat.example.org' {
  concat { '/etc/joined': ensure => present, order => 'numeric' }
  ['b', 'a'].each |$i, $n| { concat::fragment { $n: target => '/etc/joined', content => "${n}\n", order => 10 - $i } }
  concat { '/etc/yaml': format => 'yaml' }
  concat::fragment { 'y': target => '/etc/yaml', content => to_yaml({ 'a' => [1, 2] }) }
}
node 'vcsrepo.example.org' {
  vcsrepo { '/srv/code': ensure => latest, provider => git, source => { 'origin' => 'https://git.example.org/x.git' }, revision => 'main' }
  include staging
  staging::file { 'x.tar.gz': source => 'https://files.example.org/x.tar.gz' }
  staging::extract { 'x.tar.gz': target => '/opt', creates => '/opt/x' }
}
node 'stdlib.example.org' { include sample::functions }
node 'hiera.example.org' { include sample::data }
node 'templates.example.org' { include sample::templates }
node 'virtual.example.org' { include sample::virtual }
node 'rich.example.org' { include sample::rich }
node 'defines.example.org' { include sample::relations }
node 'types.example.org' { include sample::types }
node /^pattern\d+\.example\.org$/ {
  notify { "matched ${0}": }
  include sample::virtual, sample::relations, sample::templates, ntp
  class { 'apache': }
}
node default { notify { 'classified only': message => "${role_param} ${top}" } }

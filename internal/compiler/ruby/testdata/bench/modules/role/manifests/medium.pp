# About 500 resources: a web server with a database.
class role::medium (
  Integer $sites,
  Integer $files,
) {
  include role::small
  class { 'apache':
    default_vhost => false,
    mpm_module    => 'event',
  }
  include apache::mod::ssl
  include apache::mod::proxy
  include apache::mod::headers
  include apache::mod::rewrite
  class { 'mysql::server':
    root_password    => 'not a secret',
    override_options => { 'mysqld' => { 'max_connections' => '512' } },
  }
  Integer[1, $sites].each |$n| {
    webapp::site { "app${n}.example.org": number => $n }
    webapp::database { "app${n}": number => $n }
  }
  webapp::files { '/srv/site/data': count => $files }
}

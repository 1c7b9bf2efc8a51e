# About 2 000 resources: a hosting machine.
class role::large (
  Integer $sites,
  Integer $databases,
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
    root_password => 'not a secret',
  }
  Integer[1, $sites].each |$n| {
    webapp::site { "host${n}.example.org": number => $n }
  }
  Integer[1, $databases].each |$n| {
    webapp::database { "host${n}": number => $n }
  }
  webapp::files { '/srv/site/data': count => $files }
}

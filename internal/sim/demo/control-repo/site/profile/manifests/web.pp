# A web server's files.
#
# @param root where the node's files go
# @param workers worker processes
# @param sites host name to port, aliases and TLS
class profile::web (
  Stdlib::Absolutepath $root,
  Integer[1] $workers,
  Hash[Stdlib::Fqdn, Struct[{ port => Stdlib::Port, Optional[aliases] => Array[Stdlib::Fqdn], Optional[tls] => Boolean }]] $sites,
) {
  require profile::base

  file { "${root}/srv/docroot":
    ensure  => directory,
    recurse => true,
    purge   => true,
    source  => 'puppet:///modules/profile/docroot',
  }

  file { "${root}/etc/sites.d":
    ensure => directory,
  }
  $sites.each |$name, $options| {
    profile::site { $name:
      root => $root,
      *    => $options,
    }
  }

  ini_setting { 'app: workers':
    ensure  => present,
    path    => "${root}/etc/app.ini",
    section => 'web',
    setting => 'workers',
    value   => $workers,
  }
}

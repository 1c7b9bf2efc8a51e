# One site of a web server.
#
# @param root where the node's files go
# @param port where it listens
# @param aliases further names
# @param tls whether it speaks TLS
define profile::site (
  Stdlib::Absolutepath $root,
  Stdlib::Port $port,
  Array[Stdlib::Fqdn] $aliases = [],
  Boolean $tls = false,
) {
  file { "${root}/etc/sites.d/${name}.conf":
    ensure  => file,
    content => epp('profile/site.conf.epp', {
      'name' => $name, 'port' => $port, 'aliases' => $aliases, 'tls' => $tls, 'docroot' => "${root}/srv/docroot",
    }),
  }
  concat::fragment { "hosts: ${name}":
    target  => "${root}/etc/hosts",
    content => "127.0.0.1 ${name} ${aliases.join(' ')}\n",
    order   => '50',
  }
}

# What every node has, below a root directory of its own.
#
# @param root where the node's files go; nothing outside is touched
# @param banner the first line of the message of the day
# @param ntp_servers time servers, in order of preference
# @param limits resource limits, name to value
class profile::base (
  Stdlib::Absolutepath $root,
  String[1] $banner,
  Array[Stdlib::Host, 1] $ntp_servers,
  Hash[String[1], Variant[Integer, Enum['unlimited']]] $limits,
) {
  file { [$root, "${root}/etc", "${root}/etc/limits.d", "${root}/srv", "${root}/var"]:
    ensure => directory,
    mode   => '0755',
  }

  file { "${root}/etc/motd":
    ensure  => file,
    content => epp('profile/motd.epp', { 'banner' => $banner, 'role' => $facts['demo_role'] }),
  }

  file { "${root}/etc/ntp.conf":
    ensure  => file,
    content => template('profile/ntp.conf.erb'),
  }

  $limits.each |$name, $value| {
    file { "${root}/etc/limits.d/${name}.conf":
      ensure  => file,
      content => "* - ${name} ${value}\n",
    }
  }

  concat { "${root}/etc/hosts":
    ensure => present,
  }
  concat::fragment { 'hosts: self':
    target  => "${root}/etc/hosts",
    content => "127.0.0.1 localhost ${trusted['certname']}\n",
    order   => '01',
  }
  concat::fragment { 'hosts: time':
    target  => "${root}/etc/hosts",
    content => $ntp_servers.map |$index, $server| { "192.0.2.${index} ${server}\n" }.join,
    order   => '10',
  }

  ini_setting {
    default:
      ensure  => present,
      path    => "${root}/etc/app.ini",
      section => 'main';
    'app: environment':
      setting => 'environment',
      value   => $environment;
    'app: node':
      setting => 'node',
      value   => $trusted['certname'];
  }
}

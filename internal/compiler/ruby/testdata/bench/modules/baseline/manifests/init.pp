# What every machine has.
class baseline (
  Array[String] $packages,
  Hash[Stdlib::Absolutepath, Hash] $directories,
  Hash[String, Hash] $users,
  Hash[String, String] $settings,
) {
  ensure_packages($packages)

  $directories.each |$path, $attributes| {
    file { $path: ensure => directory, * => $attributes }
  }

  $users.each |$name, $attributes| {
    @baseline::account { $name: * => $attributes }
  }
  Baseline::Account <| |>

  file { '/srv/site/etc/settings.conf':
    content => epp('baseline/settings.epp', { 'settings' => $settings }),
    require => File['/srv/site/etc'],
  }
  file { '/etc/tutti-bench.token':
    content => Sensitive("token of ${trusted['certname']}\n"),
    mode    => '0600',
  }
  file { '/etc/motd':
    content => template('baseline/motd.erb'),
  }
  file { '/srv/site/bin/report':
    source => 'puppet:///modules/baseline/report.sh',
    mode   => '0755',
  }
  exec { 'refresh settings':
    command     => '/bin/true',
    refreshonly => true,
    subscribe   => File['/srv/site/etc/settings.conf'],
  }
}

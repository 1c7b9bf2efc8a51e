# Builtin types with their title patterns, aliases and metaparameters.
class sample::types {
  file { '/srv/dir/': ensure => directory, recurse => true, source => ['puppet:///modules/sample/', 'puppet:///modules/sample/data.txt'] }
  file { 'aliased': path => '/etc/aliased', alias => 'other name', content => '' }
  exec { 'run it': command => '/bin/true', onlyif => ['/bin/true', ['/usr/bin/test', '-e', '/x']], require => File['/etc/aliased'] }
  cron { 'nightly': command => '/bin/x', hour => [1, 2], minute => '*/5', user => root }
  host { 'db.example.org': ip => '192.0.2.30', host_aliases => ['db'] }
  mount { '/mnt/x': ensure => mounted, device => '/dev/sdz1', fstype => 'ext4', options => 'ro' }
  ssh_authorized_key { 'k@x': user => 'root', type => 'ssh-rsa', key => 'AAAA' }
  service { 'svc': ensure => running, enable => true, hasstatus => true }
  package { ['p1', 'p2']: ensure => installed, noop => true, loglevel => debug, schedule => 'daily' }
  schedule { 'nights': range => '2 - 4', period => daily }
  resources { 'host': purge => true }
  augeas { 'a': context => '/files/etc/x', changes => ['set a b'] }
  tidy { '/tmp/x': age => '1w', recurse => 1 }
  filebucket { 'main': path => false, server => 'puppet.example.org' }
}

node default {
  file { '/nowhere':
    ensure => present
    mode   => '0644',
  }
}

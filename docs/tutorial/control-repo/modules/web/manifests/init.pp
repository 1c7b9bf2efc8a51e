# A web server's settings. The nodes of the tutorial share a machine, so each has a directory that stands for /.
class web {
  $etc = "${facts['tutorial_root']}/etc"

  file { $etc:
    ensure => directory,
  }
  file { 'site.conf':
    path    => "${etc}/site.conf",
    content => epp('web/site.conf.epp'),
  }
}

# Many files, every third from a template.
define webapp::files (Integer $count) {
  $dir = $name
  file { $dir: ensure => directory }
  Integer[1, $count].each |$n| {
    if $n % 3 == 0 {
      $text = epp('webapp/app.conf.epp', { 'name' => "data ${n}", 'port' => $n })
    } else {
      $text = "number ${n} on ${facts['networking']['fqdn']}\n"
    }
    file { "${dir}/file${n}.conf":
      content => $text,
      mode    => '0640',
    }
  }
}

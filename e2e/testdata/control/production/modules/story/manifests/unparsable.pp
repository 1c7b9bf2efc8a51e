# A class whose file cannot be parsed: only who includes it is hurt.
class story::unparsable {
  file { '/nowhere':
    ensure => present
    mode   => '0644',
  }
}

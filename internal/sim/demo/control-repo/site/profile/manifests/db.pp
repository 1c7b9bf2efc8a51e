# A database server's files.
#
# @param root where the node's files go
# @param settings server settings, name to value
# @param databases names of the databases
class profile::db (
  Stdlib::Absolutepath $root,
  Hash[String[1], Scalar] $settings,
  Array[Pattern[/\A[a-z_]+\z/]] $databases,
) {
  require profile::base

  file { ["${root}/etc/db.d", "${root}/var/db"]:
    ensure => directory,
    mode   => '0750',
  }
  $settings.each |$name, $value| {
    ini_setting { "db: ${name}":
      ensure  => present,
      path    => "${root}/etc/db.ini",
      section => 'server',
      setting => $name,
      value   => $value,
    }
  }
  $databases.each |$database| {
    file {
      "${root}/var/db/${database}":
        ensure => directory,
        mode   => '0700';
      "${root}/etc/db.d/${database}.conf":
        ensure  => file,
        mode    => '0640',
        content => "database = ${database}\npassword = ${sha256("${database}-demo")[0, 12]}\n",
        show_diff => false;
    }
  }
  file_line { 'motd: databases':
    path    => "${root}/etc/motd.db",
    line    => "Databases: ${databases.join(', ')}",
    require => File["${root}/etc/motd.db"],
  }
  file { "${root}/etc/motd.db":
    ensure  => file,
    replace => false,
    content => "# what this server holds\n",
  }
}

# A database and who may use it.
define webapp::database (Integer $number) {
  mysql::db { $name:
    user     => "u${number}",
    password => "pw-${name}",
    host     => 'localhost',
    grant    => ['SELECT', 'UPDATE'],
  }
}

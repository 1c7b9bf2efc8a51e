# A person or program that may log in.
define baseline::account (Integer $uid) {
  group { $name: gid => $uid }
  user { $name:
    uid  => $uid,
    gid  => $uid,
    home => "/home/${name}",
  }
  file { "/home/${name}":
    ensure => directory,
    owner  => $name,
    mode   => '0700',
  }
  file { "/home/${name}/.profile":
    content => epp('baseline/profile.epp', { 'name' => $name }),
    owner   => $name,
  }
  file { "/home/${name}/.bashrc":
    content => template('baseline/bashrc.erb'),
    owner   => $name,
  }
  Group[$name] -> User[$name] -> File["/home/${name}"]
}

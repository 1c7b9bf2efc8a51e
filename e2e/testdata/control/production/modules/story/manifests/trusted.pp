# What a certificate says about its node.
class story::trusted {
  file { "${facts['scratch']}/trusted.txt":
    content => "${trusted['certname']} ${trusted['authenticated']} ${trusted['extensions']['pp_role']}\n",
  }
}

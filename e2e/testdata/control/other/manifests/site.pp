node default {
  if $facts['scratch'] {
    file { "${facts['scratch']}/environment.txt":
      content => "${environment} of ${server_facts['environment']}\n",
    }
  }
}

# What a Puppet Server compiles that keeps what it knows in Tutti. Nodes with the role "web"
# export a file, the node with the role "lb" collects them and asks for all nodes.

# A parameter is looked up in Hiera, and the terminus tells which keys a catalog asked for.
class greeting(String $text = 'hello') {
  notice($text)
}
include greeting

file { "${facts['scratch']}/own.txt":
  content => "I am ${trusted['certname']}\n",
}

case $facts['role'] {
  'web': {
    @@file { "${facts['shared']}/${trusted['certname']}":
      content => "member ${trusted['certname']}\n",
      tag     => 'Members',
    }
    file { "${facts['scratch']}/second.txt":
      content => "after own.txt\n",
      require => File["${facts['scratch']}/own.txt"],
    }
  }
  'lb': {
    File <<| tag == 'Members' |>>
    $nodes = puppetdb_query('nodes[certname] { facts { name = "role" } order by certname }').map |$row| { $row['certname'] }
    file { "${facts['scratch']}/nodes.txt":
      content => join($nodes, ' '),
    }
  }
  default: {}
}

# What a run overwrites is kept by the server.
class story::bucket {
  filebucket { 'central':
    path   => false,
    server => $facts['bucket_server'],
    port   => Integer($facts['bucket_port']),
  }
  file { "${facts['scratch']}/precious.txt":
    content => "new\n",
    backup  => 'central',
  }
}

# A web site: its directories, its virtual host, its settings.
define webapp::site (Integer $number) {
  $root = "/srv/www/${name}"
  $port = 8000 + $number
  file { $root: ensure => directory }
  file { "${root}/index.html":
    content => template('webapp/index.html.erb'),
  }
  file { "${root}/app.conf":
    content => epp('webapp/app.conf.epp', { 'name' => $name, 'port' => $port }),
    notify  => Class['apache::service'],
  }
  apache::vhost { $name:
    port          => 80,
    docroot       => "${root}/public",
    manage_docroot => false,
    serveraliases => ["www.${name}"],
    headers       => ['set X-Site "on"'],
    rewrites      => [{ 'rewrite_rule' => ['^/old$ /new [R]'] }],
    proxy_pass    => [{ 'path' => '/api', 'url' => "http://127.0.0.1:${port}/" }],
  }
}

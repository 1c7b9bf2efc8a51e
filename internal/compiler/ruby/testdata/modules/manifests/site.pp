# One node for each module, named after it.
node /^chrony\./ { class { 'chrony': servers => ['ntp1.example.org', 'ntp2.example.org'] } }
node /^powerdns\./ { include powerdns }
node /^redis\./ { class { 'redis': bind => '192.0.2.1', maxmemory => '1gb' } }
node /^kmod\./ {
  include kmod
  kmod::load { 'mod': }
  kmod::blacklist { 'foo': }
  kmod::option { 'bond0': module => 'bonding', option => 'mode', value => '1' }
}
node /^openssl\./ {
  include openssl
  openssl::certificate::x509 { 'foo': country => 'CH', organization => 'Example', commonname => 'foo.example.org', base_dir => '/etc/ssl/foo' }
}
node /^postfix\./ {
  class { 'postfix': inet_interfaces => 'localhost', mta => false }
  postfix::config { 'relay_domains': value => 'example.org' }
  postfix::hash { '/etc/postfix/virtual': ensure => present, content => "a b\n" }
}
node /^systemd\./ {
  class { 'systemd': manage_resolved => true, manage_networkd => true }
  systemd::unit_file { 'foo.service': content => "[Service]\n", enable => true, active => true }
  systemd::dropin_file { 'foo.conf': unit => 'foo.service', content => "[Unit]\n" }
}
node /^etcd\./ { class { 'etcd': listen_client_urls => 'http://0.0.0.0:2379' } }
node /^zookeeper\./ { class { 'zookeeper': servers => ['192.0.2.1', '192.0.2.2'] } }
node /^sysctl\./ { sysctl::value { 'net.ipv4.ip_forward': value => '1' } sysctl { 'vm.swappiness': val => '10' } }
node /^horizon\./ { class { 'horizon': secret_key => 's3cret', allowed_hosts => ['a.example.org'] } }
node /^ipaclient\./ { class { 'ipaclient': password => 's3cret' } }
node /^openstacklib\./ { openstacklib::db::mysql { 'app': password_hash => 'AA1420F182E88B9E5F874F6FBE7459291E8F4601' } include mysql::server }
node /^oslo\./ { oslo::db { 'cinder_config': connection => 'mysql+pymysql://a:b@c/d' } oslo::log { 'cinder_config': debug => true } oslo::middleware { 'cinder_config': } }
node /^filebeat\./ { class { 'filebeat': outputs => { 'logstash' => { 'hosts' => ['192.0.2.1:5044'] } } } filebeat::input { 'syslogs': paths => ['/var/log/syslog'], doc_type => 'syslog-beat' } }
node /^archive\./ { include archive archive { '/tmp/a.zip': ensure => present, source => 'https://example.org/a.zip', extract => true, extract_path => '/opt' } }
node /^mongodb\./ { class { 'mongodb::server': auth => true, bind_ip => ['127.0.0.1'] } mongodb::db { 'one': user => 'u', password_hash => 'x' } }
node /^datacat\./ { datacat { '/tmp/x': template_body => "<%= @data.inspect %>" } datacat_fragment { 'f': target => '/tmp/x', data => { 'a' => ['b'] } } }
node /^memcached\./ { class { 'memcached': max_memory => '12%' } }
node /^ssh\./ { class { 'ssh': storeconfigs_enabled => false, server_options => { 'PermitRootLogin' => 'no', 'Port' => [22, 2222] } } ssh::client::config::user { 'u': ensure => present, user_home_dir => '/home/u', options => { 'HashKnownHosts' => 'yes' } } }
node /^dns\./ { include dns dns::zone { 'example.org': soa => 'ns1.example.org', soaip => '192.0.2.1' } }
node /^alternatives\./ { alternatives { 'editor': path => '/usr/bin/vim.basic' } alternative_entry { '/usr/bin/x': altlink => '/usr/bin/editor', altname => 'editor', priority => 10 } }
node /^collectd\./ { class { 'collectd': purge => true, recurse => true } collectd::plugin { 'battery': } class { 'collectd::plugin::cpu': reportbystate => true } }
node /^corosync\./ { class { 'corosync': authkey => '/tmp/k', bind_address => '192.0.2.1', cluster_name => 'c', enable_secauth => false, set_votequorum => true, quorum_members => ['a', 'b'] } cs_property { 'stonith-enabled': value => 'false' } }
node /^vswitch\./ { include vswitch::ovs }

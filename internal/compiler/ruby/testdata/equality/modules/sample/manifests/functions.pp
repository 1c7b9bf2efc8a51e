# Functions of stdlib and of this module, in both languages.
class sample::functions {
  $data = { 'a' => [3, 1, 2], 'b' => { 'c' => 'd' } }
  $values = {
    'sorted'   => $data['a'].sort,
    'merged'   => deep_merge($data, { 'b' => { 'e' => 'f' } }),
    'json'     => to_json_pretty($data),
    'yaml'     => to_yaml($data),
    'rand'     => fqdn_rand(1000, 'seed'),
    'sha'      => sha256('x'),
    'split'    => split('a,b,c', ','),
    'regsub'   => regsubst('hello', 'l', 'L', 'G'),
    'mapped'   => $data['a'].map |$x| { $x * 2 },
    'reduced'  => $data['a'].reduce |$m, $x| { $m + $x },
    'filtered' => $data['a'].filter |$x| { $x > 1 },
    'own'      => sample::double(21),
    'ruby'     => sample::shout('quiet'),
    'range'    => range(1, 5),
    'pick'     => pick(undef, '', 'x'),
    'member'   => 2 in $data['a'],
    'case'     => $facts['os']['family'] ? { /^Deb/ => "debian ${0}", default => 'other' },
    'size'     => size($data['a']),
    'versions' => versioncmp('1.10', '1.9'),
    'epoch'    => strftime(Timestamp('2020-01-02T03:04:05 UTC'), '%F'),
    'flat'     => flatten([1, [2, [3]]]),
    'str'      => sprintf('%05.2f|%x|%-5s|', 3.14159, 255, 'ab'),
    'file'     => file('sample/data.txt'),
    'dig'      => $facts.dig('os', 'release', 'major'),
  }
  $values.each |$name, $value| { notify { $name: message => $value } }
  ensure_packages(['one', 'two'], { 'ensure' => 'present' })
  ensure_resource('user', 'someone', { 'uid' => 5000 })
  create_resources('file', { '/etc/a' => { 'content' => 'a' }, '/etc/b' => { 'ensure' => 'directory' } }, { 'mode' => '0600' })
  file_line { 'l': path => '/etc/a', line => 'x' }
  warning("a warning from ${module_name}")
  notice('a notice')
}

# Every way to look something up.
class sample::data (
  Hash $merged = lookup('sample::merged'),
  Array $listed = lookup('sample::listed', Array, 'unique'),
) {
  notify { 'merged': message => $merged }
  notify { 'listed': message => $listed }
  notify { 'first': message => lookup('sample::listed', { 'merge' => 'first' }) }
  notify { 'aliased': message => lookup('sample::aliased') }
  notify { 'literal': message => lookup('sample::literal') }
  notify { 'nested': message => lookup('sample::nested') }
  notify { 'piece': message => lookup('sample::from_piece') }
  notify { 'json': message => lookup('sample::from_json') }
  notify { 'default': message => lookup('sample::missing', { 'default_value' => { 'a' => 1 } }) }
  notify { 'dotted': message => lookup('sample::merged.a.y.0') }
  file { '/etc/secret': content => lookup('sample::secret') }
  class { 'sample': greeting => 'from data' }
}

# Order, containment, stages, tags, metaparameters that travel.
class sample::relations {
  stage { 'early': before => Stage['main'] }
  class { 'sample::early': stage => 'early' }
  contain sample::contained
  require sample::required
  tag 'tagged_class'
  notify { 'a': } -> notify { 'b': } ~> notify { ['c', 'd']: } <- notify { 'e': }
  sample::account { 'related': uid => 1, require => Notify['a'], tag => 'mine', audit => 'all', noop => false }
  Notify['a'] -> Sample::Account <| tag == 'mine' |>
  Class['sample::contained'] -> Notify['e']
  if tagged('tagged_class') { notify { 'is tagged': subscribe => [Notify['c'], Notify['d']] } }
  if defined(Notify['a']) { notify { 'is defined': } }
}

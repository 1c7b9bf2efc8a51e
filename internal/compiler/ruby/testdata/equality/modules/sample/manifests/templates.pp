# ERB and EPP, from files and inline, several times.
class sample::templates {
  $list = ['x', 'y']
  $maybe = undef
  Integer[1, 3].each |$n| {
    $number = $n
    file { "/etc/erb${n}": content => template('sample/plain.erb', 'sample/second.erb') }
    file { "/etc/epp${n}": content => epp('sample/plain.epp', { 'n' => $n, 'list' => $list }) }
    notify { "inline ${n}": message => inline_template("<%= @number %>|<%= @list.join(' ') %>|<%= @maybe.inspect %>|<%= scope['sample::templates::list'] %>") }
    notify { "inline epp ${n}": message => inline_epp('<%= $n %> <% if $n > 1 { %>many<% } %>', { 'n' => $n }) }
  }
  sample::templated { 'a': value => 'one' }
  sample::templated { 'b': value => 'two' }
  file { '/etc/indirect': content => template('sample/indirect.erb') }
  file { '/etc/noparams': content => epp('sample/noparams.epp') }
}

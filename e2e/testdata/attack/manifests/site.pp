if $facts['eats'] { attack::eat($facts['eats']) }
if $facts['targets'] {
  $found = attack::run($facts['targets'])
  unless $found['succeeded'].empty() { fail("SUCCEEDED ${join($found['succeeded'], ', ')}") }
  unless $found['refused'].empty() { fail("REFUSED ${join($found['refused'], ', ')}") }
  unless $found['failed'].empty() { fail("FAILED ${join($found['failed'], ', ')}") }
  unless $word == 'read' and $trusted['external']['directory'] == 'reached' { fail("PROGRAMS ${word} ${trusted['external']}") }
  notify { 'nothing was got at': }
}

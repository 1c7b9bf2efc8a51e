$found = attack::run($facts['targets'])
unless $found['succeeded'].empty() { fail("SUCCEEDED ${join($found['succeeded'], ', ')}") }
unless $found['failed'].empty() { fail("FAILED ${join($found['failed'], ', ')}") }
notify { 'nothing was got at': }

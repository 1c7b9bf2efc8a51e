# Values that JSON does not know.
class sample::rich {
  file { '/etc/sensitive': content => Sensitive('hidden'), mode => '0600' }
  file { '/etc/deferred': content => Deferred('sprintf', ['%s', 'later']) }
  file { '/etc/deferred-sensitive': content => Sensitive(Deferred('sprintf', ['%s', 'later'])) }
  file { '/etc/binary': content => Binary('AAEC', '%B') }
  notify { 'rich':
    message => {
      'timestamp' => Timestamp('2020-01-01T00:00:00.5 UTC'),
      'timespan'  => Timespan({ 'hours' => 1, 'minutes' => 2 }),
      'semver'    => SemVer('1.2.3-rc1'),
      'range'     => SemVerRange('>=1.0.0 <2.0.0'),
      'regexp'    => /a.c/,
      'type'      => Array[Integer],
      'default'   => default,
      'undef'     => undef,
      'float'     => 1.0,
      'big'       => 9007199254740993,
      'negative'  => -1,
      1           => 'integer key',
      'reference' => File['/etc/sensitive'],
      'uri'       => URI('https://example.org/x?y=z'),
      'nested'    => [Sensitive('inner'), [undef, { 'k' => Timespan(5) }]],
      'unicode'   => "snow \u2603 \u{1F600}",
    },
  }
  sample_native { 'one': ensure => present, level => high, secret => Sensitive('s') }
  sample::typed { 'x': size => 3, mode => 'fast', target => User['root'] }
}

# Virtual and exported resources, collectors, overrides.
class sample::virtual {
  @user { ['ann', 'bob', 'cid']: ensure => present, tag => ['people'] }
  @user { 'dan': ensure => absent, tag => ['gone'] }
  User <| title == 'ann' or (tag == 'people' and title != 'bob') |> { shell => '/bin/bash' }
  realize(User['dan'])
  @sample::account { 'virtual define': uid => 7 }
  Sample::Account <| |> -> notify { 'after accounts': }
  @@file { '/etc/exported': content => 'for others' }
  @@sample::account { 'exported define': uid => 8 }
  @notify { 'never': }
  file { '/etc/base': content => 'a' }
  File['/etc/base'] { backup => false }
  File <| title == '/etc/base' |> { mode => '0640' }
}

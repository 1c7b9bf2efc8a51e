# What a node gets is decided by the beginning of its name.
node /^small-/ {
  $size = 'small'
  include role::small
}

node /^medium-/ {
  $size = 'medium'
  include role::medium
}

node /^large-/ {
  $size = 'large'
  include role::large
}

node default {
  fail("no role for ${trusted['certname']}: names begin with small-, medium- or large-")
}

# What a base node is.
class role::base {
  include profile::base
}

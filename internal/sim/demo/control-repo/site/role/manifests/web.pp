# What a web node is.
class role::web {
  include profile::base
  include profile::web
}

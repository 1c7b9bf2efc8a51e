# What a db node is.
class role::db {
  include profile::base
  include profile::db
}

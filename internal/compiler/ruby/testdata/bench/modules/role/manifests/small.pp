# About 50 resources: what every machine has, and ntp.
class role::small {
  include baseline
  include ntp
}

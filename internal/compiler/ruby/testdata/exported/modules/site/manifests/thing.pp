define site::thing($size = 1, $on = false, $list = [], $map = {}) {
  notify { "thing ${title}": message => "${size} ${on} ${list} ${map}" }
  @@notify { "nested ${title}": tag => 'nested' }
}

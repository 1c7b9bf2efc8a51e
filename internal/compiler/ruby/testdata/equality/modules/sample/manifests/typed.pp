define sample::typed (Integer[1, 10] $size, Sample::Mode $mode, Type[User] $target, Variant[String, Array] $more = ['a'], Boolean $flag = true) {
  notify { "typed ${name}": message => "${size} ${mode} ${target} ${more} ${flag}" }
}

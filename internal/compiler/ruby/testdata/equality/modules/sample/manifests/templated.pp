# The same template in different scopes.
define sample::templated (String $value) {
  $local = "${value} in ${title}"
  file { "/etc/${title}.conf": content => template('sample/scoped.erb') }
}

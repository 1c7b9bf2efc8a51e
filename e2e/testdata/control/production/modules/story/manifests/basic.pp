# A few files: content, template, source, and a notify that never settles is left out on purpose.
class story::basic (String $greeting) {
  $dir = $facts['scratch']
  file { "${dir}/basic":
    ensure => directory,
  }
  file { "${dir}/basic/content.txt":
    content => "${greeting}\n",
  }
  file { "${dir}/basic/template.txt":
    content => epp('story/basic.epp', { 'name' => $trusted['certname'] }),
  }
  file { "${dir}/basic/source.txt":
    source => 'puppet:///modules/story/a.txt',
  }
}

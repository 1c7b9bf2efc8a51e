# The same tree with each setting that changes what recursion does.
class story::recursion {
  $dir = $facts['scratch']
  File {
    ensure  => directory,
    source  => 'puppet:///modules/story/tree',
    recurse => true,
  }
  file { "${dir}/plain": }
  file { "${dir}/ignored":
    ignore => ['*.bak', 'link.txt'],
  }
  file { "${dir}/links":
    links => manage,
  }
  file { "${dir}/followed":
    links => follow,
  }
  file { "${dir}/md5":
    checksum => md5,
  }
  file { "${dir}/mtime":
    checksum => mtime,
  }
  file { "${dir}/shallow":
    recurselimit => 1,
  }
  file { "${dir}/remote":
    recurse => remote,
  }
  file { "${dir}/purged":
    purge => true,
  }
}

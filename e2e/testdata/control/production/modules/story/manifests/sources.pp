# Lists of sources: the first that exists, all of a tree, the first of a tree.
class story::sources {
  $dir = $facts['scratch']
  file { "${dir}/first.txt":
    source => ['puppet:///modules/story/missing.txt', 'puppet:///modules/story/b.txt', 'puppet:///modules/story/a.txt'],
  }
  file { "${dir}/all":
    ensure       => directory,
    recurse      => true,
    sourceselect => all,
    source       => ['puppet:///modules/story/other', 'puppet:///modules/story/tree'],
  }
  file { "${dir}/one":
    ensure       => directory,
    recurse      => true,
    sourceselect => first,
    source       => ['puppet:///modules/story/nowhere', 'puppet:///modules/story/other', 'puppet:///modules/story/tree'],
  }
}

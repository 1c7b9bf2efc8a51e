# A source that is not there: the resource fails, its neighbours do not.
class story::missing {
  $dir = $facts['scratch']
  file { "${dir}/nowhere.txt":
    source => 'puppet:///modules/story/nowhere.txt',
  }
  file { "${dir}/neighbour.txt":
    content => "still here\n",
  }
}

# A compile that takes longer than an agent is kept on the line.
class story::slow {
  file { "${facts['scratch']}/slow.txt":
    content => "${story::dawdle(8)}\n",
  }
}

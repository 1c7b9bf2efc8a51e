define site::related {
  notify { "related ${title}": }
}

class site::target {
  notify { 'target': }
}

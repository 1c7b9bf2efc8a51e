class sample::early {
  notify { 'in early': }
}

class sample::contained {
  notify { 'in contained': }
}

class sample::required {
  notify { 'in required': }
}

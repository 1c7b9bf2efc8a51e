class site::collects {
  tag 'of_class'
  Notify <<| |>>
  File <<| |>>
}

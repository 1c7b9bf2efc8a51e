# Given by the classifier.
class sample (String $greeting = 'none', Hash $merged = {}) {
  notify { "greeting ${greeting}": message => $merged }
}

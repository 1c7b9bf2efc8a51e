package code

// Fnmatch is the matcher of ignore patterns.
var Fnmatch = fnmatch

package code

import "time"

// Fnmatch is the matcher of ignore patterns.
var Fnmatch = fnmatch

// Trees is how many trees are kept.
func (l *Library) Trees() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.trees)
}

// NewTestTree makes a tree that needs no blobs.
func NewTestTree(m Manifest) *Tree {
	return newTree("", "production", time.Time{}, m, newChecksums(nil))
}

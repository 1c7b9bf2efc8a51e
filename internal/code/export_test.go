package code

import (
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

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

// TreeOf makes a tree of a manifest, under its own name.
func TreeOf(env fleet.Environment, m Manifest) (*Tree, error) {
	canonical, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return newTree(fleet.DigestOf(canonical), env, time.Time{}, m, newChecksums(nil)), nil
}

// ReadPuppetfile is readPuppetfile, of which only the end is of interest.
func ReadPuppetfile(text string) { readPuppetfile(text) }

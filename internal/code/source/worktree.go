package source

import (
	"os"
	"path/filepath"
)

// tree is a directory for a work tree: the one that an earlier deploy of the source left, in which only what differs has to be written, or an
// empty one. Whoever has it is the only one.
func (s *Service) tree(source string) (dir string, err error) {
	s.mu.Lock()
	dir = s.trees[source]
	delete(s.trees, source)
	s.mu.Unlock()
	if dir != "" {
		return dir, nil
	}
	return os.MkdirTemp(s.Dir, "tree-")
}

// keep leaves a work tree to the next deploy of its source; false: it has to go. A tree that somebody else than git wrote to is not kept, and of
// each source one is.
func (s *Service) keep(from Source, dir string) bool {
	if from.Submodules {
		return false
	}
	if _, err := os.Lstat(filepath.Join(dir, "Puppetfile")); !from.NoModules && !os.IsNotExist(err) {
		return false // its modules were put there
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sources[from.Name] == nil || s.trees[from.Name] != "" {
		return false
	}
	s.trees[from.Name] = dir
	return true
}

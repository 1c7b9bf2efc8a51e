package code

// ModuleFile is a file of a module's directory.
type ModuleFile struct {
	Path string // below the directory
	File File   // regular; a link is the file that it leads to
}

// ModuleFiles lists the regular files below a directory of a module, by path; nil
// if there is no such module or directory. Links to files are followed, links to
// directories are not, as when Puppet globs for them.
func (t *Tree) ModuleFiles(module, dir string) []ModuleFile {
	base := t.byName[module]
	if base == nil {
		return nil
	}
	top := t.resolve(base, dir)
	if top == nil || !top.isDir() {
		return nil
	}
	var list []ModuleFile
	var walk func(dir *node, prefix string)
	walk = func(dir *node, prefix string) {
		for _, child := range dir.children {
			name := prefix + child.name
			if child.isDir() {
				walk(child, name+"/")
			} else if target := t.follow(child); target != nil && !target.isDir() {
				list = append(list, ModuleFile{name, target.file})
			}
		}
	}
	walk(top, "")
	return list
}

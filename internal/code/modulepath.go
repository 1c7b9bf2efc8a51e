package code

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// defaultModulePath is what an environment without a modulepath setting has.
const defaultModulePath = "modules:$basemodulepath"

// maxConfBytes bounds environment.conf.
const maxConfBytes = 1 << 20

// moduleDir is an entry of a module path: inside the environment (rel) or a
// directory elsewhere (abs).
type moduleDir struct{ rel, abs string }

var (
	confLine     = regexp.MustCompile(`^\s*(\w+)\s*=\s*(.*?)\s*$`)
	confSection  = regexp.MustCompile(`^\s*\[(\w+)\]\s*$`)
	confVariable = regexp.MustCompile(`\$(?:(\w+)|\{(\w+)\})`)
)

// confSetting reads a setting of an environment.conf; fallback when it says
// nothing. Later settings win, other sections than main are ignored, as Puppet
// does.
func confSetting(conf []byte, name, fallback string) string {
	value, section := fallback, "main"
	lines := bufio.NewScanner(bytes.NewReader(conf))
	lines.Buffer(nil, maxConfBytes)
	for lines.Scan() {
		line := lines.Text()
		if m := confSection.FindStringSubmatch(line); m != nil {
			section = m[1]
			continue
		}
		if m := confLine.FindStringSubmatch(line); m != nil && section == "main" && m[1] == name {
			value = m[2]
		}
	}
	return value
}

// readConf reads an environment.conf; enclosed: not through a link.
func readConf(root string, enclosed bool) ([]byte, error) {
	name := filepath.Join(root, "environment.conf")
	stat := os.Stat
	if enclosed {
		stat = os.Lstat
	}
	info, err := stat(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(name, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfBytes {
		return nil, fault.New(fault.Invalid, "%s is not a file of at most %d bytes", name, maxConfBytes)
	}
	conf, err := os.ReadFile(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	return conf, nil
}

// moduleDirs works out the module path of the environment at root (absolute,
// links resolved).
func moduleDirs(root string, opt BuildOptions) ([]moduleDir, error) {
	conf, err := readConf(root, opt.Enclosed)
	if err != nil {
		return nil, err
	}
	var dirs []moduleDir
	for _, entry := range filepath.SplitList(confSetting(conf, "modulepath", defaultModulePath)) {
		expanded, err := expandEntry(entry, opt)
		if err != nil {
			return nil, err
		}
		for _, p := range expanded {
			found, err := locate(root, p)
			if err != nil {
				return nil, err
			}
			for _, dir := range found {
				if dir.abs != "" && opt.Enclosed && !slices.Contains(opt.BaseModulePath, p) {
					return nil, fault.New(fault.Invalid,
						"environment.conf: the modulepath entry %q leads out of the repository: put the modules into it, or name them in a Puppetfile", entry)
				}
				if !slices.Contains(dirs, dir) {
					dirs = append(dirs, dir)
				}
			}
		}
	}
	return dirs, nil
}

// expandEntry replaces variables. $basemodulepath stands for several entries.
func expandEntry(entry string, opt BuildOptions) ([]string, error) {
	if entry == "$basemodulepath" || entry == "${basemodulepath}" {
		return opt.BaseModulePath, nil
	}
	var unknown string
	expanded := confVariable.ReplaceAllStringFunc(entry, func(v string) string {
		name := strings.Trim(v, "${}")
		value, ok := opt.Variables[name]
		if !ok {
			unknown = v
		}
		return value
	})
	if unknown != "" {
		return nil, fault.New(fault.Invalid,
			"environment.conf: the modulepath entry %q uses %s, which is not known here; name the directory itself", entry, unknown)
	}
	if expanded == "" {
		return nil, nil
	}
	return []string{expanded}, nil
}

// locate finds the directories that an entry names. An entry inside the
// environment need not exist; one outside counts only if it does.
func locate(root, entry string) ([]moduleDir, error) {
	abs := entry
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(root, entry)
	}
	paths := []string{filepath.Clean(abs)}
	if strings.ContainsAny(entry, "*?[") {
		var err error
		if paths, err = filepath.Glob(abs); err != nil {
			return nil, fault.New(fault.Invalid, "environment.conf: the modulepath entry %q is not a valid pattern", entry)
		}
	}
	var dirs []moduleDir
	for _, p := range paths {
		if p == root {
			return nil, fault.New(fault.Invalid, "environment.conf: the modulepath entry %q is the environment itself", entry)
		}
		if rel, ok := strings.CutPrefix(p, root+string(filepath.Separator)); ok {
			dirs = append(dirs, moduleDir{rel: filepath.ToSlash(rel)})
			continue
		}
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			dirs = append(dirs, moduleDir{abs: p})
		}
	}
	return dirs, nil
}

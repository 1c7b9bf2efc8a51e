package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/puppetenv"
)

// settingsFile is where Puppet's settings are kept.
func (d *daemon) settingsFile() string { return filepath.Join(d.Data, "puppet-settings.json") }

// asker reads what Puppet said of its settings.
func (d *daemon) asker() puppetenv.Asker {
	path, _ := findPuppet(d.Puppet) // without it there is nothing that it said
	return puppetenv.Asker{Puppet: path, Kept: d.settingsFile()}
}

// maxClasses bounds the file of classes, in bytes.
const maxClasses = 1 << 20

// classes are those of the last catalog that Puppet applied; none if it applied none. A file that is too large is an error: half of the classes
// would be a lie to whoever decides by them.
func (d *daemon) classes() ([]string, error) {
	for _, path := range d.classFiles() {
		text, err := puppetenv.ReadBounded(path, maxClasses)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, builtin.Abort("Puppet's list of classes cannot be read: %v", err)
		}
		return slices.Compact(slices.Sorted(strings.FieldsSeq(string(text)))), nil
	}
	return nil, nil
}

// knownClasses are the classes of the node's last catalog; nil: they are not known.
func (d *daemon) knownClasses() []string {
	classes, err := d.classes()
	if err != nil {
		return nil
	}
	return classes
}

// classFiles are where Puppet may keep its classes: where it said when it ran last, or where its packages put it.
func (d *daemon) classFiles() []string {
	if settings, known := d.asker().Last(); known && settings["classfile"] != "" {
		return []string{settings["classfile"]}
	}
	if runtime.GOOS == "windows" {
		return []string{filepath.Join(os.Getenv("ProgramData"), "PuppetLabs", "puppet", "cache", "state", "classes.txt")}
	}
	return []string{"/opt/puppetlabs/puppet/cache/state/classes.txt", "/var/cache/puppet/state/classes.txt", "/var/lib/puppet/state/classes.txt"}
}

package ruby

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/cell"
)

// Grants are what the code of an environment may reach beyond its own version.
type Grants struct {
	Read      []string // files, and directories with all below them
	Gems      []string // directories of gems, as in GEM_PATH
	Variables []string // NAME=VALUE
	Ports     []int    // TCP ports that may be connected to
}

// puppetPaths are those of the puppet-agent packages of Puppet and OpenVox, and of Facter.
var (
	puppetRun  = []string{"/opt/puppetlabs/puppet/bin", "/opt/puppetlabs/puppet/lib", "/opt/puppetlabs/bin"}
	puppetRead = []string{
		"/opt/puppetlabs/puppet/share", "/opt/puppetlabs/puppet/ssl", "/opt/puppetlabs/puppet/vendor_modules", "/opt/puppetlabs/facter",
		"/etc/facter", "/etc/puppetlabs/facter", "/var/lib/gems",
	}
)

// grants are those of an environment.
func (c Config) grants(env fleet.Environment) Grants {
	if c.Grants == nil {
		return c.gems(Grants{})
	}
	return c.gems(c.Grants(env))
}

// spec is the cell of a process that runs an environment's code with an engine: it may read paths, and write to private.
func (c Config) spec(i *installation, more Grants, private string, paths ...string) cell.Spec {
	s := cell.Spec{
		Run: slices.Concat(puppetRun, i.places, []string{home(i.interpreter)}), Read: slices.Concat(puppetRead, more.Read, more.Gems, paths),
		Write: private, Hide: append(slices.Clone(c.Hide), c.Dir), Ports: more.Ports,
	}
	if c.Settings.HieraConfig != "" {
		s.Read = append(s.Read, c.Settings.HieraConfig)
	}
	return s
}

// home is where an interpreter lies with its libraries: /opt/ruby for /opt/ruby/bin/ruby.
func home(interpreter string) string {
	if target, err := filepath.EvalSymlinks(interpreter); err == nil {
		interpreter = target
	}
	dir := filepath.Dir(interpreter)
	prefix := filepath.Dir(dir)
	if filepath.Base(dir) != "bin" || prefix == "/" || prefix == "/usr" || prefix == "/usr/local" {
		return interpreter // its libraries are the system's
	}
	return prefix
}

// environ is all that Ruby, and what generate() starts, sees of our environment.
func (g Grants) environ(private string) []string {
	env := append(environ(private), g.Variables...)
	if len(g.Gems) > 0 {
		env = append(env, "GEM_PATH="+strings.Join(g.Gems, ":")+":") // Ruby's own follow
	}
	return env
}

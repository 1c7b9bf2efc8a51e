package ruby

import (
	"cmp"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/cell"
)

// Config says how much the pool may use. The zero value of every field but Dir
// is replaced by its default.
type Config struct {
	Name string   // of the engine, for people; default: system
	Ruby string   // the interpreter; default: Puppet's own, else ruby in PATH
	Gems []string // directories of gems in which Puppet lies, or what it needs; default: the interpreter's own
	Dir  string   // a private scratch directory; Run empties it

	Workers           int           // processes that compile at once; default: one a core
	Zygotes           int           // most zygotes kept; default 4
	IdleZygote        time.Duration // an unused zygote ends after this; default 30m
	Timeout           time.Duration // of one compile; default 5m
	WarmTimeout       time.Duration // of learning from samples; default 2m
	MemoryBytes       int64         // most resident memory of a worker; default 1 GiB
	RetireBytes       int64         // a worker that grew by more is replaced after its compile; default 128 MiB
	CompilesPerWorker int           // then it is replaced; default 50
	MaxOrderBytes     int64         // facts and the rest of one order; default 16 MiB
	MaxQuestions      int           // what one compile may ask of the inventory; default 1000
	MaxAnswerBytes    int64         // all answers to one compile together; default 64 MiB
	NoJIT             bool          // leave Ruby's just-in-time compiler off
	MaxCatalogBytes   int64         // a catalog with its exported resources; default 64 MiB
	Settings          Settings      // Puppet's own

	Keeper *cell.Keeper                   // of the cells that code runs in; nil: it runs without
	Hide   []string                       // directories that no code may see
	Grants func(fleet.Environment) Grants // nil: no environment has any
	// Granted names all grants of all environments: a catalog may depend on them.
	Granted string
}

// Settings are those of Puppet that an operator may choose for all environments. Catalogs
// depend on them, so they are part of what Engine names.
type Settings struct {
	Certname        string `json:"certname,omitempty"`         // of the server; default: puppet
	Strict          string `json:"strict,omitempty"`           // off, warning or error; default: Puppet's
	StrictVariables *bool  `json:"strict_variables,omitempty"` // default: Puppet's, which is false in 7 and true in 8
	HieraConfig     string `json:"hiera_config,omitempty"`     // path of the global hiera.yaml; default: none
}

// puppetRuby is the interpreter that the puppet-agent packages of Puppet and
// OpenVox bring along.
const puppetRuby = "/opt/puppetlabs/puppet/bin/ruby"

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, System)
	c.Workers = cmp.Or(c.Workers, runtime.NumCPU())
	c.Zygotes = cmp.Or(c.Zygotes, 4)
	c.IdleZygote = cmp.Or(c.IdleZygote, 30*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	c.WarmTimeout = cmp.Or(c.WarmTimeout, 2*time.Minute)
	c.MemoryBytes = cmp.Or(c.MemoryBytes, 1<<30)
	c.RetireBytes = cmp.Or(c.RetireBytes, 128<<20)
	c.CompilesPerWorker = cmp.Or(c.CompilesPerWorker, 50)
	c.MaxOrderBytes = cmp.Or(c.MaxOrderBytes, 16<<20)
	c.MaxQuestions = cmp.Or(c.MaxQuestions, 1000)
	c.MaxAnswerBytes = cmp.Or(c.MaxAnswerBytes, 64<<20)
	c.MaxCatalogBytes = cmp.Or(c.MaxCatalogBytes, 64<<20)
	return c
}

// interpreter finds Ruby.
func (c Config) interpreter() (string, error) {
	if c.Ruby != "" {
		return c.Ruby, nil
	}
	if found := FindEngines(); len(found) > 0 {
		return found[0].Ruby, nil
	}
	return "", errNone
}

// load are the interpreter's arguments with which it finds Puppet in the directories of gems before one of its own.
func (c Config) load() (args []string) {
	for _, dir := range c.Gems {
		for _, name := range []string{"puppet", "openvox"} {
			found, _ := filepath.Glob(filepath.Join(dir, "gems", name+"-[0-9]*", "lib"))
			for _, lib := range found {
				args = append(args, "-I", lib)
			}
		}
	}
	return args
}

// gems adds the engine's directories of gems to what an environment is granted.
func (c Config) gems(g Grants) Grants {
	g.Gems = append(slices.Clip(g.Gems), c.Gems...)
	return g
}

func (c Config) codeDir() string   { return filepath.Join(c.Dir, "ruby") }
func (c Config) checkDir() string  { return filepath.Join(c.Dir, "checks") }
func (c Config) zygoteDir() string { return filepath.Join(c.Dir, "zygotes") }

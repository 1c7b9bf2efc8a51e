package settings

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/cell"
)

// What is granted holds for all environments, or for the one that an entry names.
func TestGrants(t *testing.T) {
	t.Setenv("TUTTI_TEST_GRANTED", "the server's: own=value")
	c := Default()
	c.CompileRead = []string{"/etc/all", "production:/etc/puppetlabs/puppet/eyaml"}
	c.CompileGems = []string{"production:/opt/gems", "/opt/all"}
	c.CompileVariables = []string{"A=b:c", "production:VAULT_ADDR=https://vault:8200", "testing:TUTTI_TEST_GRANTED"}
	c.CompileNetwork = []string{"53", "production:8200"}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	of, all, err := c.Grants()
	if err != nil || !strings.Contains(all, "eyaml") {
		t.Fatalf("%v, %s", err, all)
	}
	for name, want := range map[string]ruby.Grants{
		"production": {
			Read: []string{"/etc/all", "/etc/puppetlabs/puppet/eyaml"}, Gems: []string{"/opt/gems", "/opt/all"},
			Variables: []string{"A=b:c", "VAULT_ADDR=https://vault:8200"}, Ports: []int{53, 8200},
		},
		"testing": {
			Read: []string{"/etc/all"}, Gems: []string{"/opt/all"}, Variables: []string{"A=b:c", "TUTTI_TEST_GRANTED=the server's: own=value"}, Ports: []int{53},
		},
		"other": {Read: []string{"/etc/all"}, Gems: []string{"/opt/all"}, Variables: []string{"A=b:c"}, Ports: []int{53}},
	} {
		if diff := cmp.Diff(want, of(fleet.Environment(name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Each of the operator's programs reaches what is named for it, and what is named for all.
func TestProgramReaches(t *testing.T) {
	t.Parallel()
	c := Default()
	c.ProgramPaths = []string{"/etc/all", "classifier:/etc/puppetlabs/enc.yaml"}
	c.ProgramNetwork = []string{"trusted:636", "53"}
	reaches, err := c.ProgramReaches()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]cell.Spec{
		"autosign":   {Run: []string{"/etc/all"}, Ports: []int{53}},
		"trusted":    {Run: []string{"/etc/all"}, Ports: []int{636, 53}},
		"classifier": {Run: []string{"/etc/all", "/etc/puppetlabs/enc.yaml"}, Ports: []int{53}},
		"r10k":       {Run: []string{"/etc/all"}, Ports: []int{443, 80, 9418, 53}}, // what it fetches modules by, too
	}, reaches); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Data, c.ProgramPaths = "/var/lib/tutti", []string{"autosign:/var/lib"}
	if err := c.Check(); fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), "data directory") {
		t.Errorf("a program that would see the data directory: %v", err)
	}
}

// Grants that cannot be, or that would open the server's own data, are refused by name.
func TestWrongGrants(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Config){
		"compile_isolation": func(c *Config) { c.CompileIsolation = "some" },
		"compile_read":      func(c *Config) { c.CompileRead = []string{"etc"} },
		"compile_gems":      func(c *Config) { c.CompileGems = []string{"production:/opt/../etc"} },
		"compile_variables": func(c *Config) { c.CompileVariables = []string{"HOME=/root"} },
		"compile_network":   func(c *Config) { c.CompileNetwork = []string{"vault.example.test:8200x"} },
		"program_isolation": func(c *Config) { c.ProgramIsolation = "some" },
		"program_paths":     func(c *Config) { c.ProgramPaths = []string{"signer:/etc/x"} },
		"program_network":   func(c *Config) { c.ProgramNetwork = []string{"trusted:ldap"} },
	} {
		c := Default()
		set(&c)
		if err := c.Check(); fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{"/", "/var/lib", "/var/lib/tutti", "/var/lib/tutti/ca", "production:/var/lib/tutti/"} {
		c := Default()
		c.Data, c.CompileRead = "/var/lib/tutti", []string{path}
		if err := c.Check(); fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), "data directory") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// FuzzGrants reads settings of what code may reach: whatever they say, nothing of the server's own is granted, and what is
// granted can be given to a process.
func FuzzGrants(f *testing.F) {
	for _, entry := range []string{
		"production:/etc/x", "/etc/x", ":/etc/x", "KEY=a:b", "production:KEY=a=b", "HOME=x", "a:8140", "443", "KEY=\x00", "/../x", "/data",
	} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		c := Default()
		c.Data = "/data"
		for _, setting := range []*[]string{&c.CompileRead, &c.CompileGems, &c.CompileVariables, &c.CompileNetwork} {
			*setting = []string{entry}
			of, _, err := c.Grants()
			*setting = nil
			if err != nil {
				continue
			}
			if g := narrowed(entry); !strings.HasSuffix(entry, g.what) || g.what == "" {
				t.Errorf("%q grants %q", entry, g.what)
			}
			env := narrowed(entry).environment
			given, others := of(env), of("another_one")
			for _, path := range slices.Concat(given.Read, given.Gems) {
				if !filepath.IsAbs(path) || contains(path, c.Data) || contains(c.Data, path) || strings.ContainsRune(path, 0) {
					t.Errorf("%q lets code read %q", entry, path)
				}
			}
			for _, variable := range given.Variables {
				name, _, found := strings.Cut(variable, "=")
				if !found || slices.Contains(ownVariables, name) || strings.ContainsRune(variable, 0) {
					t.Errorf("%q gives code the variable %q", entry, variable)
				}
			}
			if n := len(others.Read) + len(others.Gems) + len(others.Variables) + len(others.Ports); env != "" && env != "another_one" && n > 0 {
				t.Errorf("%q is for %s, and others have it: %+v", entry, env, others)
			}
		}
	})
}

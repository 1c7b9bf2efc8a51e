package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
)

// environment is real code, and roles that add a template and a file of their own to it.
type environment struct {
	dir   string
	roles int
}

// siteManifest gives each node what all have and its role.
const siteManifest = `$size = 'small'
include role::small
include "fleet::${facts['role']}"
`

// roleName is what the fact role says.
func roleName(n int) string { return fmt.Sprintf("role%02d", n) }

// make copies the environment and adds the roles.
func (e environment) make(from string) error {
	if err := rivals.CopyTree(from, e.dir); err != nil {
		return fmt.Errorf("copy the environment: %w", err)
	}
	if err := e.write("manifests/site.pp", siteManifest); err != nil {
		return err
	}
	for n := range e.roles {
		if err := e.writeRole(n, 1); err != nil {
			return err
		}
		if err := e.write(fmt.Sprintf("modules/fleet/templates/%s.epp", roleName(n)),
			"<%= $facts['networking']['hostname'] %> in <%= $facts['datacenter'] %>\n"); err != nil {
			return err
		}
	}
	return nil
}

// writeRole writes an edition of one role's class.
func (e environment) writeRole(n, edition int) error {
	name := roleName(n)
	return e.write(fmt.Sprintf("modules/fleet/manifests/%s.pp", name), fmt.Sprintf(`class fleet::%[1]s {
  file { '/etc/fleet-role': content => epp('fleet/%[1]s.epp') }
  file { '/etc/fleet-edition': content => "%[2]d\n" }
}
`, name, edition))
}

// writeReadme changes what no node reads.
func (e environment) writeReadme() error {
	return e.write("README.md", "Another text, of "+time.Now().Format(time.RFC3339Nano)+".\n")
}

func (e environment) write(path, text string) error {
	path = filepath.Join(e.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the server reads it
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // as above
}

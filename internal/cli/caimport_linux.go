package cli

import (
	"context"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server"
)

type caImportInput struct{ path string }

var caImport = verb[caImportInput]{
	use: "import DIR", short: "Take over an existing Puppet CA's directory (the server must not run)",
	long: `Take over the key, certificates, revocation list, requests and serial numbers of an existing Puppet CA, so that nodes keep
their certificates. DIR is the CA's directory, for example /etc/puppetlabs/puppetserver/ca. It is only read. The server of
--data must not run, and its own CA must not have issued anything. A server that has a configuration file or TUTTI_*
variables needs the same here: they say where its records are.`,
	example: "  tutti ca import /etc/puppetlabs/puppetserver/ca --data /var/lib/tutti",
	flags: func(f flagSet, in *caImportInput) {
		f.StringVar(&in.path, "config", "", "the server's configuration file (TUTTI_CONFIG)")
	},
	run: func(ctx context.Context, c *call, in *caImportInput) error {
		config, err := loadConfig(c.app, first(in.path, c.system.Getenv("TUTTI_CONFIG")), c.cmd.Flags())
		if err != nil {
			return err
		}
		imported, err := server.ImportCA(ctx, config, c.args[0], c.system.Err)
		if err != nil {
			return err
		}
		for _, skipped := range imported.Skipped {
			c.hint("left out: %s", skipped)
		}
		return c.printer().Linef("imported %s (%d revoked) and %s", fault.Count(imported.Certificates, "certificate"), imported.Revoked,
			fault.Count(imported.Requests, "request"))
	},
}

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/server"
)

func (a *app) caImport() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "import DIR", Short: "Take over an existing Puppet CA's directory (the server must not run)", Args: exactly(1),
		Long: `Take over the key, certificates, revocation list, requests and serial numbers of an existing Puppet CA, so that nodes keep
their certificates. DIR is the CA's directory, for example /etc/puppetlabs/puppetserver/ca. It is only read. The server of
--data must not run, and its own CA must not have issued anything. A server that has a configuration file or TUTTI_*
variables needs the same here: they say where its records are.`,
		Example: "  tutti ca import /etc/puppetlabs/puppetserver/ca --data /var/lib/tutti",
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := loadConfig(a, first(path, a.system.Getenv("TUTTI_CONFIG")), cmd.Flags())
			if err != nil {
				return err
			}
			imported, err := server.ImportCA(cmd.Context(), config, args[0], a.system.Err)
			if err != nil {
				return err
			}
			for _, skipped := range imported.Skipped {
				a.hint("left out: %s", skipped)
			}
			_, err = fmt.Fprintf(a.system.Out, "imported %d certificates (%d revoked) and %d requests\n", imported.Certificates, imported.Revoked, imported.Requests)
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the server's configuration file (TUTTI_CONFIG)")
	return cmd
}

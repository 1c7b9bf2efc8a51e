package cli

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/server"
)

func (a *app) serverCommand() *cobra.Command {
	var path string
	var checkOnly bool
	cmd := &cobra.Command{
		Use: "server", Short: "Run the server", Args: exactly(0),
		Long: `Run the server. The first start makes the data directory with a certificate authority, a database and an
administrator's token, and prints what to do next.

Every setting has one name in three places: a key in the configuration file (ca_key_type), an environment
variable (TUTTI_CA_KEY_TYPE) and a flag (--ca-key-type). The flag wins, then the variable, then the file.

SIGTERM ends open requests and stops; SIGHUP reads the configuration again and applies what can change while
running (autosign, names in the certificate, retention, log level).`,
		Example: `  tutti server --data /var/lib/tutti --dns-alt-names puppet
  tutti server --config /etc/tutti/server.yaml --check-config`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			load := func() (server.Config, error) {
				return loadConfig(a, first(path, a.system.Getenv("TUTTI_CONFIG")), cmd.Flags())
			}
			config, err := load()
			if err != nil {
				return err
			}
			if checkOnly {
				if _, err := fmt.Fprintf(a.system.Out, "The configuration is good. Data in %s, listening on %s.\n", config.Data, config.Listen); err != nil {
					return err
				}
				return server.TellCells(cmd.Context(), config, a.system.Out)
			}
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			return server.Run(cmd.Context(), config, server.Options{Load: load, Hangup: hangup, Out: a.system.Out, Err: a.system.Err})
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "configuration file, YAML (TUTTI_CONFIG)")
	cmd.Flags().BoolVar(&checkOnly, "check-config", false, "check the configuration and exit")
	serverSettings().flags(cmd.Flags())
	cmd.AddCommand(a.serverUsage())
	return cmd
}

package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tutti-project/tutti/internal/server"
)

type serverCommandInput struct {
	path      string
	checkOnly bool
}

var serverCommand = verb[serverCommandInput]{
	use: "server", short: "Run the server",
	prints: silent,
	long: `Run the server. The first start makes the data directory with a certificate authority, a database and an
administrator's token, and prints what to do next.

Every setting has one name in three places: a key in the configuration file (ca_key_type), an environment
variable (TUTTI_CA_KEY_TYPE) and a flag (--ca-key-type). The flag wins, then the variable, then the file. One variable is also that of the
commands that ask a server, TUTTI_DATA: a file that --config names wins over it. Where two differ, the server says which one it uses.

SIGTERM ends open requests and stops; SIGHUP reads the configuration again and applies what can change while
running (autosign, names in the certificate, retention, log level).`,
	example: `  tutti server --data /var/lib/tutti --dns-alt-names puppet
  tutti server --config /etc/tutti/server.yaml --check-config`,
	flags: func(f flagSet, in *serverCommandInput) {
		f.StringVar(&in.path, "config", "", "configuration file, YAML (TUTTI_CONFIG)")
		f.BoolVar(&in.checkOnly, "check-config", false, "check the configuration and exit")
		serverSettings().flags(f.FlagSet)
	},
	below: []declared{serverUsage},
	run: func(ctx context.Context, c *call, in *serverCommandInput) error {
		load := func() (server.Config, error) {
			return loadConfig(c.app, first(in.path, c.system.Getenv("TUTTI_CONFIG")), c.cmd.Flags())
		}
		config, err := load()
		if err != nil {
			return err
		}
		if in.checkOnly {
			if _, err := fmt.Fprintf(c.system.Out, "The configuration is good. Data in %s, listening on %s.\n", config.Data, config.Listen); err != nil {
				return err
			}
			return server.TellCells(ctx, config, c.system.Out)
		}
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
		return server.Run(ctx, config, server.Options{Load: load, Hangup: hangup, Out: c.system.Out, Err: c.system.Err})
	},
}

package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault/checkup"
	"github.com/tutti-project/tutti/internal/server"
	"github.com/tutti-project/tutti/internal/server/preflight"
	"github.com/tutti-project/tutti/internal/server/settings"
)

type serverCommandInput struct {
	path      string
	checkOnly bool
}

var serverCommand = verb[serverCommandInput]{
	use: "server", short: "Run the server",
	prints: aThing, // of --check-config
	long: `Run the server. The first start makes the data directory with a certificate authority, a database and an
administrator's token, and prints what to do next.

Every setting has one name in three places: a key in the configuration file (ca_key_type), an environment
variable (TUTTI_CA_KEY_TYPE) and a flag (--ca-key-type). The flag wins, then the variable, then the file. One variable is also that of the
commands that ask a server, TUTTI_DATA: a file that --config names wins over it. Where two differ, the server says which one it uses.

--check-config looks for all that a start needs and says how to mend what is missing: the settings, Puppet and its Ruby, the data directory
and its room, ports, names, the clock, cells for code. Exit codes: 0 all is well, or warnings only; 1 something is broken. A start makes
the checks that cost nothing and says all that is broken at once.

SIGTERM ends open requests and stops; SIGHUP reads the configuration again and applies what can change while
running (autosign, names in the certificate, retention, log level).`,
	example: `  tutti server --data /var/lib/tutti --dns-alt-names puppet
  tutti server --config /etc/tutti/server.yaml --check-config`,
	flags: func(f flagSet, in *serverCommandInput) {
		f.StringVar(&in.path, "config", "", "configuration file, YAML (TUTTI_CONFIG)")
		f.BoolVar(&in.checkOnly, "check-config", false, "check the configuration and this machine, say what is missing, and exit")
		serverSettings().flags(f.FlagSet)
	},
	below: []declared{serverUsage},
	run: func(ctx context.Context, c *call, in *serverCommandInput) error {
		load := func() (settings.Config, error) {
			return loadConfig(c.app, first(in.path, c.system.Getenv("TUTTI_CONFIG")), c.cmd.Flags())
		}
		config, err := load()
		if in.checkOnly {
			return c.checkServer(ctx, config, err)
		}
		if err != nil {
			return err
		}
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
		return server.Run(ctx, config, server.Options{Load: load, Hangup: hangup, Out: c.system.Out, Err: c.system.Err})
	},
}

// checkServer says what would keep a server from its start. wrong is what is wrong with its settings: then nothing else is looked at.
func (c *call) checkServer(ctx context.Context, config settings.Config, wrong error) error {
	if wrong != nil {
		if c.printer().ForPrograms() {
			return errors.Join(print.One(c.printer(), examined{[]checkup.Finding{checkup.Failed("settings", wrong, "")}}, print.Words(findingsText)), wrong)
		}
		return wrong
	}
	findings := preflight.Check(ctx, config)
	if err := print.One(c.printer(), examined{findings}, print.Words(findingsText)); err != nil {
		return err
	}
	return verdict(findings)
}

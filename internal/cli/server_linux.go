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
	path         string
	checkOnly    bool
	checkUpgrade bool
}

var serverCommand = verb[serverCommandInput]{
	use: "server", short: "Run the server",
	prints: aThing, // of --check-config and --check-upgrade
	long: `Run the server. The first start makes the data directory with a certificate authority, a database and an
administrator's token, and prints what to do next.

Every setting has one name in three places: a key in the configuration file (ca_key_type), an environment
variable (TUTTI_CA_KEY_TYPE) and a flag (--ca-key-type). The flag wins, then the variable, then the file. One variable is also that of the
commands that ask a server, TUTTI_DATA: a file that --config names wins over it. Where two differ, the server says which one it uses.

--check-config looks for all that a start needs and says how to mend what is missing: the settings, Puppet and its Ruby, the data directory
and its room, ports, names, the clock, cells for code. Exit codes: 0 all is well, or warnings only; 1 something is broken. A start makes
the checks that cost nothing and says all that is broken at once.

--check-upgrade says what a start of this version would do to the records: which migrations there are, of which kind (expand, migrate, contract), and
whether servers of the version before may go on running. It changes nothing, and may be asked beside servers that run. Exit codes are the same.

SIGTERM ends open requests and stops; SIGHUP reads the configuration again and applies what can change while
running (autosign, names in the certificate, retention, log level).`,
	example: `  tutti server --data /var/lib/tutti --dns-alt-names puppet
  tutti server --config /etc/tutti/server.yaml --check-config
  tutti server --config /etc/tutti/server.yaml --check-upgrade`,
	flags: func(f flagSet, in *serverCommandInput) {
		f.StringVar(&in.path, "config", "", "configuration file, YAML (TUTTI_CONFIG)")
		f.BoolVar(&in.checkOnly, "check-config", false, "check the configuration and this machine, say what is missing, and exit")
		f.BoolVar(&in.checkUpgrade, "check-upgrade", false, "say what a start of this version would do to the records, and exit")
		f.cmd.MarkFlagsMutuallyExclusive("check-config", "check-upgrade")
		serverSettings().flags(f.FlagSet)
	},
	below: []declared{serverUsage},
	run: func(ctx context.Context, c *call, in *serverCommandInput) error {
		load := func() (settings.Config, error) {
			return loadConfig(c.app, first(in.path, c.system.Getenv("TUTTI_CONFIG")), c.cmd.Flags())
		}
		config, err := load()
		switch {
		case in.checkOnly:
			look := func(ctx context.Context, config settings.Config) []checkup.Finding {
				var unread []checkup.Finding
				if first(in.path, c.system.Getenv("TUTTI_CONFIG")) == "" {
					unread = notRead(serviceConfig)
				}
				return append(unread, preflight.Check(ctx, config)...)
			}
			return c.checkServer(ctx, look, config, err)
		case in.checkUpgrade:
			return c.checkServer(ctx, preflight.Upgrade, config, err)
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

// serviceConfig is what the service of packaging/systemd names with --config.
const serviceConfig = "/etc/tutti/server.yaml"

// notRead warns of a file of settings that is there and that this command was not told of: the answer would be about another server than
// the one that the service starts.
func notRead(path string) []checkup.Finding {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return nil
	}
	return []checkup.Finding{{
		Check: "configuration", State: checkup.Warning, Found: path + " was not read, and the service is started with it",
		Mend: "tutti server --check-config --config " + path,
	}}
}

// checkServer says what look finds, such as what would keep a server from its start. wrong is what is wrong with its settings: then nothing else is looked at.
func (c *call) checkServer(ctx context.Context, look func(context.Context, settings.Config) []checkup.Finding, config settings.Config, wrong error) error {
	if wrong != nil {
		if c.printer().ForPrograms() {
			return errors.Join(print.One(c.printer(), examined{[]checkup.Finding{checkup.Failed("settings", wrong, "")}}, print.Words(findingsText)), wrong)
		}
		return wrong
	}
	findings := look(ctx, config)
	if err := print.One(c.printer(), examined{findings}, print.Words(findingsText)); err != nil {
		return err
	}
	return verdict(findings)
}

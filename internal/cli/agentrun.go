package cli

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/fault"
)

type agentRunInput struct {
	path      string
	checkOnly bool
}

var agentRun = verb[agentRunInput]{
	use: "run", short: "Run the agent of this node",
	prints: silent,
	long: `Run the agent: it stays connected to a server and does what it is told: Puppet runs, commands, scripts, tasks, files.

Every setting has one name in three places: a key in agent.yaml (max_concurrent), an environment variable
(TUTTI_AGENT_MAX_CONCURRENT) and a flag (--max-concurrent). The flag wins, then the variable, then the file. A pxp-agent.conf
can be used as it is (--config): its names for settings are understood, and those that mean nothing here are passed over.

SIGTERM ends the agent. Programs that it started go on, and the next one delivers what comes of them.`,
	example: `  tutti agent run
  tutti agent run --dir ~/agent --log-level debug
  tutti agent run --config /etc/puppetlabs/pxp-agent/pxp-agent.conf --data /var/lib/tutti-agent`,
	flags: func(f flagSet, in *agentRunInput) {
		f.StringVar(&in.path, "config", "", "settings file, YAML or JSON, instead of agent.yaml in the directory (TUTTI_AGENT_CONFIG)")
		f.BoolVar(&in.checkOnly, "check-config", false, "check the settings and exit")
		agentSettings().flags(f.FlagSet)
	},
	run: func(ctx context.Context, c *call, in *agentRunInput) error {
		config, err := agentConfig(c.app, in.path, c.cmd.Flags())
		if err != nil {
			return err
		}
		if in.checkOnly {
			return c.printer().Linef("The settings are good. Certificate in %s, data in %s.", config.CertificateFile, config.Data)
		}
		binary, err := os.Executable()
		if err != nil {
			return err
		}
		return agent.Run(ctx, config, agent.Options{Version: api.ProgramVersion(), Binary: binary, Err: c.system.Err})
	},
}

type agentInstallInput struct {
	show bool
	path string
}

var agentInstall = verb[agentInstallInput]{
	use: "install", short: "Install the agent as a service of systemd",
	prints: silent,
	long: `Write the unit of a service that runs this program as the agent. Programs that were ordered go on while the service is
restarted (KillMode=process). For launchd and Windows see docs/agent.md.`,
	example: "  tutti agent install && systemctl enable --now tutti-agent\n  tutti agent install --print",
	flags: func(f flagSet, in *agentInstallInput) {
		f.BoolVar(&in.show, "print", false, "print the unit and write nothing")
		f.StringVar(&in.path, "unit", agent.UnitFile, "file to write")
		addDirFlag(f)
	},
	run: func(_ context.Context, c *call, in *agentInstallInput) error {
		binary, err := os.Executable()
		if err != nil {
			return err
		}
		dir := agentDir(c.app, c.cmd.Flags())
		if in.show {
			return c.printer().Text(agent.Unit(binary, dir))
		}
		if runtime.GOOS != "linux" {
			return fault.New(fault.Invalid, "this system has no systemd; docs/agent.md says how the agent becomes a service of launchd or Windows")
		}
		if err := agent.Install(in.path, binary, dir); err != nil {
			return err
		}
		c.printer().Line("wrote " + in.path)
		if !isFile(filepath.Join(dir, agent.ConfigFile)) {
			c.hint("%s has no settings yet: before the agent starts, have it join with `%s`", dir, withDir("tutti agent join https://HOST:8140", dir))
		}
		c.hint("Start it with: systemctl daemon-reload && systemctl enable --now tutti-agent")
		return nil
	},
}

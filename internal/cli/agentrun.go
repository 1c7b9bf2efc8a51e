package cli

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) agentRun() *cobra.Command {
	var path string
	var checkOnly bool
	cmd := &cobra.Command{
		Use: "run", Short: "Run the agent of this node", Args: exactly(0),
		Long: `Run the agent: it stays connected to a server and does what it is told: Puppet runs, commands, scripts, tasks, files.

Every setting has one name in three places: a key in agent.yaml (max_concurrent), an environment variable
(TUTTI_AGENT_MAX_CONCURRENT) and a flag (--max-concurrent). The flag wins, then the variable, then the file. A pxp-agent.conf
can be used as it is (--config): its names for settings are understood, and those that mean nothing here are passed over.

SIGTERM ends the agent. Programs that it started go on, and the next one delivers what comes of them.`,
		Example: `  tutti agent run
  tutti agent run --dir ~/agent --log-level debug
  tutti agent run --config /etc/puppetlabs/pxp-agent/pxp-agent.conf --data /var/lib/tutti-agent`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := agentConfig(a, path, cmd.Flags())
			if err != nil {
				return err
			}
			if checkOnly {
				_, err := fmt.Fprintf(a.system.Out, "The settings are good. Certificate in %s, data in %s.\n", config.CertificateFile, config.Data)
				return err
			}
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			return agent.Run(cmd.Context(), config, agent.Options{Version: api.ProgramVersion(), Binary: binary, Err: a.system.Err})
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "settings file, YAML or JSON, instead of agent.yaml in the directory (TUTTI_AGENT_CONFIG)")
	cmd.Flags().BoolVar(&checkOnly, "check-config", false, "check the settings and exit")
	agentSettings().flags(cmd.Flags())
	return cmd
}

func (a *app) agentInstall() *cobra.Command {
	var show bool
	var path string
	cmd := &cobra.Command{
		Use: "install", Short: "Install the agent as a service of systemd", Args: exactly(0),
		Long: `Write the unit of a service that runs this program as the agent. Programs that were ordered go on while the service is
restarted (KillMode=process). For launchd and Windows see docs/agent.md.`,
		Example: "  tutti agent install && systemctl enable --now tutti-agent\n  tutti agent install --print",
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			dir := agentDir(a, cmd.Flags())
			if show {
				_, err := fmt.Fprint(a.system.Out, agent.Unit(binary, dir))
				return err
			}
			if runtime.GOOS != "linux" {
				return fault.New(fault.Invalid, "this system has no systemd; docs/agent.md says how the agent becomes a service of launchd or Windows")
			}
			if err := agent.Install(path, binary, dir); err != nil {
				return err
			}
			a.say("wrote " + path)
			a.hint("Start it with: systemctl daemon-reload && systemctl enable --now tutti-agent")
			return nil
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the unit and write nothing")
	cmd.Flags().StringVar(&path, "unit", agent.UnitFile, "file to write")
	addDirFlag(a, cmd)
	return cmd
}

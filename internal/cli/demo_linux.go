package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/sim/demo"
)

func (a *app) demoCommand() *cobra.Command {
	config := demo.Config{}
	cmd := &cobra.Command{
		Use: "demo", Short: "Show a server, two real nodes and a simulated fleet at work, in a scratch directory", Args: exactly(0),
		Long: `Start a server in a scratch directory, deploy a sample control repository, let two real puppet agents apply it
below that directory, and show what the server knows of them. Then a tutti agent starts beside each of the two, simulated
nodes join, and Puppet runs, a task and commands are ordered from the server. A commit reaches the nodes that it touches. In the end a
change of a template is previewed and released in waves; another one is stopped by its failures and taken back. With less than a hundred
simulated nodes the first one is taken back instead. Everything is removed at the end.

It needs Debian's packages puppet-agent, git and puppet-module-puppetlabs-{concat,inifile,stdlib}.`,
		Example: "  tutti demo\n  tutti demo --keep --nodes 2000      # stays up until Ctrl-C",
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			config.Binary, config.Out, config.Env = binary, a.system.Out, a.system.Env
			return demo.Run(cmd.Context(), config)
		},
	}
	cmd.Flags().BoolVar(&config.Keep, "keep", false, "stay up until Ctrl-C")
	cmd.Flags().IntVar(&config.Nodes, "nodes", 200, "simulated nodes that join; each has a certificate and a connection of its own")
	cmd.Flags().StringVar(&config.Dir, "dir", "", "directory to work in, kept at the end; empty: a new one that is removed")
	cmd.Flags().StringVar(&config.Listen, "listen", "127.0.0.1:0", "address of the server")
	return cmd
}

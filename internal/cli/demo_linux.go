package cli

import (
	"context"
	"os"

	"github.com/tutti-project/tutti/internal/sim/demo"
)

type demoCommandInput struct{ config demo.Config }

var demoCommand = verb[demoCommandInput]{
	use: "demo", short: "Show a server, two real nodes and a simulated fleet at work, in a scratch directory",
	prints: silent,
	long: `Start a server in a scratch directory, deploy a sample control repository, let two real puppet agents apply it
below that directory, and show what the server knows of them. Then a tutti agent starts beside each of the two, simulated
nodes join, Puppet runs, a task and commands are ordered from the server, and actions ask nodes how they are. A commit reaches the
nodes that it touches. In the end a change of a template is previewed and released in waves; another one is stopped by its failures
and taken back. With less than a hundred simulated nodes the first one is taken back instead. A link that it prints opens the
console in a browser, once and within a minute; tutti console open prints another. Everything is removed at the end.

It needs Debian's packages puppet-agent, git and puppet-module-puppetlabs-{concat,inifile,stdlib}.`,
	example: "  tutti demo\n  tutti demo --keep --nodes 2000      # stays up until Ctrl-C",
	flags: func(f flagSet, in *demoCommandInput) {
		f.BoolVar(&in.config.Keep, "keep", false, "stay up until Ctrl-C")
		f.IntVar(&in.config.Nodes, "nodes", 200, "simulated nodes that join; each has a certificate and a connection of its own")
		f.StringVar(&in.config.Dir, "dir", "", "directory to work in, kept at the end; empty: a new one that is removed")
		f.StringVar(&in.config.Listen, "listen", "127.0.0.1:0", "address of the server")
	},
	run: func(ctx context.Context, c *call, in *demoCommandInput) error {
		binary, err := os.Executable()
		if err != nil {
			return err
		}
		in.config.Binary, in.config.Out, in.config.Env = binary, c.system.Out, c.system.Env
		return demo.Run(ctx, in.config)
	},
}

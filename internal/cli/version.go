package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var versionCommand = withBareServer{asking{verb[api.Nothing]{
	use: "version", short: "Show the version of this program, and of the server",
	long: `Show the version of this program: its number, the commit that it was made of with the commit's date, the Go that compiled it, and
the platform. Nothing is asked.

With --server the server is asked, too: the one that other commands ask, or the one of an address (--server https://HOST:8140). A
difference that matters is said.`,
	example: "  tutti version\n  tutti version --server\n  tutti version -o json",
	args:    maybeAddress,
	prints:  aThing.orName(),
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		told := versions{Build: api.ProgramBuild()}
		if c.changed("server") {
			if err := told.askServer(ctx, c); err != nil {
				return err
			}
		}
		return print.One(c.printer(), told, printVersions)
	},
}}}

// bareServer is the value of --server without an address.
const bareServer = "current"

// withBareServer lets --server stand without a value.
type withBareServer struct{ declared }

func (w withBareServer) command(a *app) *cobra.Command {
	cmd := w.declared.command(a)
	flag := cmd.PersistentFlags().Lookup("server")
	flag.NoOptDefVal, flag.Usage = bareServer, "ask the server, too: the one that other commands ask, or the one at this address"
	return cmd
}

// maybeAddress takes the address behind a bare --server.
func maybeAddress(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) == 1 && cmd.Flags().Changed("server") {
		return nil
	}
	return exactly(0)(cmd, args)
}

// versions are those of the program and of the server that was asked.
type versions struct {
	api.Build
	Server        *api.Build `json:"server,omitempty"`
	ServerAddress string     `json:"server_address,omitempty"`
	Difference    string     `json:"difference,omitempty"` // what matters of it, and what to do
}

func (v *versions) askServer(ctx context.Context, c *call) error {
	if c.access.server == bareServer {
		c.access.server = ""
		if len(c.args) > 0 {
			c.access.server = c.args[0]
		}
	}
	config, err := c.clientConfig()
	if err != nil {
		return err
	}
	client, err := api.NewClient(config)
	if err != nil {
		return err
	}
	answer, err := api.VersionShow.Call(ctx, client, api.Nothing{})
	if fault.Of(err) == fault.NotFound {
		return fault.New(fault.NotFound, "%s does not say its version: it is older than this program, or no Tutti", config.Server)
	}
	if err != nil {
		return err
	}
	v.Server, v.ServerAddress, v.Difference = &answer, config.Server, mismatch(v.Build, answer)
	return nil
}

// mismatch says what matters of two versions that are not the same; empty: nothing. Programs of one line (0.1.x) speak with each other.
func mismatch(here, there api.Build) string {
	switch {
	case here.Version == there.Version && here.Commit == there.Commit:
		return ""
	case lineOf(here.Version) == "" || lineOf(there.Version) == "":
		return "one of the two is no release: commands may not fit; build both from one commit"
	case lineOf(here.Version) != lineOf(there.Version):
		return "commands that only one of them knows are refused; use " + there.Version + " here, or upgrade the server"
	}
	return ""
}

// lineOf is 0.1 of 0.1.4; empty for what is no release.
func lineOf(version string) string {
	parts := strings.Split(version, ".")
	if len(parts) != 3 || strings.Contains(version, "+") {
		return ""
	}
	return parts[0] + "." + parts[1]
}

func printVersions(to print.Printer, v versions) error {
	if to.Format == "name" {
		to.Line(v.Version)
		return nil
	}
	rows := [][]string{
		{"Version", v.Version},
		{"Commit", cmp.Or(v.Commit, "not known")},
		{"Date", cmp.Or(v.Date, "not known")},
		{"Go", v.Go},
		{"Platform", v.Platform},
	}
	if v.Server != nil {
		rows = append(rows, []string{"Server", v.ServerAddress}, []string{"Server version", v.Server.String()}, []string{
			"Server date", cmp.Or(v.Server.Date, "not known"),
		})
	}
	if err := to.Rows(nil, rows); err != nil {
		return err
	}
	if v.Difference != "" {
		to.Hint("The program is %s and the server %s: %s", v.Version, v.Server.Version, v.Difference)
	}
	return nil
}

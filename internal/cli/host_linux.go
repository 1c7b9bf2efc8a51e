package cli

import "github.com/spf13/cobra"

// hostCommands are what only the server's operating system has.
func (a *app) hostCommands() []*cobra.Command {
	return []*cobra.Command{a.serverCommand(), a.demoCommand()}
}

// localCA is what works on the CA's files.
func (a *app) localCA() []*cobra.Command { return []*cobra.Command{a.caImport()} }

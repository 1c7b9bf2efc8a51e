package cli

import "github.com/spf13/cobra"

// hostCommands are what only the server's operating system has.
func (a *app) hostCommands() []*cobra.Command {
	return []*cobra.Command{a.serverCommand(), a.backupCommand(), a.demoCommand()}
}

// localTokens is what works on the token in the data directory.
func (a *app) localTokens() []*cobra.Command { return []*cobra.Command{a.tokenRotate()} }

// localCA is what works on the CA's files.
func (a *app) localCA() []*cobra.Command { return []*cobra.Command{a.caImport(), a.caAdopt()} }

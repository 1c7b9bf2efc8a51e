package cli

import "github.com/spf13/cobra"

// hostCommands are what only the server's operating system has.
func hostCommands(a *app) []*cobra.Command {
	return []*cobra.Command{a.serverCommand(), a.backupCommand(), a.demoCommand()}
}

// localTokens is what works on the token in the data directory.
func localTokens(a *app) []*cobra.Command { return []*cobra.Command{a.tokenRotate()} }

// localCA is what works on the CA's files.
func localCA(a *app) []*cobra.Command { return []*cobra.Command{a.caImport(), a.caAdopt()} }

//go:build !linux

package cli

import "github.com/spf13/cobra"

// hostCommands: the server runs on Linux only. Here are the agent, and the commands that ask a server.
func hostCommands(_ *app) []*cobra.Command { return nil }

func localTokens(_ *app) []*cobra.Command { return nil }

func localCA(_ *app) []*cobra.Command { return nil }

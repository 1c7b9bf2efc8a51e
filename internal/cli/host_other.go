//go:build !linux

package cli

import "github.com/spf13/cobra"

// hostCommands: the server runs on Linux only. Here are the agent, and the commands that ask a server.
func (a *app) hostCommands() []*cobra.Command { return nil }

func (a *app) localTokens() []*cobra.Command { return nil }

func (a *app) localCA() []*cobra.Command { return nil }

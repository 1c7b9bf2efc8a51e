package cli

import "github.com/spf13/cobra"

func (a *app) agentWatch() *cobra.Command     { return &cobra.Command{Use: "watch", Hidden: true} }
func (a *app) agentPuppetRun() *cobra.Command { return &cobra.Command{Use: "puppet-run", Hidden: true} }

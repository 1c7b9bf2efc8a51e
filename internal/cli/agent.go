package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/internal/agent"
)

var agentCommand = noun{
	use: "agent", short: "Join a node to a server, and run its agent",
	verbs: []declared{agentJoin, agentRun, agentStatus, agentFacts, agentDoctor, agentInstall},
}

// agentSettings are those of the agent.
func agentSettings() settable {
	return settable{
		defaults: agent.Default(), command: "tutti agent run", prefix: "TUTTI_AGENT_",
		foreign: []string{"TUTTI_AGENT_CONFIG", "TUTTI_AGENT_TOKEN"}, rewrite: agent.PXPAgentNames,
	}
}

// agentDir is where a node's settings and certificates are.
func agentDir(a *app, flags *pflag.FlagSet) string {
	dir, _ := flags.GetString("dir")
	if flags.Changed("dir") {
		return dir
	}
	return first(a.system.Getenv("TUTTI_AGENT_DIR"), agent.Default().Dir)
}

// agentConfig reads the agent's settings: the file that was named, else agent.yaml in the directory if
// it is there.
func agentConfig(a *app, named string, flags *pflag.FlagSet) (agent.Config, error) {
	config := agent.Default()
	path := first(named, a.system.Getenv("TUTTI_AGENT_CONFIG"))
	if usual := filepath.Join(agentDir(a, flags), agent.ConfigFile); path == "" && isFile(usual) {
		path = usual
	}
	if err := agentSettings().load(a, path, flags, &config); err != nil {
		return config, err
	}
	config = config.Filled()
	return config, config.Check()
}

// localAgent is the settings of this node's agent, for a command with addAgentFlags.
func localAgent(c *call, path string) (agent.Config, error) {
	return agentConfig(c.app, path, c.cmd.Flags())
}

// addDirFlag is on every command that reads the agent's settings, or writes them.
func addDirFlag(f flagSet) {
	f.String("dir", agent.Default().Dir, "directory of agent.yaml and certificates (TUTTI_AGENT_DIR)")
}

// addAgentFlags let a command find this node's agent and say how it stands.
func addAgentFlags(f flagSet, path *string) {
	addDirFlag(f)
	f.String("data", "", "the agent's data directory, if it is neither in the settings nor at its usual place (TUTTI_AGENT_DATA)")
	f.StringVar(path, "config", "", "settings file, YAML or JSON, instead of agent.yaml in the directory (TUTTI_AGENT_CONFIG)")
}

// joined is a list in one line.
func joined(texts []string) string { return strings.Join(texts, ", ") }

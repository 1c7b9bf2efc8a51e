package cli

import (
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// serverSettings are those of the server. Its variables share their prefix with
// those of the client and of the agent.
func serverSettings() settable {
	return settable{
		defaults: settings.Default(), command: "tutti server", prefix: "TUTTI_",
		shared: []string{"data"}, // a shell has TUTTI_DATA for the commands that ask a server
		foreign: []string{
			"TUTTI_SERVER", "TUTTI_TOKEN", "TUTTI_TOKEN_FILE", "TUTTI_CA_FILE", "TUTTI_CONFIG", "TUTTI_CONTEXT", "TUTTI_CONTEXT_FILE", "TUTTI_AGENT_",
			datadir.ClusterKeyVariable,
		},
	}
}

// loadConfig reads the server's settings: defaults, then the file, then TUTTI_* variables, then flags. Only TUTTI_DATA does not win
// over a file that --config names.
func loadConfig(a *app, path string, flags *pflag.FlagSet) (settings.Config, error) {
	config := settings.Default()
	if err := serverSettings().load(a, path, flags, &config); err != nil {
		return config, err
	}
	return config, config.Check()
}

package cli

import (
	"errors"
	"io/fs"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/fault"
)

// accessFlags say which server to speak to, and as whom. Each is also an
// environment variable: TUTTI_CONTEXT, TUTTI_SERVER, TUTTI_TOKEN_FILE, TUTTI_CA_FILE, TUTTI_DATA.
type accessFlags struct {
	context, server, tokenFile, caFile, data string
}

// withAccess gives cmd and its subcommands the flags of a client.
func withAccess(a *app, cmd *cobra.Command) *cobra.Command {
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.access.server, "server", "", "the server's address, https://HOST:8140 (TUTTI_SERVER)")
	flags.StringVar(&a.access.tokenFile, "token-file", "", "file that holds the token (TUTTI_TOKEN_FILE, or the token itself in TUTTI_TOKEN)")
	flags.StringVar(&a.access.caFile, "ca-file", "", "PEM file of the CA that the server's certificate comes from (TUTTI_CA_FILE)")
	flags.StringVar(&a.access.data, "data", "", "data directory of a server on this machine, instead of --server, --token-file and --ca-file (TUTTI_DATA)")
	flags.StringVar(&a.access.context, "context", "", "the server of this name, as tutti context add knows it (TUTTI_CONTEXT)")
	return cmd
}

// client connects as the flags, the environment and the contexts say.
func (a *app) client() (*api.Client, error) {
	config, err := a.clientConfig()
	if err != nil {
		return nil, err
	}
	return api.NewClient(config)
}

// clientConfig finds the server, and who asks it.
func (a *app) clientConfig() (api.ClientConfig, error) {
	config, chosen, err := a.serverConfig()
	if err != nil {
		return config, err
	}
	token, err := a.token(chosen)
	config.Token = string(token)
	return config, err
}

// serverConfig finds the server.
func (a *app) serverConfig() (config api.ClientConfig, chosen target, err error) {
	if chosen, err = a.target(); err != nil {
		return config, chosen, err
	}
	address, err := agent.ParseServer(chosen.server)
	if err != nil {
		return config, chosen, usageError{err}
	}
	config.Server = address.String()
	if a.system.animates() {
		config.Through = func(next http.RoundTripper) http.RoundTripper {
			return &patience{next: next, out: a.system.Err, width: a.system.ErrWidth}
		}
	}
	config.CAPEM, err = a.ca(chosen)
	return config, chosen, err
}

// noServer says that the data directory has no server that runs. Nothing was named: the command line lacks it. Else the
// server that was named is away.
func (a *app) noServer(err error) error {
	const named = "name one with --server https://HOST:8140 (or TUTTI_SERVER)"
	dir := first(a.access.data, a.system.Getenv("TUTTI_DATA"))
	switch {
	case dir == "":
		return usageError{&fault.Error{
			Kind: fault.Invalid, Detail: "which server? None is named, and none runs on this machine (" + api.DataDir + ")",
			Hint: named + ", keep one under a name (tutti context add NAME --server ...), or start one: tutti server", Err: err,
		}}
	case errors.Is(err, fs.ErrPermission):
		return &fault.Error{
			Kind: fault.Denied, Detail: "you may not read the server's data directory " + dir, Hint: named + ", and log in: tutti login NAME", Err: err,
		}
	}
	return &fault.Error{
		Kind: fault.Unavailable, Detail: "no server runs on the data directory " + dir,
		Hint: "start it: tutti server --data " + dir + "; or " + named, Err: api.ErrUnreachable,
	}
}

func (a *app) dataDir() string {
	return first(a.access.data, a.system.Getenv("TUTTI_DATA"), api.DataDir)
}

// readOr reads the file that was named, else the fallback if it is there; a
// fallback that is missing is no error, one that may not be read is.
func readOr(named, fallback, flag string) ([]byte, error) {
	path := first(named, fallback)
	content, err := readWhole(path, maxNamedBytes)
	if named == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, hinted(unread("the file", path, err), "name a file that you may read with --"+flag)
	}
	return content, nil
}

// first returns the first of values that is not empty.
func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

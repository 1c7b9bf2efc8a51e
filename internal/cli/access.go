package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server"
)

// accessFlags say which server to speak to, and as whom. Each is also an
// environment variable: TUTTI_SERVER, TUTTI_TOKEN_FILE, TUTTI_CA_FILE, TUTTI_DATA.
type accessFlags struct {
	server, tokenFile, caFile, data string
}

// withAccess gives cmd and its subcommands the flags of a client.
func (a *app) withAccess(cmd *cobra.Command) *cobra.Command {
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.access.server, "server", "", "the server's address, https://HOST:8140 (TUTTI_SERVER)")
	flags.StringVar(&a.access.tokenFile, "token-file", "", "file that holds the token (TUTTI_TOKEN_FILE, or the token itself in TUTTI_TOKEN)")
	flags.StringVar(&a.access.caFile, "ca-file", "", "PEM file of the CA that the server's certificate comes from (TUTTI_CA_FILE)")
	flags.StringVar(&a.access.data, "data", "", "data directory of a server on this machine, instead of the three above (TUTTI_DATA)")
	flags.StringVarP(&a.output, "output", "o", "table", "how to print: table, json, jsonl, csv or name")
	return cmd
}

// client connects as the flags and the environment say.
func (a *app) client() (*api.Client, error) {
	if err := a.checkOutput(); err != nil {
		return nil, err
	}
	data := first(a.access.data, a.system.Getenv("TUTTI_DATA"), server.Default().Data)
	config := api.ClientConfig{Server: first(a.access.server, a.system.Getenv("TUTTI_SERVER")), Token: a.system.Getenv("TUTTI_TOKEN")}
	if config.Server == "" {
		address, err := os.ReadFile(filepath.Join(data, server.AddressFile))
		if err != nil {
			return nil, usageError{fault.Wrap(fault.Invalid, err,
				"which server? give --server https://HOST:8140 (or TUTTI_SERVER), or on the server's own machine --data DIR (or TUTTI_DATA); %s has no running server", data)}
		}
		config.Server = strings.TrimSpace(string(address))
	}
	if path := first(a.access.tokenFile, a.system.Getenv("TUTTI_TOKEN_FILE")); path != "" || config.Token == "" {
		token, err := readOr(path, filepath.Join(data, server.TokenFile), "token-file")
		if err != nil {
			return nil, err
		}
		config.Token = string(token)
	}
	ca, err := readOr(first(a.access.caFile, a.system.Getenv("TUTTI_CA_FILE")), filepath.Join(data, server.CAFile), "ca-file")
	if err != nil {
		return nil, err
	}
	config.CAPEM = ca
	return api.NewClient(config)
}

// readOr reads the file that was named, else the fallback if it is there; a
// fallback that is missing is no error, one that may not be read is.
func readOr(named, fallback, flag string) ([]byte, error) {
	path := first(named, fallback)
	content, err := os.ReadFile(path)
	if named == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot read %s: %v; name a file that you may read with --%s", path, errors.Unwrap(err), flag)
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

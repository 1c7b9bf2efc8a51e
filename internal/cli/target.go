package cli

import (
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/fault"
)

// target is the server that is asked, and why that one.
type target struct {
	server  string
	context *serverContext // that named it; nil: none did
	flag    bool           // the context was named on the command line: variables count no more
	why     string         // for people
	own     bool           // --data named it: variables that say where another server is count no more

	caFile, tokenFile string // of Puppet Enterprise's client tools; empty: they did not name the server
}

// target finds the server. Flags win over variables, these over the current context, that over the data directory of a server on this
// machine, and that over what Puppet Enterprise's client tools are configured for. Under the name of such a tool its configuration
// wins over all but flags, and its token is where the tools have it.
func (a *app) target() (target, error) {
	if a.tools.name == "" {
		return a.chosen()
	}
	if a.access.context == "" && a.access.server == "" && a.access.data == "" {
		if t, ok, err := a.inTools(a.tools.name); ok || err != nil {
			return t, err
		}
	}
	t, err := a.chosen()
	if token := a.toolsToken(); a.tools.name == "access" || exists(token) {
		t.tokenFile = token
	}
	return t, err
}

// chosen is the server that flags, variables, contexts and files name.
func (a *app) chosen() (target, error) {
	if a.access.context != "" && (a.access.server != "" || a.access.data != "") {
		return target{}, usageError{fault.New(fault.Invalid, "--context names a server, and so do --server and --data: give one of them")}
	}
	switch {
	case a.access.server != "":
		return target{server: a.access.server, why: "--server"}, nil
	case a.access.data != "":
		return a.here("--data", true)
	case a.access.context != "":
		return a.inContext(a.access.context, "--context")
	case a.system.Getenv("TUTTI_SERVER") != "":
		return target{server: a.system.Getenv("TUTTI_SERVER"), why: "TUTTI_SERVER"}, nil
	case a.system.Getenv("TUTTI_CONTEXT") != "":
		return a.inContext(a.system.Getenv("TUTTI_CONTEXT"), "TUTTI_CONTEXT")
	case a.system.Getenv("TUTTI_DATA") != "":
		return a.here("TUTTI_DATA", false)
	}
	all, err := a.readContexts()
	if err != nil {
		return target{}, err
	}
	if all.Current != "" {
		return a.inContext(all.Current, "current")
	}
	t, err := a.here("", false)
	if err == nil {
		return t, nil
	}
	if tools, ok, wrong := a.inTools(""); ok || wrong != nil {
		return tools, wrong
	}
	return t, err
}

// inContext is the server of a context.
func (a *app) inContext(name, by string) (target, error) {
	all, err := a.readContexts()
	if err != nil {
		return target{}, err
	}
	found, err := all.get(name)
	if err != nil {
		return target{}, err
	}
	server, err := agent.ParseServer(found.Server)
	if err != nil {
		return target{}, err
	}
	why := "context " + name + " (" + by + ")"
	if by == "current" {
		why = "current context " + name
	}
	return target{server: server.String(), context: found, flag: by == "--context", why: why}, nil
}

// here is the server of the data directory on this machine.
func (a *app) here(by string, own bool) (target, error) {
	address, err := readWhole(filepath.Join(a.dataDir(), api.AddressFile), maxNamedBytes)
	if err != nil {
		return target{}, a.noServer(err)
	}
	why := "data directory " + a.dataDir()
	if by != "" {
		why += " (" + by + ")"
	}
	return target{server: strings.TrimSpace(string(address)), why: why, own: own}, nil
}

// ca is the certificates that the target's is checked against; empty: those that the machine trusts.
func (a *app) ca(t target) ([]byte, error) {
	named := a.access.caFile
	if named == "" && !t.flag && !t.own {
		named = a.system.Getenv("TUTTI_CA_FILE")
	}
	if named == "" && t.caFile != "" {
		return readOr(t.caFile, "", "ca-file")
	}
	if t.context == nil || named != "" {
		return readOr(named, filepath.Join(a.dataDir(), api.CAFile), "ca-file")
	}
	if t.context.CA != "" {
		return []byte(t.context.CA), nil
	}
	if t.context.CAFile == "" {
		return nil, nil
	}
	return readOr(t.context.beside(t.context.CAFile), "", "ca-file")
}

// beside is a path of the file of contexts.
func (c *serverContext) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.dir, path)
}

// namedToken is the token's file, if somebody named one.
func (a *app) namedToken(t target) string {
	named := a.access.tokenFile
	if named == "" && !t.flag {
		named = a.system.Getenv("TUTTI_TOKEN_FILE")
	}
	if named == "" && t.context != nil && (t.flag || a.system.Getenv("TUTTI_TOKEN") == "") {
		named = t.context.beside(t.context.TokenFile)
	}
	if named == "" && a.system.Getenv("TUTTI_TOKEN") == "" {
		named = t.tokenFile
	}
	return named
}

// token reads the named file, else TUTTI_TOKEN, else that of a login, else that of the data directory.
func (a *app) token(t target) ([]byte, error) {
	named := a.namedToken(t)
	if given := a.system.Getenv("TUTTI_TOKEN"); named == "" && given != "" && !t.flag {
		return []byte(given), nil
	}
	if login, err := a.loginFile(t); named == "" && err == nil {
		if token, err := readOr("", login, "token-file"); err != nil || len(token) > 0 || t.context != nil {
			return token, err
		}
	}
	if named == "" && t.context != nil { // the data directory's server is another one
		return nil, nil
	}
	if named != "" && (named == t.tokenFile || t.context != nil && named == t.context.beside(t.context.TokenFile)) {
		return readOr("", named, "token-file") // a login makes it
	}
	return readOr(named, filepath.Join(a.dataDir(), api.TokenFile), "token-file")
}

// knownCA is the CA of the server that would be asked, also while none runs.
func (a *app) knownCA() ([]byte, error) {
	chosen, err := a.target()
	if err != nil && (a.access.context != "" || a.access.server != "") {
		return nil, err
	}
	return a.ca(chosen)
}

package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var contextCommand = noun{
	use: "context", short: "Keep the servers that you ask under names, and choose one",
	verbs: []declared{contextAdd, contextUse, contextList, contextShow, contextRename, contextRemove},
}

// precedence is said by the commands that choose a server.
const precedence = `Which server is asked is decided by the first of these that is given: --server, --data or --context; TUTTI_SERVER; TUTTI_CONTEXT;
TUTTI_DATA; the current context; the data directory of a server on this machine, ` + api.DataDir + `.`

type contextAddInput struct {
	serverContext
	fingerprint  string
	systemCA     bool
	use, replace bool
}

var contextAdd = verb[contextAddInput]{
	use: "add NAME", prints: silent, short: "Add a server under a name",
	long: `Add a server under a name. The first one that is added is the current one.

The server is known by its CA: --ca-fingerprint fetches the CA's certificate and keeps it if it has this fingerprint, which ` + "`tutti ca\ntoken`" + `
prints on the server; --ca-file names a file with it; --system-ca says that the server's certificate comes from a CA that this machine
trusts.

Contexts are kept in ~/.config/tutti/config.yaml (or $XDG_CONFIG_HOME/tutti/config.yaml), or in the file that TUTTI_CONTEXT_FILE names.
Tokens are not in it: ` + "`tutti login`" + ` keeps one for each context in a file of its own, or in --token-file.

` + precedence,
	example: `  tutti context add prod --server https://tutti.example.test:8140 --ca-fingerprint 5A:0F:...
  tutti context add lab --server lab.example.test --ca-file lab-ca.pem --user ann
  tutti login && tutti node list`,
	flags: func(f flagSet, in *contextAddInput) {
		f.StringVar(&in.Server, "server", "", "the server's address, https://HOST:8140")
		f.StringVar(&in.fingerprint, "ca-fingerprint", "", "SHA-256 of the CA's certificate: it is fetched, and kept if this is its fingerprint")
		f.StringVar(&in.CAFile, "ca-file", "", "PEM file of the CA's certificates")
		f.BoolVar(&in.systemCA, "system-ca", false, "the server's certificate comes from a CA that this machine trusts")
		f.StringVar(&in.TokenFile, "token-file", "", "file of the token; tutti login writes it")
		f.StringVar(&in.User, "user", "", "who tutti login logs in here")
		f.BoolVar(&in.use, "use", false, "make it the current one")
		f.BoolVar(&in.replace, "replace", false, "replace a context of this name")
		f.cmd.MarkFlagsMutuallyExclusive("ca-fingerprint", "ca-file", "system-ca")
	},
	run: func(ctx context.Context, c *call, in *contextAddInput) error { return c.addContext(ctx, *in) },
}

func (c *call) addContext(ctx context.Context, in contextAddInput) error {
	all, err := c.readContexts()
	if err != nil {
		return err
	}
	made := in.serverContext
	made.Name = c.args[0]
	if in.Server == "" {
		return usageError{fault.New(fault.Invalid, "which server is %s? give --server https://HOST:8140", made.Name)}
	}
	address, err := agent.ParseServer(in.Server)
	if err != nil {
		return usageError{fault.New(fault.Invalid, "--server: %s", fault.Detail(err))}
	}
	made.Server = address.String()
	if err := made.check(); err != nil {
		return usageError{fault.New(fault.Invalid, "%v", err)}
	}
	there := all.find(made.Name)
	if there != nil && !in.replace {
		return fault.New(fault.Conflict, "there is a context %s, for %s; give another name, or --replace", made.Name, there.Server)
	}
	if err := in.proves(ctx, address, &made); err != nil {
		return err
	}
	for _, path := range []*string{&made.CAFile, &made.TokenFile} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return err
			}
		}
	}
	if there != nil {
		*there = made
	} else {
		all.Contexts = append(all.Contexts, made)
	}
	if in.use || len(all.Contexts) == 1 {
		all.Current = made.Name
	}
	if err := all.save(); err != nil {
		return err
	}
	c.hint("Context %s asks %s; it is in %s", made.Name, made.Server, all.path)
	c.sayNext(all, made)
	return nil
}

// proves finds the CA by which the server is known.
func (in contextAddInput) proves(ctx context.Context, address *url.URL, made *serverContext) error {
	switch {
	case in.systemCA:
		return nil
	case in.CAFile != "":
		text, err := readOr(in.CAFile, "", "ca-file")
		if err == nil && len(fingerprints(text)) == 0 {
			err = fault.New(fault.Invalid, "%s holds no PEM certificate", in.CAFile)
		}
		return err
	}
	bundle, _, err := agent.FetchCA(ctx, address, in.fingerprint)
	made.CA = string(bundle)
	return err
}

// sayNext says what is to be done before the context can be used.
func (c *call) sayNext(all contexts, made serverContext) {
	other := ""
	if all.Current != made.Name {
		other = " --context " + made.Name
		c.hint("The current context is %s; `tutti context use %s` makes this one current", cmp.Or(all.Current, "none"), made.Name)
	} else {
		c.sayWhatWins(all)
	}
	if made.User != "" {
		c.hint("Log in: tutti login%s", other)
	} else {
		c.hint("Log in: tutti login%s NAME", other)
	}
}

// sayWhatWins warns of variables that win over the current context.
func (a *app) sayWhatWins(all contexts) {
	for _, name := range []string{"TUTTI_SERVER", "TUTTI_CONTEXT", "TUTTI_DATA"} {
		if value := a.system.Getenv(name); value != "" && (name != "TUTTI_CONTEXT" || value != all.Current) {
			a.hint("%s is set (%s): it wins over the current context %s; `unset %[1]s` ends that", name, value, all.Current)
			return
		}
	}
}

// namedContext reads the contexts, and finds the one that the first argument names.
func (c *call) namedContext() (all contexts, found *serverContext, err error) {
	if all, err = c.readContexts(); err != nil {
		return all, nil, err
	}
	found, err = all.get(c.args[0])
	return all, found, err
}

var contextUse = verb[api.Nothing]{
	use: "use NAME", prints: silent, short: "Make a context the current one", example: "  tutti context use prod",
	long: "Make a context the current one: commands ask its server.\n\n" + precedence,
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		all, found, err := c.namedContext()
		if err != nil {
			return err
		}
		all.Current = found.Name
		if err := all.save(); err != nil {
			return err
		}
		c.hint("Commands ask %s (context %s)", found.Server, found.Name)
		c.sayWhatWins(all)
		return nil
	},
}

// contextInfo is a context as it is shown: no secret, and no certificate as text.
type contextInfo struct {
	Name         string   `json:"name"`
	Current      bool     `json:"current"`
	Asked        bool     `json:"asked"` // commands without flags ask it, variables considered
	Server       string   `json:"server"`
	User         string   `json:"user,omitempty"`
	Fingerprints []string `json:"ca_fingerprints,omitempty"` // none: the CAs that the machine trusts
	CAFile       string   `json:"ca_file,omitempty"`
	TokenFile    string   `json:"token_file"`
	LoggedIn     bool     `json:"logged_in"` // there is a token
}

func (a *app) infoOf(all contexts, c serverContext, chosen target) contextInfo {
	info := contextInfo{
		Name: c.Name, Current: c.Name == all.Current, Server: c.Server, User: c.User, CAFile: c.beside(c.CAFile),
		Asked: chosen.context != nil && chosen.context.Name == c.Name,
	}
	text := []byte(c.CA)
	if c.CAFile != "" {
		text, _ = readWhole(c.beside(c.CAFile), maxNamedBytes)
	}
	info.Fingerprints = fingerprints(text)
	info.TokenFile = a.contextToken(c)
	content, err := readWhole(info.TokenFile, maxNamedBytes)
	info.LoggedIn = err == nil && len(content) > 0
	return info
}

// contextToken is where the token of a context is.
func (a *app) contextToken(c serverContext) string {
	if c.TokenFile != "" {
		return c.beside(c.TokenFile)
	}
	address, err := agent.ParseServer(c.Server)
	if dir := a.configDir(); err == nil && dir != "" {
		return filepath.Join(dir, "tokens", tokenName(address.Host, &c))
	}
	return ""
}

// fingerprints of the certificates of a PEM text.
func fingerprints(text []byte) (all []string) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			all = append(all, colons(sha256.Sum256(block.Bytes)))
		}
	}
	return all
}

func colons(sum [sha256.Size]byte) string {
	pairs := make([]string, len(sum))
	for i, b := range sum {
		pairs[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(pairs, ":")
}

var contextList = verb[api.Nothing]{
	use: "list", short: "List the contexts, the current one marked, and say which server is asked",
	long:    "List the contexts. An asterisk marks the current one. Which server is asked now, and why, is said below.\n\n" + precedence,
	example: "  tutti context list\n  tutti context list -o name",
	prints:  aList,
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		all, err := c.readContexts()
		if err != nil {
			return err
		}
		chosen, asking := c.target()
		var infos []contextInfo
		for _, one := range all.Contexts {
			infos = append(infos, c.infoOf(all, one, chosen))
		}
		err = print.List(c.printer(), infos, contextTable)
		if err == nil && asking == nil {
			c.hint("Commands ask %s: %s", chosen.server, chosen.why)
			if all.Current != "" && (chosen.context == nil || chosen.context.Name != all.Current) {
				c.sayWhatWins(all)
			}
		} else if err == nil {
			c.hint("No server is asked: %s", explain(asking))
		}
		return err
	},
}

var contextTable = print.Table[contextInfo]{
	Columns: []string{"name", "current", "server", "user", "token"},
	Spare:   []string{"user", "token"},
	Row: func(i contextInfo) []any {
		mark, token := "", "none"
		if i.Current {
			mark = "*"
		}
		if i.LoggedIn {
			token = "kept"
		}
		return []any{i.Name, mark, i.Server, i.User, token}
	},
	Name:  func(i contextInfo) string { return i.Name },
	Empty: "There is no context. `tutti context add NAME --server https://HOST:8140` adds one.",
}

var contextShow = verb[api.Nothing]{
	use: "show [NAME]", short: "Show a context, the current one if none is named", example: "  tutti context show\n  tutti context show prod -o json",
	args:   atMostOne,
	prints: aThing.orName(),
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		all, err := c.readContexts()
		if err != nil {
			return err
		}
		name := all.Current
		if len(c.args) > 0 {
			name = c.args[0]
		}
		if name == "" {
			return usageError{fault.New(fault.Invalid, "no context is current%s; name one, or choose one with tutti context use", all.offered())}
		}
		found, err := all.get(name)
		if err != nil {
			return err
		}
		chosen, _ := c.target()
		return print.One(c.printer(), c.infoOf(all, *found, chosen), printContext)
	},
}

func printContext(to print.Printer, i contextInfo) error {
	if to.Format == "name" {
		to.Line(i.Name)
		return nil
	}
	yes := map[bool]string{true: "yes", false: "no"}
	rows := [][]string{{"Name", i.Name}, {"Current", yes[i.Current]}, {"Asked now", yes[i.Asked]}, {"Server", i.Server}, {"User", i.User}}
	ca := "one that this machine trusts"
	if len(i.Fingerprints) > 0 {
		ca = strings.Join(i.Fingerprints, " ")
	}
	rows = append(rows, []string{"CA", ca})
	if i.CAFile != "" {
		rows = append(rows, []string{"CA file", i.CAFile})
	}
	kept := " (there is none yet)"
	if i.LoggedIn {
		kept = ""
	}
	return to.Rows(nil, append(rows, []string{"Token file", i.TokenFile + kept}))
}

var contextRename = verb[api.Nothing]{
	use: "rename OLD NEW", prints: silent, short: "Rename a context", example: "  tutti context rename prod production",
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		all, found, err := c.namedContext()
		if err != nil {
			return err
		}
		if other := all.find(c.args[1]); other != nil {
			return fault.New(fault.Conflict, "there is a context %s, for %s; remove it first", other.Name, other.Server)
		}
		before := *found
		found.Name = c.args[1]
		if err := found.check(); err != nil {
			return usageError{fault.New(fault.Invalid, "%v", err)}
		}
		if all.Current == before.Name {
			all.Current = found.Name
		}
		if old, fresh := c.contextToken(before), c.contextToken(*found); old != fresh {
			if err := os.Rename(old, fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.Wrap(fault.Invalid, err, "the token of %s cannot be renamed: %v", before.Name, err)
			}
		}
		if err := all.save(); err != nil {
			return err
		}
		c.hint("Context %s is %s now", before.Name, found.Name)
		return nil
	},
}

var contextRemove = verb[api.Nothing]{
	use: "remove NAME", prints: silent, short: "Remove a context and the token that a login kept for it", example: "  tutti context remove lab",
	long: `Remove a context, and the token that a login kept for it. The token stays good on the server until it expires: tutti logout --context NAME
ends it before. A file that --token-file named stays.`,
	destroys: func(_ context.Context, c *call, _ *api.Nothing) (string, error) {
		all, err := c.readContexts()
		if err != nil {
			return "", err
		}
		found, err := all.get(c.args[0])
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("remove the context %s, for %s, and the token that a login kept for it", found.Name, found.Server), nil
	},
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		all, found, err := c.namedContext()
		if err != nil {
			return err
		}
		gone := *found
		all.Contexts = slices.DeleteFunc(all.Contexts, func(one serverContext) bool { return one.Name == gone.Name })
		if all.Current == gone.Name {
			all.Current = ""
		}
		if err := all.save(); err != nil {
			return err
		}
		if gone.TokenFile == "" {
			if err := os.Remove(c.contextToken(gone)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.Wrap(fault.Invalid, err, "the context is removed, but its token's file stays: %v", err)
			}
		}
		c.hint("Context %s is removed", gone.Name)
		if all.Current == "" && len(all.Contexts) > 0 {
			c.hint("No context is current%s; `tutti context use NAME` chooses one", all.offered())
		}
		return nil
	},
}

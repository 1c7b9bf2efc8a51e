package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// loginFile is where the token of a login is kept: the file that was named, or one for each server, and for each context of it, so
// that no server is shown the token of another.
func (a *app) loginFile(t target) (string, error) {
	if named := a.namedToken(t); named != "" {
		return named, nil
	}
	parsed, err := url.Parse(t.server)
	if dir := a.configDir(); err == nil && dir != "" {
		return filepath.Join(dir, "tokens", tokenName(parsed.Host, t.context)), nil
	}
	return "", fault.New(fault.Invalid, "there is no place for the token: HOME is not set; name a file with --token-file")
}

// tokenName is the name of the file for a server, and for a context.
func tokenName(host string, c *serverContext) string {
	name := strings.ReplaceAll(host, ":", "_")
	if c != nil {
		name += "@" + c.Name
	}
	return name
}

// saveLogin writes the token for nobody else to read.
func (a *app) saveLogin(t target, token string) (string, error) {
	path, err := a.loginFile(t)
	if err != nil {
		return "", err
	}
	if err := writePrivate(path, []byte(token+"\n")); err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the token cannot be kept: %v", err)
	}
	return path, nil
}

// loginName is who logs in: the name that was given, else that of the context.
func loginName(args []string, t target) (string, error) {
	switch {
	case len(args) > 0:
		return args[0], nil
	case t.context != nil && t.context.User != "":
		return t.context.User, nil
	}
	return "", usageError{fault.New(fault.Invalid, "who logs in? usage: tutti login NAME; a context can know it: tutti context add ... --user NAME")}
}

type loginCommandInput struct {
	stdin, show bool
	lifetime    time.Duration
	roles       []string
	label       string
}

var loginCommand = asking{loginVerb("  tutti login ann\n  tutti login ann --lifetime 1h --role viewer\n  pass show tutti | tutti login ann --password-stdin")}

func loginVerb(example string) verb[loginCommandInput] {
	return verb[loginCommandInput]{
		use: "login [NAME]", short: "Log in: get a token for a name and password, and keep it",
		args: atMostOne,
		long: `Log in with a name and a password. The token is kept in ~/.config/tutti/tokens, a file for each server and context that only you
can read, and the other commands show it until it expires. NAME can be left out where the context has a user (tutti context add).
--role narrows the token: with it you can do less by accident.`,
		example: example,
		flags: func(f flagSet, in *loginCommandInput) {
			f.BoolVar(&in.stdin, "password-stdin", false, "read the password from standard input, one line")
			f.BoolVar(&in.show, "print", false, "print the token and do not keep it")
			f.duration(&in.lifetime, "lifetime", 0, "how long the token is good; as the server says if not given")
			f.StringSliceVar(&in.roles, "role", nil, "narrow the token to this role; may be given many times")
			f.StringVar(&in.label, "label", "", "what the token is called, to find and revoke it")
		},
		run: func(ctx context.Context, c *call, in *loginCommandInput) error {
			seconds, err := secondsOf(c.cmd, in.lifetime)
			if err != nil {
				return err
			}
			config, chosen, err := c.serverConfig()
			if err != nil {
				return err
			}
			name, err := loginName(c.args, chosen)
			if err != nil {
				return err
			}
			client, err := api.NewClient(config)
			if err != nil {
				return err
			}
			passwords, err := c.passwords(in.stdin, "Password of "+name)
			if err != nil {
				return err
			}
			issued, err := api.SessionOpen.Call(ctx, client, api.LoginRequest{
				Name: name, Password: passwords[0], Seconds: seconds, Roles: in.roles, Label: in.label,
			})
			if err != nil {
				return err
			}
			if in.show {
				return print.One(c.printer(), issued, printToken)
			}
			path, err := c.saveLogin(chosen, issued.Token)
			if err != nil {
				return err
			}
			c.hint("Logged in as %s until %s; the token is in %s", issued.User, stampOf(issued.ExpiresAt), path)
			return nil
		},
	}
}

// secondsOf is a --lifetime for the API; 0 when it was not given.
func secondsOf(cmd *cobra.Command, lifetime time.Duration) (int64, error) {
	if cmd.Flags().Changed("lifetime") && lifetime < time.Second {
		return 0, usageError{fmt.Errorf("--lifetime is %s; a token is good for at least a second", print.Duration(lifetime))}
	}
	return int64(lifetime / time.Second), nil
}

func stampOf(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

func printToken(to print.Printer, issued api.IssuedToken) error {
	to.Line(issued.Token)
	to.Hint("Good until %s. It is shown this once.", stampOf(issued.ExpiresAt))
	return nil
}

var logoutCommand = asking{verb[api.Nothing]{
	use: "logout", short: "Log out: revoke the token of the login and remove it", example: "  tutti logout",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		config, chosen, err := c.serverConfig()
		if err != nil {
			return err
		}
		path, err := c.loginFile(chosen)
		if err != nil {
			return err
		}
		token, err := readOr("", path, "token-file")
		if err != nil {
			return err
		}
		if len(token) == 0 {
			c.hint("Not logged in at %s", config.Server)
			return nil
		}
		config.Token = string(token)
		client, err := api.NewClient(config)
		if err != nil {
			return err
		}
		// A token that is not good any more is what was wanted.
		if _, err := api.SessionClose.Call(ctx, client, api.Nothing{}); err != nil && fault.Of(err) != fault.Denied {
			return err
		}
		if err := os.Remove(path); err != nil {
			return fault.Wrap(fault.Invalid, err, "the token is revoked, but its file stays: %v", err)
		}
		c.hint("Logged out at %s", config.Server)
		return nil
	},
}}

var whoamiCommand = asking{verb[api.Nothing]{
	use: "whoami", short: "Show who you are to the server, which one is asked and why, and what you may do", example: "  tutti whoami\n  tutti whoami -o name",
	prints: aThing.orName(),
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		session, err := ask(ctx, c.app, api.SessionShow, api.Nothing{})
		if err != nil {
			return err
		}
		chosen, err := c.target()
		if err != nil {
			return err
		}
		return print.One(c.printer(), sessionAt{session, chosen.server, chosen.why}, printSession)
	},
}}

// sessionAt is a session, with the server that was asked and why it was that one.
type sessionAt struct {
	api.Session
	Server   string `json:"server"`
	ChosenBy string `json:"chosen_by"`
}

func printSession(to print.Printer, s sessionAt) error {
	if to.Format == "name" {
		to.Line(s.Name)
		return nil
	}
	rows := [][]string{{"Name", s.Name}, {"Server", s.Server + " (" + s.ChosenBy + ")"}, {"Kind", s.Kind}, {"Roles", strings.Join(s.Roles, " ")}}
	if len(s.NarrowedTo) > 0 {
		rows = append(rows, []string{"Narrowed to", strings.Join(s.NarrowedTo, " ")})
	}
	if s.TokenID != "" {
		rows = append(rows, []string{"Token", s.TokenID}, []string{"Expires", stampOf(s.ExpiresAt)})
	}
	for _, grant := range s.Grants {
		rows = append(rows, []string{"May", grantText(grant)})
	}
	return to.Rows(nil, rows)
}

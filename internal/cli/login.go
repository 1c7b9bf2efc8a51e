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

// loginFile is where the token of a login is kept: the file that was named, or one
// for each server, so that no server is shown the token of another.
func (a *app) loginFile(server string) (string, error) {
	if named := a.namedToken(); named != "" {
		return named, nil
	}
	dir := a.system.Getenv("XDG_CONFIG_HOME")
	if home := a.system.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	parsed, err := url.Parse(server)
	if err != nil || dir == "" {
		return "", fault.New(fault.Invalid, "there is no place for the token: HOME is not set; name a file with --token-file")
	}
	return filepath.Join(dir, "tutti", "tokens", strings.ReplaceAll(parsed.Host, ":", "_")), nil
}

// saveLogin writes the token for nobody else to read.
func (a *app) saveLogin(server, token string) (string, error) {
	path, err := a.loginFile(server)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the token cannot be kept: %v", err)
	}
	// A new file: an old one's mode could be wider. A link is replaced, not followed.
	fresh, err := os.CreateTemp(filepath.Dir(path), ".token-*") // mode 0600
	if err == nil {
		defer func() { _ = os.Remove(fresh.Name()) }() // unless it was renamed
		_, err = fresh.WriteString(token + "\n")
		if closing := fresh.Close(); err == nil {
			err = closing
		}
	}
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the token cannot be kept: %v", err)
	}
	return path, nil
}

type loginCommandInput struct {
	stdin, show bool
	lifetime    time.Duration
	roles       []string
}

var loginCommand = asking{verb[loginCommandInput]{
	use: "login NAME", short: "Log in: get a token for a name and password, and keep it",
	long: `Log in with a name and a password. The token is kept in ~/.config/tutti/tokens, a file for each server that only you can
read, and the other commands show it until it expires. --role narrows the token: with it you can do less by accident.`,
	example: "  tutti login ann\n  tutti login ann --lifetime 1h --role viewer\n  pass show tutti | tutti login ann --password-stdin",
	flags: func(f flagSet, in *loginCommandInput) {
		f.BoolVar(&in.stdin, "password-stdin", false, "read the password from standard input, one line")
		f.BoolVar(&in.show, "print", false, "print the token and do not keep it")
		f.duration(&in.lifetime, "lifetime", 0, "how long the token is good; as the server says if not given")
		f.StringSliceVar(&in.roles, "role", nil, "narrow the token to this role; may be given many times")
	},
	run: func(ctx context.Context, c *call, in *loginCommandInput) error {
		seconds, err := secondsOf(c.cmd, in.lifetime)
		if err != nil {
			return err
		}
		config, err := c.serverConfig()
		if err != nil {
			return err
		}
		client, err := api.NewClient(config)
		if err != nil {
			return err
		}
		passwords, err := c.passwords(in.stdin, "Password of "+c.args[0])
		if err != nil {
			return err
		}
		issued, err := api.SessionOpen.Call(ctx, client, api.LoginRequest{
			Name: c.args[0], Password: passwords[0], Seconds: seconds, Roles: in.roles,
		})
		if err != nil {
			return err
		}
		if in.show {
			return print.One(c.printer(), issued, printToken)
		}
		path, err := c.saveLogin(config.Server, issued.Token)
		if err != nil {
			return err
		}
		c.hint("Logged in as %s until %s; the token is in %s", issued.User, stampOf(issued.ExpiresAt), path)
		return nil
	},
}}

// secondsOf is a --lifetime for the API; 0 when it was not given.
func secondsOf(cmd *cobra.Command, lifetime time.Duration) (int64, error) {
	if cmd.Flags().Changed("lifetime") && lifetime < time.Second {
		return 0, usageError{fmt.Errorf("--lifetime is %s; a token is good for at least a second", lifetime)}
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
		config, err := c.serverConfig()
		if err != nil {
			return err
		}
		path, err := c.loginFile(config.Server)
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
	use: "whoami", short: "Show who you are to the server, and what you may do", example: "  tutti whoami\n  tutti whoami -o name",
	prints: aThing.orName(),
	run: shows(api.SessionShow, func(to print.Printer, session api.Session) error {
		if to.Format == "name" {
			to.Line(session.Name)
			return nil
		}
		rows := [][]string{{"Name", session.Name}, {"Kind", session.Kind}, {"Roles", strings.Join(session.Roles, " ")}}
		if len(session.NarrowedTo) > 0 {
			rows = append(rows, []string{"Narrowed to", strings.Join(session.NarrowedTo, " ")})
		}
		if session.TokenID != "" {
			rows = append(rows, []string{"Token", session.TokenID}, []string{"Expires", stampOf(session.ExpiresAt)})
		}
		for _, grant := range session.Grants {
			rows = append(rows, []string{"May", grantText(grant)})
		}
		return to.Rows(nil, rows)
	}),
}}

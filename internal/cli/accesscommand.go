package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// accessCommand is for fingers that know puppet-access: the token that it shows is the one that `tutti login` keeps.
var accessCommand = asking{noun{
	use: "access", short: "Log in and handle the kept token, for those who know puppet access",
	verbs: []declared{accessLogin, accessShow, accessDelete},
}}

var accessLogin = loginVerb("  tutti access login ann --lifetime 5h\n  tutti access login ann --label laptop --print")

var accessShow = verb[api.Nothing]{
	use: "show", short: "Print the token that a login kept, for a script", prints: silent,
	long:    "Print the token that commands show to the server: that of --token-file, TUTTI_TOKEN or a login. Whoever reads it is you; for a script\nthat goes on, make a token of its own with `tutti token create`.",
	example: "  tutti access show\n  curl -H \"X-Authentication: $(tutti access show)\" https://tutti.example.test:8140/orchestrator/v1/jobs",
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		chosen, err := c.target()
		if err != nil {
			return err
		}
		token, err := c.token(chosen)
		if err != nil {
			return err
		}
		text := strings.TrimSpace(string(token))
		if text == "" {
			return &fault.Error{Kind: fault.Denied, Detail: "there is no token for " + chosen.server, Hint: "log in: " + c.tools.loginLine()}
		}
		print.Printer{Out: c.system.Out}.Line(text)
		return nil
	},
}

// loginLine is how to log in, in the words of the tool that was called.
func (m toolsMode) loginLine() string {
	if m.name != "" {
		return "puppet-access login NAME"
	}
	return "tutti login NAME"
}

var accessDelete = verb[api.Nothing]{
	use: "delete-token-file", short: "Remove the token that a login kept; it stays good until it expires", prints: silent,
	long:    "Remove the token that a login kept. The server goes on taking it until it expires: `tutti logout` ends it, too.",
	example: "  tutti access delete-token-file",
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		chosen, err := c.target()
		if err != nil {
			return err
		}
		path, err := c.loginFile(chosen)
		if err != nil {
			return err
		}
		err = os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			c.hint("There is no token in %s", path)
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "the token's file stays: %v", err)
		}
		c.hint("Removed %s. The token in it is good until it expires; `tutti token revoke` ends it.", path)
		return nil
	},
}

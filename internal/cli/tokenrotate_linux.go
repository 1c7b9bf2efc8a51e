package cli

import (
	"context"
	"fmt"

	"github.com/tutti-project/tutti/internal/server/datadir"
)

type tokenRotateInput struct{ path string }

var tokenRotate = verb[tokenRotateInput]{
	use: "rotate-admin", short: "Make another token for the data directory, on the server's machine",
	long: `Put another token into admin.token in the data directory; the one before is revoked. It works without any token, for whoever may
write there: when the last administrator is locked out. A server that runs takes it at once (it is sent SIGHUP, and so reads
its settings again, too); another one when it starts. The token is good for admin_token_lifetime, and what is done with it is
marked in the audit log.`,
	example: "  tutti token rotate-admin --data /var/lib/tutti",
	flags: func(f flagSet, in *tokenRotateInput) {
		f.StringVar(&in.path, "config", "", "the server's configuration file (TUTTI_CONFIG)")
	},
	run: func(_ context.Context, c *call, in *tokenRotateInput) error {
		config, err := loadConfig(c.app, first(in.path, c.system.Getenv("TUTTI_CONFIG")), c.cmd.Flags())
		if err != nil {
			return err
		}
		rotated, err := datadir.RotateAdmin(config.Data)
		if err != nil {
			return err
		}
		c.printer().Line(rotated.File)
		if rotated.Server == 0 {
			c.hint("no server runs on %s: the token is good from its next start on", config.Data)
			return nil
		}
		c.hint("the server (process %s) was told", fmt.Sprint(rotated.Server))
		return nil
	},
}

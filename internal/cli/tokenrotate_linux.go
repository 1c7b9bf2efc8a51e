package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/server"
)

func (a *app) tokenRotate() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "rotate-admin", Short: "Make another token for the data directory, on the server's machine", Args: exactly(0),
		Long: `Put another token into admin.token in the data directory; the one before is revoked. It works without any token, for whoever may
write there: when the last administrator is locked out. A server that runs takes it at once (it is sent SIGHUP, and so reads
its settings again, too); another one when it starts. The token is good for admin_token_lifetime, and what is done with it is
marked in the audit log.`,
		Example: "  tutti token rotate-admin --data /var/lib/tutti",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(a, first(path, a.system.Getenv("TUTTI_CONFIG")), cmd.Flags())
			if err != nil {
				return err
			}
			rotated, err := server.RotateAdmin(config.Data)
			if err != nil {
				return err
			}
			a.say(rotated.File)
			if rotated.Server == 0 {
				a.hint("no server runs on %s: the token is good from its next start on", config.Data)
				return nil
			}
			a.hint("the server (process %s) was told", fmt.Sprint(rotated.Server))
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the server's configuration file (TUTTI_CONFIG)")
	return cmd
}

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/server"
)

func (a *app) caAdopt() *cobra.Command {
	var path string
	var discard bool
	cmd := &cobra.Command{
		Use: "adopt", Short: "Make the CA's directory and the database agree after one of them was lost or restored (the server must not run)", Args: exactly(0),
		Long: `Make the CA's directory and the database agree, when the server refuses to start because the database is empty,
older than the CA, another CA's, or because the CA's journal is missing or damaged. Afterwards both have every
certificate that either has, and what is revoked in one of them is revoked. Join tokens are deleted: an older
database holds some that were used up. Restoring both from one backup is better where there is one: other records
than the CA's (reports, jobs, users) come back only with that.`,
		Example: "  tutti ca adopt --data /var/lib/tutti",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(a, first(path, a.system.Getenv("TUTTI_CONFIG")), cmd.Flags())
			if err != nil {
				return err
			}
			adopted, err := server.AdoptCA(cmd.Context(), config, discard, a.system.Err)
			if err != nil {
				return err
			}
			if adopted.Damaged != "" {
				a.hint("not all of the journal could be read: %s", adopted.Damaged)
			}
			_, err = fmt.Fprintf(a.system.Out, "%d certificates (%d revoked); %d came back from the journal, %d of another CA were deleted\n",
				adopted.Certificates, adopted.Revoked, adopted.Restored, adopted.Discarded)
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the server's configuration file (TUTTI_CONFIG)")
	cmd.Flags().String("database", "", "the server's database, if it is PostgreSQL (TUTTI_DATABASE)")
	cmd.Flags().BoolVar(&discard, "discard", false, "delete what the database holds of another CA")
	return cmd
}

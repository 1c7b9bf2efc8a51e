package cli

import (
	"context"
	"fmt"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server"
)

type caAdoptInput struct {
	path    string
	discard bool
}

var caAdopt = verb[caAdoptInput]{
	use: "adopt", short: "Make the CA's directory and the database agree after one of them was lost or restored (the server must not run)",
	long: `Make the CA's directory and the database agree, when the server refuses to start because the database is empty,
older than the CA, another CA's, or because the CA's journal is missing or damaged. Afterwards both have every
certificate that either has, and what is revoked in one of them is revoked. Join tokens are deleted: an older
database holds some that were used up. Restoring both from one backup is better where there is one: other records
than the CA's (reports, jobs, users) come back only with that.`,
	example: "  tutti ca adopt --data /var/lib/tutti",
	flags: func(f flagSet, in *caAdoptInput) {
		f.StringVar(&in.path, "config", "", "the server's configuration file (TUTTI_CONFIG)")
		f.String("database", "", "the server's database, if it is PostgreSQL (TUTTI_DATABASE)")
		f.BoolVar(&in.discard, "discard", false, "delete what the database holds of another CA")
	},
	run: func(ctx context.Context, c *call, in *caAdoptInput) error {
		config, err := loadConfig(c.app, first(in.path, c.system.Getenv("TUTTI_CONFIG")), c.cmd.Flags())
		if err != nil {
			return err
		}
		adopted, err := server.AdoptCA(ctx, config, in.discard, c.system.Err)
		if err != nil {
			return err
		}
		if adopted.Damaged != "" {
			c.hint("not all of the journal could be read: %s", adopted.Damaged)
		}
		_, err = fmt.Fprintf(c.system.Out, "%s (%d revoked); from the journal came back: %d; of another CA, deleted: %d\n",
			fault.Count(adopted.Certificates, "certificate"), adopted.Revoked, adopted.Restored, adopted.Discarded)
		return err
	},
}

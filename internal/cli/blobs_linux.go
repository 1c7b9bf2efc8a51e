package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server"
	"github.com/tutti-project/tutti/internal/server/settings"
)

var blobsCommand = noun{
	use: "blobs", short: "Move a server's content between its data directory and an S3 store",
	verbs: []declared{blobsCopy},
}

type blobsCopyInput struct {
	config string
}

var blobsCopy = verb[blobsCopyInput]{
	use: "copy FROM TO", short: "Copy all content from one store to another, while the server runs",
	long: `Copy all content from one store to another: each is the word directory, for the server's data directory, or s3://BUCKET/PREFIX.
The server may run on the first one, which only is read; while it is, nothing is removed there. Each blob is compared with its
digest on the way, and what is there already is not copied again, so a copy that broke off is begun again with the same command.

To move a server: copy while it runs, stop it, copy again (that takes seconds), set blobs, and start it. docs/many-servers.md
has the commands. Who runs this must be able to read the data directory.`,
	example: "  tutti blobs copy directory s3://tutti/content --blobs-endpoint https://s3.example.test --blobs-credentials /etc/tutti/s3",
	flags: func(f flagSet, in *blobsCopyInput) {
		f.String("data", settings.Default().Data, "the server's data directory (TUTTI_DATA)")
		f.StringVar(&in.config, "config", "", "the server's configuration file (TUTTI_CONFIG)")
		f.String("blobs-endpoint", "", "URL of the S3 store (TUTTI_BLOBS_ENDPOINT)")
		f.String("blobs-region", settings.Default().BlobsRegion, "region of the S3 store (TUTTI_BLOBS_REGION)")
		f.String("blobs-ca", "", "file with certificates that the S3 store is known by (TUTTI_BLOBS_CA)")
		f.String("blobs-credentials", "", "file with the credentials of the S3 store (TUTTI_BLOBS_CREDENTIALS)")
	},
	run: func(ctx context.Context, c *call, in *blobsCopyInput) error {
		config, err := localServer(c, in.config)
		if err != nil {
			return err
		}
		giveWay()
		log := slog.New(slog.NewTextHandler(c.system.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
		copied, err := server.CopyContent(ctx, config, c.args[0], c.args[1], os.TempDir(), log, backupProgress(c.app))
		if err != nil {
			return err
		}
		for _, d := range copied.Damaged {
			c.hint("left out: blob %s is damaged in %s", d, c.args[0])
		}
		if err := printBackup(c.printer(), copied, copiedWords(copied, c.args[1])); err != nil || len(copied.Damaged) == 0 {
			return err
		}
		return fault.New(fault.Conflict, "%s damaged where they come from: find them in a backup (tutti backup restore --only blobs), or deploy them again",
			fault.Are(len(copied.Damaged), "blob"))
	},
}

func copiedWords(c cas.Copied, to string) string {
	return fmt.Sprintf("%s, of which %d new (%s), in %s", fault.Count(c.Blobs, "blob"), c.New, print.Bytes(c.Bytes), to)
}

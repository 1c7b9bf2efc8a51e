package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server"
	"github.com/tutti-project/tutti/internal/server/settings"
)

type moveInput struct {
	config string
}

var moveCommand = verb[moveInput]{
	use: "move NEW-CONFIG", short: "Move a server's records and content to another database and another store, and back",
	long: `Move a server from where its settings say that records and content are to where the configuration file NEW-CONFIG says: from SQLite
and the data directory to PostgreSQL and an S3 store, or back. The data directory stays, with the CA and all keys; agents notice
nothing but that the server is away for a while.

Start it while the server runs: content is copied meanwhile. Then it says that the server has to be stopped, waits for that, copies the
records, and compares both sides row by row. At its end it says how long that took; start the server with NEW-CONFIG then.

A move that was killed or failed can be run again. Up to the last step the server can also be started with its old settings; from then on
a server refuses the old records. The new database must be empty. Who runs this must be able to read the data directory. See docs/many-servers.md.`,
	example: "  tutti move /etc/tutti/server.new.yaml --config /etc/tutti/server.yaml",
	flags:   func(f flagSet, in *moveInput) { serverFlags(f, &in.config) },
	run: func(ctx context.Context, c *call, in *moveInput) error {
		from, err := localServer(c, in.config)
		if err != nil {
			return err
		}
		to, err := newSettings(c, c.args[0], from)
		if err != nil {
			return err
		}
		moved, err := server.Move(ctx, from, to, server.MoveOptions{
			Progress: backupProgress(c.app), Say: func(text string) { c.hint("%s", text) },
			Log: slog.New(slog.NewTextHandler(c.system.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if err != nil {
			return err
		}
		return printBackup(c.printer(), moved, movedWords(c, moved)...)
	},
}

// newSettings are those of a file alone: variables and flags say how the server is now. The data directory stays.
func newSettings(c *call, path string, from settings.Config) (settings.Config, error) {
	config := settings.Default()
	alone := &app{system: System{Err: c.system.Err}, quiet: c.quiet}
	if err := serverSettings().load(alone, path, pflag.NewFlagSet("", pflag.ContinueOnError), &config); err != nil {
		return config, err
	}
	if config.Data == settings.Default().Data {
		config.Data = from.Data
	}
	return config, config.Check()
}

func movedWords(c *call, m server.Moved) (lines []string) {
	if m.Already {
		return []string{"The records are in " + m.Records.To + " already: start the server with --config " + c.args[0]}
	}
	if r := m.Records; r != nil && r.Tables > 0 {
		lines = append(lines, fmt.Sprintf("Moved the records from %s to %s: %s of %s, compared row by row",
			r.From, r.To, fault.Count(r.Rows, "row"), fault.Count(r.Tables, "table")))
	} else if r != nil {
		lines = append(lines, fmt.Sprintf("Moved the records from %s to %s: the last step was missing", r.From, r.To))
	}
	if b := m.Content; b != nil {
		lines = append(lines, fmt.Sprintf("Moved the content from %s to %s: %s, %d of them copied (%s), %d while the server was stopped",
			b.From, b.To, fault.Count(b.Blobs, "blob"), b.New, print.Bytes(b.Bytes), b.Late))
		for _, d := range b.Damaged {
			c.hint("left out: blob %s is damaged in %s", d, b.From)
		}
	}
	stopped := time.Duration(m.Stopped * float64(time.Second)).Round(100 * time.Millisecond)
	return append(lines, fmt.Sprintf("The server had to be stopped for %s. Start it now: tutti server --config %s", stopped, c.args[0]))
}

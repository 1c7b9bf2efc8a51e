package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/backup"
)

var backupCommand = noun{
	use: "backup", short: "Back up a server, and bring it back",
	verbs: []declared{backupCreate, backupList, backupVerify, backupRestore, backupAccept, backupKey},
}

// serverFlags name the server whose files a command opens itself.
func serverFlags(f flagSet, config *string) {
	f.String("data", settings.Default().Data, "the server's data directory (TUTTI_DATA)")
	f.String("database", "", "the server's database, if it is PostgreSQL (TUTTI_DATABASE)")
	f.String("blobs", "", "where its content is, if it is an S3 store (TUTTI_BLOBS)")
	f.StringVar(config, "config", "", "the server's configuration file (TUTTI_CONFIG)")
}

func localServer(c *call, path string) (settings.Config, error) {
	return loadConfig(c.app, first(path, c.system.Getenv("TUTTI_CONFIG")), c.cmd.Flags())
}

type backupCreateInput struct {
	key    lockFlags
	config string
}

var backupCreate = verb[backupCreateInput]{
	use: "create FILE|DIR", short: "Back up a server while it runs",
	long: `Back up a server: its records, the content that they name, its CA, keys and configuration file, as they are at one moment.
The server may run. FILE is a new file. DIR is a directory of backups (give it with a / at its end to make it): each holds
only the content that those before it do not have.

A backup holds the CA's private key, so it is always encrypted: to age public keys (--recipient), whose private keys this
machine does not need, or to a passphrase. Who runs this must be able to read the data directory.`,
	example: "  tutti backup create /mnt/backup/tutti/ --recipient age1...\n  tutti backup create tutti.backup --passphrase-file /root/passphrase",
	flags: func(f flagSet, in *backupCreateInput) {
		serverFlags(f, &in.config)
		in.key.add(f)
	},
	run: func(ctx context.Context, c *call, in *backupCreateInput) error {
		config, err := localServer(c, in.config)
		if err != nil {
			return err
		}
		var file []byte
		if path := first(in.config, c.system.Getenv("TUTTI_CONFIG")); path != "" {
			if file, err = readNamed("the configuration", path); err != nil {
				return err
			}
		}
		lock, err := makeLock(c.app, in.key)
		if err != nil {
			return err
		}
		giveWay()
		r, err := server.Backup(ctx, config, file, c.args[0], lock, backupProgress(c.app))
		if err != nil {
			return err
		}
		for _, d := range r.Damaged {
			c.hint("left out: blob %s is damaged in the server's store", d)
		}
		return printBackup(c.printer(), r, fmt.Sprintf("Backup %s: %s", r.ID, contents(r)),
			fmt.Sprintf("%s new; %s in %s", fault.Are(r.NewBlobs, "blob"), print.Bytes(r.Bytes), r.Path))
	},
}

// contents is what a backup holds, in words.
func contents(r backup.Result) string {
	return fmt.Sprintf("%s of %s, %s, %s (%s)", fault.Count(r.Rows, "row"), fault.Count(r.Tables, "table"), fault.Count(r.Files, "file"),
		fault.Count(r.Blobs, "blob"), print.Bytes(r.BlobBytes))
}

func printBackup(to print.Printer, value any, lines ...string) error {
	if to.ForPrograms() {
		return to.Thing(value)
	}
	return to.Text(strings.Join(lines, "\n") + "\n")
}

// backupProgress says on standard error how far a long work is, every few seconds.
func backupProgress(a *app) server.Progress {
	said := time.Now()
	return func(what string, done, total int64) {
		if time.Since(said) < 5*time.Second {
			return
		}
		said = time.Now()
		if total > 0 {
			a.hint("%d of %d %s", done, total, what)
			return
		}
		a.hint("%d %s", done, what)
	}
}

var backupList = verb[api.Nothing]{
	use: "list DIR", short: "List the backups of a directory",
	prints:  aList,
	long:    "List the backups of a directory, the oldest first. No key is needed; what a backup holds tells tutti backup verify.",
	example: "  tutti backup list /mnt/backup/tutti",
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		list, err := backup.List(c.args[0])
		if err != nil {
			return err
		}
		return print.List(c.printer(), list, print.Table[backup.Listed]{
			Columns: []string{"backup", "made", "size", "file"},
			Row: func(l backup.Listed) []any {
				return []any{l.ID, l.Made, print.Size(l.Bytes), l.Path}
			},
			Name:  func(l backup.Listed) string { return l.ID },
			Empty: "No backups.",
		})
	},
}

type backupVerifyInput struct {
	key keyFlags
	id  string
}

var backupVerify = verb[backupVerifyInput]{
	use: "verify FILE|DIR", short: "Read a whole backup, and say whether it is as it was written",
	long: `Read a whole backup with all content that belongs to it, compare every part with its digest, and say what it holds. Of a
directory that is the newest one, or the one that --backup names. The server is not needed.`,
	example: "  tutti backup verify tutti.backup --passphrase-file /root/passphrase\n  tutti backup verify /mnt/backup/tutti --identity-file key.txt",
	flags: func(f flagSet, in *backupVerifyInput) {
		f.StringVar(&in.id, "backup", "", "which backup of a directory; default: the newest")
		in.key.add(f)
	},
	run: func(ctx context.Context, c *call, in *backupVerifyInput) error {
		k, err := readKey(c.app, in.key)
		if err != nil {
			return err
		}
		r, err := backup.Verify(ctx, c.args[0], in.id, k, backupProgress(c.app))
		if err != nil {
			return err
		}
		return printBackup(c.printer(), r, fmt.Sprintf("Backup %s is whole: %s", r.ID, contents(r)),
			fmt.Sprintf("made %s by tutti %s on %s, schema %d", r.Made.Format(time.RFC3339), cmp.Or(r.Tutti, "(unknown)"), r.Schema.Engine, r.Schema.Number))
	},
}

type backupRestoreInput struct {
	key              keyFlags
	config, id, only string
}

var backupRestore = verb[backupRestoreInput]{
	use: "restore FILE|DIR", short: "Bring a server back from a backup",
	long: `Bring a server back: on this machine or another one, in any data directory, on SQLite or PostgreSQL, whatever it was on.
The data directory and the database must be empty; nothing is overwritten. Nodes go on as if nothing had happened when they
reach the server under one of its names.

Jobs that were under way are stopped and releases are paused, with that reason: time has passed since the backup, so
somebody says that they are still meant (tutti job rerun, tutti release resume). The configuration file of the backup is
put beside the data as settings-of-backup.yaml; no server reads it there.

With --only one part is restored, when the rest is there: ca, records or blobs. See docs/disaster.md.`,
	example: `  tutti backup restore /mnt/backup/tutti --identity-file key.txt --data /var/lib/tutti
  tutti backup restore tutti.backup --passphrase-file /root/passphrase --database postgres://tutti@db.example.test/tutti`,
	flags: func(f flagSet, in *backupRestoreInput) {
		serverFlags(f, &in.config)
		in.key.add(f)
		f.StringVar(&in.id, "backup", "", "which backup of a directory; default: the newest")
		f.StringVar(&in.only, "only", "", "restore one part: ca, records or blobs")
	},
	run: func(ctx context.Context, c *call, in *backupRestoreInput) error {
		share := backup.Share(in.only)
		if err := checkShare(share); err != nil {
			return err
		}
		config, err := localServer(c, in.config)
		if err != nil {
			return err
		}
		k, err := readKey(c.app, in.key)
		if err != nil {
			return err
		}
		r, err := server.Restore(ctx, config, server.RestoreOptions{
			Source: c.args[0], ID: in.id, Key: k, Share: share, Progress: backupProgress(c.app), Err: c.system.Err,
		})
		if err != nil {
			return err
		}
		what := cmp.Or(map[backup.Share]string{backup.OnlyCA: "the CA of ", backup.OnlyRows: "the records of ", backup.OnlyBlobs: "the blobs of "}[share], "all of ")
		lines := []string{fmt.Sprintf("Restored %sbackup %s, made %s, into %s", what, r.ID, r.Made.Format(time.RFC3339), r.Data)}
		for what, ids := range map[string][]int64{"stopped job": r.Jobs, "paused release": r.Releases} {
			for _, id := range ids {
				lines = append(lines, fmt.Sprintf("%s %d, which was under way", what, id))
			}
		}
		return printBackup(c.printer(), r, lines...)
	},
}

func checkShare(share backup.Share) error {
	if share == backup.Everything {
		return nil
	}
	var names []string
	for _, s := range backup.Shares() {
		if s == share {
			return nil
		}
		names = append(names, string(s))
	}
	return usageError{fault.New(fault.Invalid, "--only %q is none of %s", share, strings.Join(names, ", "))}
}

type backupAcceptInput struct {
	config string
}

var backupAccept = verb[backupAcceptInput]{
	use: "accept", short: "Use a database as it is that a server refuses to start on",
	long: `A server refuses a tutti.db that was copied while a server used it, without its log, or that is not the one that was used
last. A backup is what helps then. If there is none, this looks whether the file is whole in itself, and lets a server use
it. What was written last is lost; see docs/disaster.md. The server must not run.

A server also refuses records, in SQLite or PostgreSQL, that moved away (tutti move). This lets it use them again, without what happened
since they moved.`,
	example: "  tutti backup accept --data /var/lib/tutti",
	flags:   func(f flagSet, in *backupAcceptInput) { serverFlags(f, &in.config) },
	run: func(ctx context.Context, c *call, in *backupAcceptInput) error {
		config, err := localServer(c, in.config)
		if err != nil {
			return err
		}
		accepted, err := server.AcceptDatabase(ctx, config)
		if err != nil {
			return err
		}
		return printBackup(c.printer(), map[string]string{"accepted": accepted}, accepted+" is whole in itself; a server will use it as it is")
	},
}

var backupKey = verb[api.Nothing]{
	use: "key FILE", short: "Make an age key for backups: the private key into a new file, the public one on standard output",
	long: `Make an age key, as age-keygen does: the private key goes into a new file, the public one is printed. Backups are made with the
public key alone. Keep the private key where the server is not: who has it and a backup has the CA.`,
	example: "  tutti backup key tutti-backups.key > tutti-backups.pub",
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		public, err := backup.NewKeyFile(c.args[0])
		if err != nil {
			return err
		}
		return printBackup(c.printer(), map[string]string{"public_key": public, "file": c.args[0]}, public)
	},
}

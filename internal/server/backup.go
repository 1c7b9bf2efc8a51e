package server

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// Progress is told how far a long work is; total 0: not known.
type Progress func(what string, done, total int64)

// Backup backs up the server of a configuration, whether it runs or not. Settings is the text of
// its configuration file; nil: it has none.
func Backup(ctx context.Context, c settings.Config, settings []byte, target string, lock backup.Lock, progress Progress) (backup.Result, error) {
	dir, err := filepath.Abs(c.Data)
	if err != nil {
		return backup.Result{}, err
	}
	if err := backup.CheckDataDir(dir); err != nil {
		return backup.Result{}, err
	}
	if err := datadir.CheckUsed(dir); err != nil {
		return backup.Result{}, err
	}
	return backup.Create(ctx, backup.Source{
		Dir: dir, Settings: settings, Tutti: api.ProgramVersion(), Now: time.Now(), Progress: progress,
		Records: func(ctx context.Context) (backup.Records, error) { return sql.OpenDump(ctx, c.Records(dir)) },
		Blobs: func(ctx context.Context) (backup.Blobs, error) {
			return contentBeside(ctx, c, c.Blobs, dir)
		},
	}, target, lock)
}

// Restored is what became of a restore.
type Restored struct {
	backup.Result
	Share    backup.Share `json:"only,omitempty"`
	Data     string       `json:"data"`
	Jobs     []int64      `json:"stopped_jobs"`
	Releases []int64      `json:"paused_releases"`
}

// RestoreOptions says what is restored.
type RestoreOptions struct {
	Source   string // a file, or a directory of backups
	ID       string // of a directory: which one; empty: the newest
	Key      backup.Key
	Share    backup.Share
	Progress Progress
	Err      io.Writer // the log
}

// Restore brings a backup back into the data directory and database of a configuration, which
// must be empty. Jobs and releases that were under way are stopped and paused: time has passed, and
// somebody has to say that they are still meant.
func Restore(ctx context.Context, c settings.Config, o RestoreOptions) (r Restored, err error) {
	r = Restored{Share: o.Share, Jobs: []int64{}, Releases: []int64{}}
	if r.Data, err = filepath.Abs(c.Data); err != nil {
		return r, err
	}
	if err := backup.CheckEmpty(r.Data, o.Share); err != nil {
		return r, err
	}
	if err := backup.CheckKey(o.Source, o.ID, o.Key); err != nil {
		return r, err
	}
	data, err := datadir.Open(r.Data)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	log := newLogger(c, o.Err).Logger
	blobs, err := fillContent(ctx, c, c.Blobs, r.Data, os.TempDir(), log)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, blobs.settle(context.WithoutCancel(ctx))) }()
	to := backup.Destination{
		Dir: r.Data, Share: o.Share, Blobs: blobs, Progress: o.Progress,
		Loader: func(ctx context.Context, schema backup.Schema) (backup.Loader, error) {
			return sql.OpenLoader(ctx, c.Records(r.Data), schema)
		},
	}
	if o.Share == backup.Everything || o.Share == backup.OnlyRows {
		to.Settle = func(ctx context.Context, h backup.Header) error { return r.settle(ctx, c, h, o.Err) }
	}
	r.Result, err = backup.Restore(ctx, o.Source, o.ID, o.Key, to)
	return r, err
}

// settle stops jobs and pauses releases that were under way, and forgets what the records knew of a store of content: time has passed there, too.
// The leases of the servers from before are over: their holders will not renew them, and one of a single server lasts for days.
func (r *Restored) settle(ctx context.Context, c settings.Config, h backup.Header, errOut io.Writer) error {
	log := newLogger(c, errOut)
	store, err := sql.Open(ctx, c.Records(r.Data), log.Logger)
	if err != nil {
		return err
	}
	why := "the server was restored from the backup of " + h.Made.UTC().Format(time.RFC3339)
	//nolint:contextcheck // ctx may be over, and the store is closed even so
	return errors.Join(r.stopJobs(ctx, store, why), r.pauseReleases(ctx, store, why), store.BlobMarks.Unpair(ctx), store.Leases.Free(ctx), store.Close())
}

func (r *Restored) stopJobs(ctx context.Context, store *sql.Store, why string) error {
	jobs, err := store.Jobs.Unended(ctx)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if _, err := store.Jobs.Direct(ctx, j.ID, job.Direction{Reason: "stopped, for " + why, At: time.Now()}); err != nil {
			return err
		}
		r.Jobs = append(r.Jobs, j.ID)
	}
	return nil
}

// pauseReleases pauses those that run, and those that a freeze would let go by itself.
func (r *Restored) pauseReleases(ctx context.Context, store *sql.Store, why string) error {
	service := release.NewService(release.Config{Store: store.Releases})
	actor := fleet.Actor{Kind: fleet.UserActor, Name: "restore"}
	for page := (release.Page{Limit: 100, States: []release.State{release.Running, release.Paused}}); ; {
		list, err := store.Releases.Releases(ctx, page)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, one := range list {
			page.Before = one.ID
			if one.State == release.Paused && one.Hold != release.Frozen {
				continue
			}
			if _, err := service.Control.Pause(ctx, actor, one.ID, why); err != nil {
				return err
			}
			r.Releases = append(r.Releases, one.ID)
		}
	}
}

// AcceptDatabase makes the database file of a data directory usable that a server refuses because
// it was copied without its log, or put in the place of another one. Records of either kind that moved away count again.
func AcceptDatabase(ctx context.Context, c settings.Config) (accepted string, err error) {
	if c.Database != "" {
		moved, err := sql.AcceptMoved(ctx, c.Records(c.Data))
		if err == nil && !moved {
			err = fault.New(fault.Invalid, "the records are in PostgreSQL, and did not move away: there is nothing to accept")
		}
		return c.Records(c.Data).Name(), err
	}
	data, err := datadir.OpenUsed(c.Data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	path := data.Join("tutti.db")
	return path, sql.Accept(ctx, path)
}

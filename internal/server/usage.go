package server

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/store/sql"
	"github.com/tutti-project/tutti/internal/store/usage"
)

// The parts of the data that are no tables.
const (
	backedUp    = "content: backed-up files"
	otherBlobs  = "content: code, catalogs, files of jobs"
	cachedBlobs = "cached content"
	workspaces  = "work directories"
	databaseLog = "database: log, free pages, copies"
	otherTables = "records: other"
)

// tableAreas is which part of the data a table belongs to, by the beginning of its name; the longest one counts.
var tableAreas = map[string]string{
	"fact": "records: facts", "indexed": "records: facts", "node": "records: nodes and packages", "package": "records: nodes and packages",
	"catalog": "records: catalogs", "resource": "records: catalogs", "edges": "records: catalogs", "collected": "records: catalogs",
	"generations": "records: catalogs", "deliver": "records: catalogs", "standings": "records: catalogs",
	"compil": "records: compilations", "input_": "records: compilations", "verifications": "records: compilations", "recorded_": "records: compilations",
	"report": "records: reports", "events": "records: reports", "run_events": "records: events of runs", "event_": "records: events of runs",
	"job": "records: jobs", "calls": "records: jobs", "preview": "records: previews and releases", "release": "records: previews and releases",
	"agents": "records: nodes and packages", "module_": "records: nodes and packages", "set_modules": "records: nodes and packages",
	"act": "records: audit log", "certificates": "records: certificates", "requests": "records: certificates", "backups": "records: backed-up files",
	"versions": "records: code", "staged_": "records: code", "code_": "records: code", "blob_": "records: content",
}

func areaOf(table string) string {
	longest := ""
	for prefix := range tableAreas {
		if strings.HasPrefix(table, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		return otherTables
	}
	return tableAreas[longest]
}

// usageEvery is how often it is measured at most: that reads all pages of a SQLite file.
const usageEvery = time.Minute

// usages measures what the data takes.
type usages struct {
	path      string // of the data directory
	elsewhere bool   // the records are in a database beside it
	disk      *datadir.Disk
	tables    *sql.Usage
	backups   *sql.Backups

	mu    sync.Mutex // held while somebody measures; the others wait for that
	at    time.Time
	areas []usage.Area
}

// Usage implements rest.Usages.
func (u *usages) Usage(ctx context.Context) ([]usage.Area, time.Time, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if now.Sub(u.at) < usageEvery {
		return u.areas, u.at, nil
	}
	sizes, err := u.measure(ctx)
	if err != nil {
		return nil, now, err
	}
	before, err := u.tables.UsageSamples(ctx, now.Add(-usage.Span))
	if err != nil {
		return nil, now, err
	}
	areas := usage.Grown(now, sizes, before)
	for i := range areas {
		areas[i].Elsewhere = u.elsewhere && strings.HasPrefix(areas[i].Name, "records: ")
	}
	u.at, u.areas = now, areas
	return u.areas, u.at, nil
}

// Disk implements rest.Usages.
func (u *usages) Disk() (free int64, full bool) {
	u.disk.Look(time.Now())
	return u.disk.State()
}

// sample keeps what is used today, if nobody did so, and forgets what was long ago.
func (u *usages) sample(ctx context.Context, now time.Time) (int, error) {
	sizes, err := u.measure(ctx)
	if err != nil {
		return 0, err
	}
	samples := make([]usage.Sample, 0, len(sizes))
	for area, bytes := range sizes {
		samples = append(samples, usage.Sample{At: now, Area: area, Bytes: bytes})
	}
	if err := u.tables.SaveUsage(ctx, samples); err != nil {
		return 0, err
	}
	return u.tables.PruneUsage(ctx, now.Add(-usage.Keep))
}

// measure is what each part takes now. With PostgreSQL the records are elsewhere, and counted nevertheless.
func (u *usages) measure(ctx context.Context) (map[string]int64, error) {
	tables, err := u.tables.TableBytes(ctx)
	if err != nil {
		return nil, err
	}
	sizes, inTables := map[string]int64{}, int64(0)
	for table, bytes := range tables {
		sizes[areaOf(table)] += bytes
		inTables += bytes
	}
	if sizes[backedUp], err = u.backups.BackupBytes(ctx); err != nil {
		return nil, err
	}
	var blobs, database int64
	err = filepath.WalkDir(u.path, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // gone meanwhile, or a cell's own
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		switch name, _ := filepath.Rel(u.path, path); {
		case strings.HasPrefix(name, cacheDir+string(filepath.Separator)):
			sizes[cachedBlobs] += info.Size()
		case strings.HasPrefix(name, blobsDir+string(filepath.Separator)):
			blobs += info.Size()
		case strings.HasPrefix(name, "tutti.db"):
			database += info.Size()
		default:
			sizes[workspaces] += info.Size()
		}
		return nil
	})
	sizes[otherBlobs] = max(blobs-sizes[backedUp], 0)
	if database > 0 { // SQLite
		sizes[databaseLog] = max(database-inTables, 0)
	}
	return sizes, err
}

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/filelock"
	"github.com/tutti-project/tutti/internal/store/move"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// Moved is what became of a move.
type Moved struct {
	Records *MovedRecords `json:"records,omitempty"` // nil: they stayed
	Content *MovedContent `json:"content,omitempty"`
	Stopped float64       `json:"stopped_seconds"` // how long the server had to be stopped
	Already bool          `json:"already,omitempty"`
}

// MovedRecords is what became of the records.
type MovedRecords struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Tables int    `json:"tables"`
	Rows   int64  `json:"rows"`
}

// MovedContent is what became of the content.
type MovedContent struct {
	From    string         `json:"from"`
	To      string         `json:"to"`
	Blobs   int64          `json:"blobs"`
	New     int64          `json:"new"`  // the others were there
	Late    int64          `json:"late"` // of the new ones, that were copied while the server was stopped
	Bytes   int64          `json:"bytes"`
	Damaged []fleet.Digest `json:"damaged,omitempty"` // left out
}

// MoveOptions says who is told of a move.
type MoveOptions struct {
	Progress Progress
	Say      func(text string) // what a person has to do now
	Log      *slog.Logger
}

// Move takes a server's records and content from where one configuration has them to where another one does. The server may run while
// content is copied. Then it has to be stopped: Move says so, waits for it, and goes on.
func Move(ctx context.Context, from, to settings.Config, o MoveOptions) (m Moved, err error) {
	o.Progress = inTurn(o.Progress)
	v := mover{from: from, to: to, MoveOptions: o}
	if err := v.plan(&m); err != nil {
		return m, err
	}
	if m.Records != nil {
		step, err := v.look(ctx)
		if err != nil {
			return m, err
		}
		if step == move.Done {
			m.Already = true
			return m, v.lookForContent(ctx, m.Content)
		}
	}
	if m.Content != nil {
		if err := v.content(ctx, m.Content); err != nil {
			return m, err
		}
	}
	held, err := v.stopped(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, held.close()) }()
	began := time.Now()
	if err := v.rest(ctx, held, &m); err != nil {
		return m, err
	}
	m.Stopped = time.Since(began).Seconds()
	return m, nil
}

// inTurn lets records and content, which are copied at the same time, tell one after the other.
func inTurn(tell Progress) Progress {
	var turn sync.Mutex
	return func(what string, done, total int64) {
		turn.Lock()
		defer turn.Unlock()
		tell(what, done, total)
	}
}

// mover is a move.
type mover struct {
	MoveOptions
	from, to settings.Config
	data     string
}

// plan says what moves. Invalid when nothing does.
func (v *mover) plan(m *Moved) (err error) {
	if v.data, err = filepath.Abs(v.from.Data); err != nil {
		return notAbsolute(v.from.Data, err)
	}
	other, err := filepath.Abs(v.to.Data)
	if err != nil {
		return notAbsolute(v.to.Data, err)
	}
	if other != v.data {
		return fault.New(fault.Invalid,
			"the new settings name the data directory %s, which is %s from here, and the server has %s: a move keeps the data directory", v.to.Data, other, v.data)
	}
	if err := errors.Join(datadir.CheckUsed(v.data), backup.CheckDataDir(v.data)); err != nil {
		return err
	}
	if v.to.Cluster {
		if _, err := datadir.ClusterKey(v.to.ClusterKeyFile); err != nil {
			return err
		}
	}
	if from, to := v.from.Records(v.data).Name(), v.to.Records(v.data).Name(); from != to {
		m.Records = &MovedRecords{From: from, To: to}
	}
	if from, to := placeOf(v.from), placeOf(v.to); from != to {
		m.Content = &MovedContent{From: from, To: to}
	}
	if m.Records == nil && m.Content == nil {
		return fault.New(fault.Invalid, "the new settings name the same database and the same store of content: set database, blobs, or both, in them")
	}
	return nil
}

// notAbsolute refuses a path of which it is not known where it is.
func notAbsolute(path string, err error) error {
	return fault.Wrap(fault.Invalid, err,
		"the data directory %s is not absolute, and the directory that it begins in cannot be found (%v): "+
			"name it from /, or go to another directory", path, err)
}

// placeOf is where content is, in words.
func placeOf(c settings.Config) string {
	if !c.BlobsElsewhere() {
		return settings.BlobsInDirectory
	}
	if c.BlobsEndpoint == "" {
		return c.Blobs
	}
	return c.Blobs + " at " + c.BlobsEndpoint
}

// look looks at both databases while the server may run: what cannot be must be said before it is stopped.
func (v *mover) look(ctx context.Context) (move.Step, error) {
	from, err := sql.StandingOf(ctx, v.from.Records(v.data))
	if err != nil {
		return 0, err
	}
	to, err := sql.StandingOf(ctx, v.to.Records(v.data))
	if err != nil {
		return 0, err
	}
	step, err := move.Next(from, to)
	if err == nil && step == move.Copy {
		err = sql.CheckSchema(ctx, v.from.Records(v.data))
	}
	return step, err
}

// content copies what is missing.
func (v *mover) content(ctx context.Context, m *MovedContent) error {
	from, to := v.places()
	copied, err := copyContent(ctx, from, to, v.data, os.TempDir(), v.Log, v.Progress)
	m.Blobs, m.New, m.Bytes, m.Damaged = copied.Blobs, m.New+copied.New, m.Bytes+copied.Bytes, copied.Damaged
	return err
}

func (v *mover) places() (from, to place) {
	where := func(c settings.Config) place {
		if c.BlobsElsewhere() {
			return place{c, c.Blobs}
		}
		return place{c, settings.BlobsInDirectory}
	}
	return where(v.from), where(v.to)
}

// contentAgain copies what came meanwhile, and compares what both stores have.
func (v *mover) contentAgain(ctx context.Context, m *MovedContent) error {
	before := m.New
	if err := v.content(ctx, m); err != nil {
		return err
	}
	m.Late = m.New - before
	lacking, err := v.lacking(ctx)
	if err != nil {
		return err
	}
	lacking = slices.DeleteFunc(lacking, func(d fleet.Digest) bool { return slices.Contains(m.Damaged, d) })
	if len(lacking) > 0 {
		return fault.New(fault.Conflict, "%s missing in %s after the copy, such as %s; the server can be started with the settings that it had",
			fault.Are(len(lacking), "blob"), m.To, lacking[0])
	}
	return nil
}

// lookForContent says what is missing when the records have moved already: with another configuration file they may have moved without the content. A
// server that has used the new records since may also have removed it.
func (v *mover) lookForContent(ctx context.Context, m *MovedContent) error {
	if m == nil {
		return nil
	}
	lacking, err := v.lacking(ctx)
	if err == nil && len(lacking) > 0 {
		v.Say(fmt.Sprintf("%s in %s and not in %s, such as %s. If the records moved without the content, name their database in the settings of the server (--config), and "+
			"run this again", fault.Are(len(lacking), "blob"), m.From, m.To, lacking[0]))
	}
	return err
}

// lacking is the content that the new store does not have. Both are listed anew.
func (v *mover) lacking(ctx context.Context) (lacking []fleet.Digest, err error) {
	from, to := v.places()
	source, err := contentBeside(ctx, from.Config, from.where, v.data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := contentBeside(ctx, to.Config, to.where, v.data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return cas.Lacking(ctx, source, target)
}

// heldServer is a server that is stopped, and stays so.
type heldServer struct {
	data   *datadir.Dir
	source *sql.MoveSource // nil: they are a file of the data directory, and stay
}

func (h heldServer) close() (err error) {
	if h.source != nil {
		err = h.source.Close()
	}
	return errors.Join(err, h.data.Close())
}

// lookEvery is how often a move looks whether the server has stopped.
const lookEvery = 50 * time.Millisecond

// stopped waits until no server uses the data directory, nor the records: of several servers, none adds to the content.
func (v *mover) stopped(ctx context.Context) (heldServer, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	said := ""
	for {
		held, err := v.hold(ctx)
		if !errors.Is(err, filelock.ErrHeld) && !errors.Is(err, sql.ErrInUse) {
			return held, err
		}
		why := "a server uses " + v.data
		if errors.Is(err, sql.ErrInUse) {
			why = fault.Detail(err)
		}
		if why != said {
			said = why
			v.Say("Stop the server now: " + why + ". The move goes on by itself then")
		}
		select {
		case <-ctx.Done():
			return held, fault.Wrap(fault.Unavailable, ctx.Err(), "the server was not stopped: nothing has changed")
		case <-tick.C:
		}
	}
}

func (v *mover) hold(ctx context.Context) (h heldServer, err error) {
	if h.data, err = datadir.OpenUsed(v.data); err != nil {
		return h, err
	}
	from := v.from.Records(v.data)
	if from.URL == "" && from.Name() == v.to.Records(v.data).Name() {
		return h, nil
	}
	if h.source, err = sql.OpenMoveSource(ctx, from); err != nil {
		return heldServer{}, errors.Join(err, h.data.Close())
	}
	return h, nil
}

// rest is what is done while the server is stopped.
func (v *mover) rest(ctx context.Context, held heldServer, m *Moved) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	content := make(chan error, 1)
	go func() {
		if m.Content == nil {
			content <- nil
			return
		}
		content <- v.contentAgain(ctx, m.Content)
	}()
	if m.Records == nil {
		return <-content
	}
	ready := false
	done, err := move.Run(ctx, move.Plan{
		From: held.source, To: sql.MoveTarget{Config: v.to.Records(v.data)}, ID: uuid.NewString(), Now: time.Now(), Progress: v.Progress,
		Ready: func(context.Context) error {
			ready = true
			return <-content
		},
	})
	m.Records.Tables, m.Records.Rows, m.Already = done.Tables, done.Rows, done.Step == move.Done
	if !ready { // it ended before
		stop()
		err = errors.Join(err, ignoreCancelled(<-content))
	}
	if err != nil {
		return fmt.Errorf("move the records: %w", err)
	}
	return nil
}

func ignoreCancelled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

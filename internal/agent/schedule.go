package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/internal/agent/builtin/puppet"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/schedule"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// gap is the least time between runs that are told.
const gap = time.Minute

func (c Config) checkRuns() error {
	if c.Runs != RunsOff && c.Runs != RunsScheduled {
		return bad("runs", "%q is none of scheduled and off", c.Runs)
	}
	if err := c.timetable("").Check(); err != nil {
		return bad("run_interval, run_splay", "%s", fault.Detail(err))
	}
	return nil
}

// timetable is when a node runs.
func (c Config) timetable(node string) schedule.Config {
	r := schedule.Config{Node: node, Interval: c.RunInterval, Splay: c.RunSplay, Gap: min(gap, c.RunInterval)}
	if r.Splay == 0 {
		r.Splay = r.Interval
	}
	return r
}

// newSchedule is nil when runs are off.
func (d *daemon) newSchedule() (*schedule.Engine, error) {
	if d.Runs != RunsScheduled {
		return nil, nil //nolint:nilnil // there is none
	}
	node := string(d.id.Name())
	return schedule.New(d.timetable(node), runner{d}, freshener{d}, stateFile{filepath.Join(d.Data, "runs.json")}, d.log)
}

// openCatalogs makes what keeps catalogs and reports.
func (d *daemon) openCatalogs() error {
	node, client := string(d.id.Name()), d.filesClient()
	d.catalogs = &catalogs{dir: filepath.Join(d.Data, "catalogs"), node: node, servers: d.primaries(), client: client, log: d.log}
	d.reports = &reports{dir: filepath.Join(d.Data, "reports"), node: node, servers: d.primaries(), client: client, keep: d.SpoolTTL, log: d.log}
	return d.catalogs.open()
}

// runner does scheduled runs as orders.
type runner struct{ *daemon }

// Begin implements schedule.Runner. A node that has no catalog yet asks for one as any puppet agent does.
func (r runner) Begin(ctx context.Context, run string) error {
	flags := []string{"--no-splay"} // puppet's own would be slept through
	if r.RunNoop {
		flags = append(flags, "--noop")
	}
	if r.catalogs.Current() != nil {
		flags = append(flags, orders.UseCachedCatalog)
	}
	return r.engine.Begin(ctx, orders.Order{
		Transaction: run, Module: pxp.Puppet, Action: pxp.Run, Params: pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: flags}),
	})
}

// Await implements schedule.Runner.
func (r runner) Await(ctx context.Context, run string) (schedule.Outcome, error) {
	defer r.unsent.give()
	record, output, err := r.engine.Await(ctx, run)
	if err != nil {
		return schedule.Outcome{}, err
	}
	return outcomeOf(record, output), nil
}

// isPuppetRun says whether a transaction was a Puppet run, in whichever words it was ordered.
func isPuppetRun(r orders.Record) bool {
	return r.Module == pxp.Puppet || r.Module == puppet.Name && r.Action == puppet.RunOnce
}

// outcomeOf is what came of a Puppet run.
func outcomeOf(r orders.Record, o orders.Output) schedule.Outcome {
	var results pxp.PuppetResults
	if err := json.Unmarshal(bytes.TrimSpace(o.Stdout), &results); r.Error != "" || err != nil {
		detail := r.Error
		if detail == "" {
			detail = pxp.Vanished
		}
		return schedule.Outcome{Status: schedule.NotDone, Detail: detail}
	}
	out := schedule.Outcome{Status: schedule.NotDone, Detail: results.Error, Catalog: results.Catalog}
	if results.ErrorType == pxp.AgentDisabled {
		out.Status = schedule.Disabled
		return out
	}
	switch s := schedule.Status(results.Status); s {
	case schedule.Changed, schedule.Unchanged, schedule.Failed:
		out.Status, out.UUID, out.Pending = s, results.TransactionUUID, results.Pending
		if results.ErrorType == pxp.OtherCatalog {
			out.Status = schedule.Failed
		}
	case schedule.Disabled, schedule.NotDone: // puppet has no such words
	}
	return out
}

// freshener asks for the newest catalog before a run.
type freshener struct{ *daemon }

// Refresh implements schedule.Catalogs.
func (f freshener) Refresh(ctx context.Context) { _ = f.refreshCatalog(ctx) }

func (d *daemon) refreshCatalog(ctx context.Context) error {
	err := d.catalogs.Refresh(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
	case fault.Of(err) == fault.NotFound:
		d.log.DebugContext(ctx, "no catalog for this node yet", "err", err)
	default:
		d.log.WarnContext(ctx, "catalog not refreshed, will retry", "err", err)
	}
	return err
}

// releasedTime is how long a run waits for what was released to its node: what is kept is good then.
const releasedTime = time.Minute

// releasedMode is how a pointer says that its node has what was released to it.
const releasedMode = "released"

// released is what was released to this node, fetched if it is new; nil in live mode, and while nothing was.
func (d *daemon) released(ctx context.Context) *pxp.PuppetCatalog {
	ctx, cancel := context.WithTimeout(ctx, releasedTime)
	defer cancel()
	if err := d.refreshCatalog(ctx); fault.Is(err, fault.NotFound) {
		return nil
	}
	if d.catalogs.now().Mode != releasedMode {
		return nil
	}
	return d.catalogs.Current()
}

// told is called with each hint of a server.
func (d *daemon) told(c pxp.CatalogChange) {
	if c.Apply == pxp.ApplyNow {
		d.applyNow.Store(true)
	}
	d.changed.give()
	d.supplies.give() // a release may come with another version of the code
}

// keepCatalogs fetches the catalog when there may be another one: after connecting, after a hint, and from time to time.
func (d *daemon) keepCatalogs(ctx context.Context) error {
	pause, pauses := firstLook, pauses{poll: d.CatalogPoll}
	for ctx.Err() == nil {
		d.changed.await(ctx, pause)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		err := d.refreshCatalog(ctx)
		pause = pauses.next(err != nil && fault.Of(err) != fault.NotFound)
		if err == nil && d.applyNow.Swap(false) && d.schedule != nil {
			d.schedule.Tell(ctx)
		}
	}
	return nil
}

// reportPause is how often reports that wait are tried, beside when a server comes back.
const reportPause = 10 * time.Minute

// keepReports delivers reports that no server took when they were made.
func (d *daemon) keepReports(ctx context.Context) error {
	for {
		d.unsent.await(ctx, reportPause)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		if err := d.reports.Deliver(ctx); err != nil && ctx.Err() == nil {
			d.log.InfoContext(ctx, "reports wait for a server", "err", err)
		}
	}
}

// standing is what the status says of catalog and runs.
func (d *daemon) standing(s *Status) {
	s.Catalog = d.catalogs.status()
	s.UndeliveredReports = d.reports.Waiting()
	if d.schedule == nil {
		return
	}
	state, next := d.schedule.State()
	s.Runs = Runs{
		Scheduled: true, Noop: d.RunNoop, Interval: d.RunInterval.String(), Running: state.Running != "", Failures: state.Failures, Why: string(next.Why),
	}
	if next.Why != schedule.ByNoReason {
		s.Runs.Next = &next.At
	}
	if l := state.Last; l.Status != "" {
		s.Runs.Last = &ScheduledRun{
			Status: string(l.Status), Pending: l.Pending, Detail: l.Detail, Catalog: l.Catalog, Report: l.UUID, Begin: l.Began, End: state.Ended,
		}
	}
}

func (c *catalogs) status() Kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := Kept{
		Digest: c.kept.Catalog, Mode: c.kept.Mode, Generation: c.kept.Generation, Environment: c.kept.Environment, Version: c.kept.Version, UUID: c.kept.UUID,
		Problem: c.problem,
	}
	if k.Digest != "" {
		fetched := c.kept.Fetched
		k.Fetched = &fetched
	}
	if !c.asked.IsZero() {
		asked := c.asked
		k.Asked = &asked
	}
	return k
}

// stateFile keeps the state of the runs.
type stateFile struct{ path string }

// Load implements schedule.Store.
func (f stateFile) Load() (s schedule.State, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, unwritable(f.path, err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return schedule.State{}, fault.Wrap(fault.Invalid, err, "%s is not what it should be", f.path)
	}
	return s, nil
}

// Save implements schedule.Store.
func (f stateFile) Save(s schedule.State) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return write(f.path, text, 0o600)
}

package rest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Wanting wants catalogs; checkin.Wants does.
type Wanting interface {
	// WantNow wants the catalogs of nodes with a priority, and says which nodes have
	// nothing to be compiled, and why.
	WantNow(ctx context.Context, nodes []fleet.Certname, priority compile.Priority) (wanted []compile.Compilation, refused map[fleet.Certname]string, err error)
}

// How far back finished compilations are counted.
var endedWindows = [...]time.Duration{5 * time.Minute, time.Hour}

// How much of what runs and rests is shown with the queue.
const (
	shownRunning  = 100
	shownTroubles = 20
)

// compilations answers the operations of the compile queue.
type compilations struct {
	gate      *gate
	selector  *selector
	board     compile.Board
	pauses    compile.Pauses
	turns     compile.Turns
	wanting   Wanting
	verifying Verifying
}

func (h *compilations) bindings() []binding {
	return []binding{
		answer(api.CompileQueue, h.showQueue),
		each(answer(api.CompileList, h.listCompilations)),
		each(answer(api.CompileShow, h.showCompilation)),
		each(acting(api.CompileNow, h.mayCompile, h.compileNow)),
		each(acting(api.CompileVerify, h.mayVerify, h.verifyCatalog)),
		each(answer(api.CompileSample, h.sampleNodes)),
		each(answer(api.CompileVerified, h.listVerifications)),
		each(acting(api.CompilePause, h.mayPauseFor, h.pauseCompiling)),
		each(acting(api.CompileResume, h.mayResume, h.resumeCompiling)),
	}
}

func (h *compilations) showQueue(ctx context.Context, _ api.Nothing) (api.CompileQueueStatus, error) {
	status := api.CompileQueueStatus{Lanes: []api.CompileLane{}, Ended: []api.CompileEnded{}, Now: []api.Compilation{}}
	counts, err := h.board.Counts(ctx)
	if err != nil {
		return status, err
	}
	for _, n := range counts {
		status.Wanted, status.Running, status.Resting = status.Wanted+n.Wanted, status.Running+n.Running, status.Resting+n.Resting
		oldest := timeOf(n.Oldest)
		if oldest != nil && (status.Oldest == nil || oldest.Before(*status.Oldest)) {
			status.Oldest = oldest
		}
		status.Lanes = append(status.Lanes, api.CompileLane{
			Priority: n.Priority.String(), Environment: string(n.Environment), Wanted: n.Wanted, Running: n.Running, Resting: n.Resting, Oldest: oldest,
		})
	}
	if status.Pauses, err = h.paused(ctx); err != nil {
		return status, err
	}
	if status.Slowed, err = h.slowed(ctx); err != nil {
		return status, err
	}
	for _, window := range endedWindows {
		ended, err := h.board.Ended(ctx, time.Now().Add(-window))
		if err != nil {
			return status, err
		}
		for _, e := range ended {
			status.Ended = append(status.Ended, api.CompileEnded{
				Seconds: int(window.Seconds()), Environment: string(e.Environment), Compiled: e.Compiled, Reused: e.Reused, Failed: e.Failed,
			})
		}
	}
	if status.Troubles, err = h.troubles(ctx); err != nil {
		return status, err
	}
	// First what runs: after trouble of all, many rest, and would leave no place for it.
	for _, f := range []compile.Filter{{Runs: true}, {Rests: true}} {
		if f.Limit = shownRunning - len(status.Now); f.Limit == 0 {
			break
		}
		rows, err := h.board.List(ctx, f)
		if err != nil {
			return status, err
		}
		for _, c := range rows {
			status.Now = append(status.Now, compilationOf(c))
		}
	}
	return status, nil
}

// troubles lists why attempts could not be made.
func (h *compilations) troubles(ctx context.Context) ([]api.CompileTrouble, error) {
	troubles, err := h.board.Troubles(ctx, shownTroubles)
	list := []api.CompileTrouble{}
	for _, n := range troubles {
		list = append(list, api.CompileTrouble{Trouble: n.Text, Waiting: n.Rows, Next: timeOf(n.Next)})
	}
	return list, err
}

// paused lists the pauses.
func (h *compilations) paused(ctx context.Context) ([]api.CompilePaused, error) {
	pauses, err := h.pauses.Pauses(ctx)
	list := []api.CompilePaused{}
	for _, p := range pauses {
		list = append(list, api.CompilePaused{Environment: string(p.Environment), By: p.By, Reason: p.Reason, At: p.At.UTC()})
	}
	return list, err
}

// slowed lists what is slowed.
func (h *compilations) slowed(ctx context.Context) ([]api.CompileSlowed, error) {
	slowdowns, err := h.turns.Slowdowns(ctx)
	list := []api.CompileSlowed{}
	for _, s := range slowdowns {
		list = append(list, api.CompileSlowed{
			Environment: string(s.Environment), Previews: s.Apart, Version: string(s.Version), Timeouts: s.Timeouts,
			Since: s.Since.UTC(), RestsUntil: s.RestsUntil.UTC(),
		})
	}
	return list, err
}

// compileStates are the words for states that lists can be narrowed to.
var compileStates = map[string]compile.State{
	"": "", "wanted": compile.Wanted, "running": compile.Leased, "resting": compile.Leased, "done": compile.Done, "failed": compile.Failed,
}

func compilationsOf(request api.CompileListRequest) (f compile.Filter, err error) {
	state, known := compileStates[request.State]
	if !known {
		return f, fault.New(fault.Invalid, "state must be wanted, running, resting, done or failed, not %.40q", request.State)
	}
	f = compile.Filter{State: state, Rests: request.State == "resting"}
	if request.Node != "" {
		if f.Node, err = fleet.ParseCertname(request.Node); err != nil {
			return f, err
		}
	}
	if request.Environment != "" {
		if f.Environment, err = fleet.ParseEnvironment(request.Environment); err != nil {
			return f, err
		}
	}
	page, err := pageOf(request.After, request.Limit)
	if err != nil {
		return f, err
	}
	f.Limit = page.Limit
	if request.After != "" {
		if f.Before, err = compilationID(request.After); err != nil {
			return f, err
		}
	}
	f.IDs, err = idsOf(request.IDs)
	return f, err
}

// maxIDs is how many compilations can be asked for by number at once.
const maxIDs = 1000

func idsOf(text string) (ids []int64, err error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > maxIDs {
		return nil, fault.New(fault.Invalid, "ids has %d numbers, at most %d are allowed", len(parts), maxIDs)
	}
	for _, part := range parts {
		id, err := compilationID(part)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func compilationID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, fault.New(fault.Invalid, "%.40q is no number of a compilation", text)
	}
	return id, nil
}

func objectOfCompilation(c compile.Compilation) fleet.Object {
	return fleet.Object{Node: c.Node, Environment: c.Environment}
}

func (h *compilations) listCompilations(ctx context.Context, request api.CompileListRequest) (api.List[api.Compilation], error) {
	list := api.List[api.Compilation]{Items: []api.Compilation{}}
	f, err := compilationsOf(request)
	if err != nil {
		return list, err
	}
	rows, err := h.board.List(ctx, f)
	if err != nil {
		return list, err
	}
	if len(rows) == f.Limit {
		list.Next = strconv.FormatInt(rows[len(rows)-1].ID, 10)
	}
	rows, err = seen(ctx, h.gate, fleet.CatalogRead, rows, objectOfCompilation)
	for _, c := range rows {
		list.Items = append(list.Items, compilationOf(c))
	}
	return list, err
}

func (h *compilations) showCompilation(ctx context.Context, request api.CompileShowRequest) (api.CompilationRecord, error) {
	id, err := compilationID(request.ID)
	if err != nil {
		return api.CompilationRecord{}, err
	}
	c, err := h.board.Record(ctx, id)
	if err != nil {
		return api.CompilationRecord{}, err
	}
	if err := h.gate.allow(ctx, fleet.CatalogRead, objectOfCompilation(c)); err != nil {
		return api.CompilationRecord{}, err
	}
	record := api.CompilationRecord{Compilation: compilationOf(c), FactsSeq: c.FactsSeq, Checks: c.Checks, Logs: []api.CompileLog{}}
	if in := c.Inputs; in != nil {
		record.Inputs = &api.CompileInputs{
			Digest: string(in.Digest()), Engine: in.Engine, Values: len(in.Values), Sources: in.Sources.Count(), Questions: len(in.Asked), Volatile: in.Volatile,
		}
	}
	logs := c.Logs
	if c.Err != nil {
		logs = c.Err.Logs
	}
	for _, l := range logs {
		record.Logs = append(record.Logs, api.CompileLog(l))
	}
	return record, nil
}

// compilationOf is a row as the API shows it.
func compilationOf(c compile.Compilation) api.Compilation {
	shown := api.Compilation{
		ID: c.ID, Node: string(c.Node), Environment: string(c.Environment), Version: string(c.Version), Priority: c.Priority.String(),
		State: string(c.State), Staged: c.Staged, WantedAt: c.WantedAt.UTC(), Attempts: c.Attempts, Trouble: c.Trouble, RestsUntil: timeOf(c.RestsUntil),
		FinishedAt: timeOf(c.FinishedAt), Catalog: string(c.Catalog), Reused: c.State == compile.Done && c.Cost.Wall == 0,
		WallMillis: c.Cost.Wall.Milliseconds(), CPUMillis: c.Cost.CPU.Milliseconds(), PeakBytes: c.Cost.PeakBytes,
	}
	if c.State == compile.Leased {
		shown.State, shown.Worker = "running", c.LeasedBy
		if shown.RestsUntil != nil {
			shown.State = "resting"
		}
	}
	if e := c.Err; e != nil {
		shown.Error = &api.CompileError{Cause: string(e.Cause), Message: e.Told(), File: e.File, Line: e.Line, Pos: e.Pos}
	}
	return shown
}

// byNode is the order in which nodes that nothing can be compiled for are told.
func byNode(refused map[fleet.Certname]string) []api.CompileRefused {
	list := []api.CompileRefused{}
	for node, why := range refused {
		list = append(list, api.CompileRefused{Node: string(node), Why: why})
	}
	slices.SortFunc(list, func(a, b api.CompileRefused) int { return strings.Compare(a.Node, b.Node) })
	return list
}

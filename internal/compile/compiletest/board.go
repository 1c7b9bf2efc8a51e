package compiletest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// inTurn picks the rows that are leased next.
func (q *records) inTurn(o compile.Offer) (picked []*compile.Compilation) {
	lanes, waiting := q.lanes(o)
	turn := int64(0)
	for _, t := range q.turns {
		turn = max(turn, t)
	}
	for len(picked) < o.Rows {
		i := compile.NextLane(lanes, o)
		if i < 0 {
			break
		}
		key := compile.Lane{Priority: lanes[i].Priority, Environment: lanes[i].Environment}
		if len(waiting[key]) == 0 {
			lanes = slices.Delete(lanes, i, i+1)
			continue
		}
		picked, waiting[key] = append(picked, waiting[key][0]), waiting[key][1:]
		turn++
		q.turns[key.Environment] = turn
		compile.TakeTurn(lanes, lanes[i], turn)
	}
	return picked
}

// lanes sorts what may be leased; the keys of waiting are lanes without the rest.
func (q *records) lanes(o compile.Offer) (lanes []compile.Lane, waiting map[compile.Lane][]*compile.Compilation) {
	waiting = map[compile.Lane][]*compile.Compilation{}
	rows := q.find(func(c *compile.Compilation) bool {
		_, paused := compile.PauseOf(q.paused(), c.Environment)
		return c.State == compile.Wanted && c.Priority <= o.Worst && !paused
	})
	slices.SortFunc(rows, func(a, b *compile.Compilation) int {
		return cmp.Or(a.WantedAt.Compare(b.WantedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, c := range rows {
		key := compile.Lane{Priority: c.Priority, Environment: c.Environment}
		if waiting[key] == nil {
			lane := key
			lane.Oldest, lane.Turn = c.WantedAt, q.turns[c.Environment]
			lane.Slow = q.slow[slowKey{c.Environment, c.Priority.Apart()}]
			for _, r := range q.find(func(r *compile.Compilation) bool {
				return r.State == compile.Leased && r.Environment == c.Environment && r.RestsUntil.IsZero()
			}) {
				lane.Running++
				if r.Priority.Apart() == c.Priority.Apart() {
					lane.Kin++
					lane.Here += map[bool]int{true: 1}[r.LeasedBy == o.Worker]
				}
			}
			lanes = append(lanes, lane)
		}
		waiting[key] = append(waiting[key], c)
	}
	return lanes, waiting
}

// Lanes implements compile.Turns.
func (q *Queue) Lanes(_ context.Context, o compile.Offer) ([]compile.Lane, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lanes, _ := q.lanes(o)
	return lanes, q.fail
}

// Slowdowns implements compile.Turns.
func (q *Queue) Slowdowns(context.Context) (list []compile.Slowdown, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.slow {
		if s.Slowed() {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b compile.Slowdown) int {
		if a.Environment == b.Environment && b.Apart {
			return -1
		}
		return cmp.Compare(a.Environment, b.Environment)
	})
	return list, q.fail
}

// slowKey names what is slowed.
type slowKey struct {
	environment fleet.Environment
	apart       bool
}

// Pause implements compile.Pauses.
func (q *Queue) Pause(_ context.Context, p compile.Pause) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	q.pauses[p.Environment] = p
	return nil
}

// Resume implements compile.Pauses.
func (q *Queue) Resume(_ context.Context, env fleet.Environment) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	if _, there := q.pauses[env]; !there {
		return compile.NotPaused(env)
	}
	delete(q.pauses, env)
	return nil
}

// Pauses implements compile.Pauses.
func (q *Queue) Pauses(context.Context) ([]compile.Pause, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.paused(), q.fail
}

func (q *records) paused() []compile.Pause {
	return slices.SortedFunc(maps.Values(q.pauses), func(a, b compile.Pause) int { return cmp.Compare(a.Environment, b.Environment) })
}

// LastFailure implements compile.History.
func (q *Queue) LastFailure(_ context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest) (compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return compile.Compilation{}, q.fail
	}
	rows := q.find(func(c *compile.Compilation) bool {
		return c.State == compile.Failed && c.Order != "" && c.Reach == "" && c.Node == node && c.Environment == env && c.Version == version
	})
	if len(rows) == 0 {
		return compile.Compilation{}, fault.New(fault.NotFound, "no compilation of %s failed", node)
	}
	return *slices.MinFunc(rows, newestFirst), nil
}

// Counts implements compile.Board.
func (q *Queue) Counts(context.Context) ([]compile.Count, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	counts := map[compile.Lane]compile.Count{}
	for _, c := range q.rows {
		if finished(c) {
			continue
		}
		key := compile.Lane{Priority: c.Priority, Environment: c.Environment}
		n := counts[key]
		n.Priority, n.Environment = c.Priority, c.Environment
		switch {
		case c.State == compile.Leased && c.RestsUntil.IsZero():
			n.Running++
		case c.State == compile.Leased:
			n.Resting++
		default:
			n.Wanted++
			if n.Oldest.IsZero() || c.WantedAt.Before(n.Oldest) {
				n.Oldest = c.WantedAt
			}
		}
		counts[key] = n
	}
	return slices.SortedFunc(maps.Values(counts), func(a, b compile.Count) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Environment, b.Environment))
	}), q.fail
}

// List implements compile.Board.
func (q *Queue) List(_ context.Context, f compile.Filter) ([]compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return nil, q.fail
	}
	rows := q.find(func(c *compile.Compilation) bool {
		return (f.Node == "" || c.Node == f.Node) && (f.Environment == "" || c.Environment == f.Environment) &&
			(f.State == "" || c.State == f.State) && (!f.Runs || c.State == compile.Leased && c.RestsUntil.IsZero()) && (!f.Rests || !c.RestsUntil.IsZero()) &&
			(f.Before == 0 || c.ID < f.Before) && (f.IDs == nil || slices.Contains(f.IDs, c.ID))
	})
	slices.SortFunc(rows, newestFirst)
	return values(rows[:min(f.Limit, len(rows))]), nil
}

// Record implements compile.Board.
func (q *Queue) Record(ctx context.Context, id int64) (compile.Compilation, error) {
	c, err := q.Compilation(ctx, id)
	q.mu.Lock()
	defer q.mu.Unlock()
	c.Inputs, c.Logs = q.inputs[id], q.logs[id]
	return c, err
}

// Logs implements compile.Board.
func (q *Queue) Logs(_ context.Context, ids []int64) (map[int64][]compile.Log, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	logs := map[int64][]compile.Log{}
	for _, id := range ids {
		if list, c := q.logs[id], q.rows[id]; len(list) > 0 || c != nil && c.Cost.CPU > 0 {
			logs[id] = slices.Clone(list)
		}
	}
	return logs, nil
}

// Troubles implements compile.Board.
func (q *Queue) Troubles(_ context.Context, most int) ([]compile.Trouble, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	troubles := map[string]compile.Trouble{}
	for _, c := range q.rows {
		if c.Trouble == "" || c.State != compile.Wanted && c.RestsUntil.IsZero() {
			continue
		}
		n, known := troubles[c.Trouble]
		if !known || c.RestsUntil.Before(n.Next) {
			n.Next = c.RestsUntil
		}
		n.Text, n.Rows = c.Trouble, n.Rows+1
		troubles[c.Trouble] = n
	}
	list := slices.SortedFunc(maps.Values(troubles), func(a, b compile.Trouble) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Text, b.Text))
	})
	return list[:min(most, len(list))], q.fail
}

// Ended implements compile.Board.
func (q *Queue) Ended(_ context.Context, since time.Time) ([]compile.Ended, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ended := map[fleet.Environment]compile.Ended{}
	for _, c := range q.rows {
		if !finished(c) || c.FinishedAt.Before(since) {
			continue
		}
		e := ended[c.Environment]
		e.Environment = c.Environment
		switch {
		case c.State == compile.Failed:
			e.Failed++
		case c.Cost.Wall > 0:
			e.Compiled++
		default:
			e.Reused++
		}
		ended[c.Environment] = e
	}
	return slices.SortedFunc(maps.Values(ended), func(a, b compile.Ended) int { return cmp.Compare(a.Environment, b.Environment) }), q.fail
}

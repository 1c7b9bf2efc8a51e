package compiletest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Queue is a queue in memory: what is wanted, leased and ended. Its parts keep what belongs to the same rows.
type Queue struct {
	*records
	Reusables     *Reusables
	Wants         *Wants
	Verifications *Verified
}

// records is what the parts of a Queue share.
type records struct {
	mu    sync.Mutex
	last  int64
	rows  map[int64]*compile.Compilation
	facts map[fleet.Certname]int64
	fail  error

	turns  map[fleet.Environment]int64
	pauses map[fleet.Environment]compile.Pause
	logs   map[int64][]compile.Log
	slow   map[slowKey]compile.Slowdown

	inputs map[int64]*compile.InputSet
	given  map[fleet.Certname]int64 // which compilation gave the newest catalog
	stops  []compile.ReuseStop
	ahead
	verified
}

var (
	_ compile.Queue     = (*Queue)(nil)
	_ compile.History   = (*Queue)(nil)
	_ compile.Pauses    = (*Queue)(nil)
	_ compile.Turns     = (*Queue)(nil)
	_ compile.Board     = (*Queue)(nil)
	_ compile.Breakages = (*Queue)(nil)
	_ compile.Reusables = (*Reusables)(nil)
	_ compile.Wants     = (*Wants)(nil)
	_ compile.Standings = (*Wants)(nil)
	_ compile.Readings  = (*Wants)(nil)

	_ compile.Verifications = (*Verified)(nil)
)

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	r := &records{
		rows: map[int64]*compile.Compilation{}, facts: map[fleet.Certname]int64{},
		turns: map[fleet.Environment]int64{}, pauses: map[fleet.Environment]compile.Pause{}, logs: map[int64][]compile.Log{},
		slow:   map[slowKey]compile.Slowdown{},
		inputs: map[int64]*compile.InputSet{}, given: map[fleet.Certname]int64{}, ahead: newAhead(),
	}
	return &Queue{records: r, Reusables: &Reusables{r}, Wants: &Wants{r}, Verifications: &Verified{r}}
}

// SetFacts makes seq the node's current facts.
func (q *Queue) SetFacts(node fleet.Certname, seq int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.facts[node] = seq
}

// Fail makes every method return err until it is called with nil.
func (q *Queue) Fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail = err
}

// All returns every row by ID.
func (q *Queue) All() []compile.Compilation {
	q.mu.Lock()
	defer q.mu.Unlock()
	rows := q.find(func(*compile.Compilation) bool { return true })
	slices.SortFunc(rows, func(a, b *compile.Compilation) int { return cmp.Compare(a.ID, b.ID) })
	return values(rows)
}

// Want implements compile.Queue.
func (q *Queue) Want(_ context.Context, w compile.Want) (compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return compile.Compilation{}, q.fail
	}
	return *q.want(w), nil
}

func (q *records) want(w compile.Want) *compile.Compilation {
	same := q.find(func(c *compile.Compilation) bool {
		return c.Node == w.Node && c.Environment == w.Environment && c.Version == w.Version && c.Reach == w.Reach
	})
	slices.SortFunc(same, newestFirst)
	decided := compile.Decide(w, values(same), q.plain(w.Node))
	c := q.rows[decided.Row.ID]
	switch decided.Act {
	case compile.GiveRow:
		return c
	case compile.ShareRow:
		*c = decided.Row
		return c
	case compile.RenewRow:
		*c = decided.Row
		q.renumber(c)
		return c
	case compile.AddRow:
	}
	if key := (slowKey{w.Environment, w.Priority.Apart()}); q.slow[key].EndedBy(w) {
		delete(q.slow, key)
	}
	q.last++
	c = &decided.Row
	c.ID = q.last
	q.rows[c.ID] = c
	return c
}

// plain is the highest ID of a node's rows that overtake others.
func (q *records) plain(node fleet.Certname) (id int64) {
	for _, c := range q.rows {
		if c.Node == node && c.Overtakes() {
			id = max(id, c.ID)
		}
	}
	return id
}

// renumber gives a wanted row the highest ID.
func (q *records) renumber(c *compile.Compilation) {
	delete(q.rows, c.ID)
	q.last++
	c.ID = q.last
	q.rows[c.ID] = c
}

// Lease implements compile.Queue.
func (q *Queue) Lease(_ context.Context, o compile.Offer) ([]compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return nil, q.fail
	}
	rows := q.inTurn(o)
	for _, c := range rows {
		c.State, c.LeasedBy, c.LeasedUntil = compile.Leased, o.Worker, o.Until
		c.Attempts++
		if seq, known := q.facts[c.Node]; known {
			c.FactsSeq = seq
		}
	}
	return values(rows), nil
}

// Renew implements compile.Queue.
func (q *Queue) Renew(_ context.Context, worker string, ids []int64, until time.Time) ([]int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return nil, q.fail
	}
	var held []int64
	for _, id := range ids {
		if c := q.rows[id]; c != nil && c.State == compile.Leased && c.LeasedBy == worker && c.RestsUntil.IsZero() {
			c.LeasedUntil = until
			held = append(held, id)
		}
	}
	slices.Sort(held)
	return held, nil
}

// Rest implements compile.Queue.
func (q *Queue) Rest(_ context.Context, c compile.Compilation, until time.Time, trouble string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	row := q.rows[c.ID]
	if row == nil || !row.HeldBy(c) {
		return compile.NotLeased(c)
	}
	row.LeasedUntil, row.RestsUntil, row.Trouble = until, until, trouble
	return nil
}

// leased says whether c's lease holds.
func (q *records) leased(c compile.Compilation) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	row := q.rows[c.ID]
	return row != nil && row.HeldBy(c)
}

// Finish implements compile.Queue.
func (q *Queue) Finish(_ context.Context, c compile.Compilation) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	row := q.rows[c.ID]
	if row == nil {
		return compile.NotLeased(c)
	}
	closed, err := c.Close(*row)
	if err != nil {
		return err
	}
	*row = closed
	q.slowDown(c)
	q.logs[c.ID] = c.Logs
	if mark := q.marks[c.Environment]; c.State == compile.Failed && c.Priority != compile.Previewing && mark.Version != "" && mark.Version != c.Version {
		q.note(compile.LateFinish, c.Node)
	}
	if c.State == compile.Done {
		if !row.Staged && !q.again(c) && c.ID > q.given[c.Node] {
			q.given[c.Node] = c.ID
		}
		if c.Inputs != nil {
			q.inputs[c.ID] = c.Inputs
			q.stand(row)
		}
	}
	return nil
}

// slowDown has a compilation that finished count.
func (q *records) slowDown(c compile.Compilation) {
	key := slowKey{c.Environment, c.Priority.Apart()}
	if s := q.slow[key].After(c); s.Timeouts > 0 {
		q.slow[key] = s
	} else {
		delete(q.slow, key)
	}
}

// again says whether a row only points to the catalog that its node has.
func (q *records) again(c compile.Compilation) bool {
	newest := q.rows[q.given[c.Node]]
	return c.Inputs == nil && newest != nil && newest.Catalog == c.Catalog && q.inputs[newest.ID] != nil
}

// ReturnLeases implements compile.Queue.
func (q *Queue) ReturnLeases(_ context.Context, worker string, now time.Time, maxAttempts int) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return 0, q.fail
	}
	rows := q.find(func(c *compile.Compilation) bool {
		return c.State == compile.Leased && (!c.LeasedUntil.After(now) || c.LeasedUntil.After(now.Add(compile.LongestLease)) || worker != "" && c.LeasedBy == worker)
	})
	slices.SortFunc(rows, newestFirst)
	for _, c := range rows {
		q.giveBack(c, now, maxAttempts)
	}
	return len(rows), nil
}

func (q *records) giveBack(c *compile.Compilation, now time.Time, maxAttempts int) {
	wanted := q.find(func(o *compile.Compilation) bool {
		return o.State == compile.Wanted && o.Node == c.Node && o.Environment == c.Environment && o.Version == c.Version && o.Reach == c.Reach
	})
	if len(wanted) == 0 {
		*c = c.Returned(now, maxAttempts, nil)
		return
	}
	after := c.Returned(now, maxAttempts, wanted[0])
	if after.State == compile.Wanted {
		delete(q.rows, wanted[0].ID)
	}
	delete(q.rows, c.ID)
	q.rows[after.ID] = &after
}

// Compilation implements compile.Queue.
func (q *Queue) Compilation(_ context.Context, id int64) (compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return compile.Compilation{}, q.fail
	}
	if c := q.rows[id]; c != nil {
		return *c, nil
	}
	return compile.Compilation{}, fault.New(fault.NotFound, "there is no compilation %d", id)
}

// Depth implements compile.Queue.
func (q *Queue) Depth(_ context.Context, now time.Time) (wanted, leased int, oldest time.Duration, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return 0, 0, 0, q.fail
	}
	for _, c := range q.rows {
		switch c.State {
		case compile.Wanted:
			wanted++
			oldest = max(oldest, now.Sub(c.WantedAt))
		case compile.Leased:
			leased++
		case compile.Done, compile.Failed:
		}
	}
	return wanted, leased, oldest, nil
}

// Prune implements compile.Queue.
func (q *Queue) Prune(_ context.Context, before time.Time) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return 0, q.fail
	}
	rows := q.find(finished)
	slices.SortFunc(rows, latestFirst)
	newest, pruned := map[fleet.Certname]bool{}, 0
	for _, c := range rows {
		if newest[c.Node] && c.FinishedAt.Before(before) && q.given[c.Node] != c.ID {
			delete(q.rows, c.ID)
			pruned++
		}
		newest[c.Node] = true
	}
	return pruned, nil
}

// Distinct implements compile.History.
func (q *Queue) Distinct(_ context.Context, env fleet.Environment, n int) ([]compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return nil, q.fail
	}
	rows := q.find(func(c *compile.Compilation) bool {
		return c.State == compile.Done && c.Environment == env && c.Reach == ""
	})
	slices.SortFunc(rows, latestFirst)
	nodes, catalogs := map[fleet.Certname]bool{}, map[fleet.Digest]bool{}
	rows = slices.DeleteFunc(rows, func(c *compile.Compilation) bool {
		older := nodes[c.Node]
		nodes[c.Node] = true
		if older || catalogs[c.Catalog] {
			return true
		}
		catalogs[c.Catalog] = true
		return false
	})
	return values(rows[:min(n, len(rows))]), nil
}

func (q *records) find(fits func(*compile.Compilation) bool) []*compile.Compilation {
	var rows []*compile.Compilation
	for _, c := range q.rows {
		if fits(c) {
			rows = append(rows, c)
		}
	}
	return rows
}

func finished(c *compile.Compilation) bool { return c.Finished() }

func newestFirst(a, b *compile.Compilation) int { return cmp.Compare(b.ID, a.ID) }

func latestFirst(a, b *compile.Compilation) int {
	return cmp.Or(b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(b.ID, a.ID))
}

func values(rows []*compile.Compilation) []compile.Compilation {
	out := make([]compile.Compilation, 0, len(rows))
	for _, c := range rows {
		out = append(out, *c)
	}
	return out
}

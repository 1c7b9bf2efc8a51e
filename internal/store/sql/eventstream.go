package sql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Events is what happens in runs, as it is told.
type Events struct{ *base }

const eventRunColumns = `node, run, job_id, environment, first, last, began_at, ended_at, status, missing, report, reported_at, settled`

func scanEventRun(row scanner) (r event.Run, err error) {
	err = row.Scan(&r.Node, &r.ID, &r.Job, &r.Environment, &r.First, &r.Last, at(&r.Began), at(&r.Ended), &r.Status, &r.Missing,
		&r.Report, at(&r.ReportedAt), &r.Settled)
	return r, err
}

// runKey names a run.
type runKey struct {
	node fleet.Certname
	run  string
}

// TakeEvents implements event.Store. The rows of the runs are locked in order, and the numbers after them: whoever
// holds the numbers waits for nobody.
func (s *Events) TakeEvents(ctx context.Context, batches []event.Batch, now time.Time) ([]event.Taken, error) {
	order := make([]int, len(batches)) // by run; the batches of one run as they came
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(batches[a].Node, batches[b].Node), cmp.Compare(batches[a].Run, batches[b].Run))
	})
	var keys []runKey
	for _, i := range order {
		keys = append(keys, runKey{batches[i].Node, batches[i].Run})
	}
	keys = slices.Compact(keys)
	var taken []event.Taken
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		fresh := make([]part, 0, len(batches))
		result := make([]event.Taken, len(batches))
		runs, err := s.lockEventRuns(ctx, q, keys, now)
		if err != nil {
			return err
		}
		for _, i := range order {
			b := batches[i]
			run := runs[runKey{b.Node, b.Run}]
			after, events, last := run.Take(b.Events)
			if err := linkJob(ctx, q, &after, events); err != nil {
				return err
			}
			runs[runKey{b.Node, b.Run}] = after
			result[i] = event.Taken{Node: b.Node, Run: b.Run, Last: last, New: len(events)}
			fresh = append(fresh, part{after, events, false})
		}
		if err := s.appendEvents(ctx, q, fresh, now); err != nil {
			return err
		}
		taken = result
		return nil
	})
	return taken, explain(err, "store events of runs")
}

// lockEventRuns makes the rows of runs, where there are none, and holds them. The keys are sorted, and each is there once.
func (s *Events) lockEventRuns(ctx context.Context, q querier, keys []runKey, now time.Time) (map[runKey]event.Run, error) {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{string(k.node), k.run, micros(now)}
	}
	held, err := insertReading(ctx, q, &s.dialect, "event_runs", []column{{"node", texts}, {"run", texts}, {"touched_at", ints}},
		"ON CONFLICT (node, run) DO UPDATE SET touched_at = excluded.touched_at RETURNING "+eventRunColumns, rows, scanEventRun)
	runs := make(map[runKey]event.Run, len(held))
	for _, r := range held {
		runs[runKey{r.Node, r.ID}] = r
	}
	return runs, err
}

// linkJob finds the job of a run that has just begun: one with a run of that name on the same node.
func linkJob(ctx context.Context, q querier, run *event.Run, events []pxp.RunEvent) error {
	for _, e := range events {
		if e.Kind != pxp.RunBegan || e.Transaction == "" {
			continue
		}
		id, err := oneInt(q.row(ctx, "SELECT job_id FROM job_runs WHERE id = $1 AND node = $2", e.Transaction, run.Node))
		if err != nil {
			return err
		}
		run.Job = id
	}
	return nil
}

// part is events of one run that are to be stored; run is as it is after them.
type part struct {
	run      event.Run
	events   []pxp.RunEvent
	reported bool
}

var streamRow = []column{
	{"number", ints},
	{"node", texts},
	{"run", texts},
	{"job_id", ints},
	{"environment", texts},
	{"kind", texts},
	{"status", texts},
	{"type", texts},
	{"reported", ints},
	{"stored_at", ints},
	{"detail", texts},
}

// appendEvents numbers events, stores them, and writes their runs, which are held.
func (s *Events) appendEvents(ctx context.Context, q querier, parts []part, now time.Time) error {
	count := 0
	for _, p := range parts {
		count += len(p.events)
	}
	number, err := takeNumbers(ctx, q, count)
	if err != nil {
		return err
	}
	rows := make([][]any, 0, count)
	firsts := map[runKey]int64{}
	runs := map[runKey]event.Run{} // as they are after their last part
	for _, p := range parts {
		k := runKey{p.run.Node, p.run.ID}
		firsts[k] = cmp.Or(firsts[k], p.run.First)
		if len(p.events) > 0 {
			firsts[k] = cmp.Or(firsts[k], number)
		}
		for _, e := range p.run.Rows(p.events, number, p.reported, now) {
			row, err := streamed(e)
			if err != nil {
				return err
			}
			rows = append(rows, row)
			number++
		}
		p.run.First = firsts[k]
		runs[k] = p.run
	}
	if err := s.updateEventRuns(ctx, q, runs, now); err != nil {
		return err
	}
	return s.dialect.insert(ctx, q, "run_events", streamRow, "", rows)
}

// takeNumbers takes as many numbers, and returns the first. Whoever has them waits for nobody.
func takeNumbers(ctx context.Context, q querier, count int) (int64, error) {
	if count == 0 {
		return 0, nil
	}
	last, err := one[int64](q.row(ctx, "UPDATE event_numbers SET last = last + $1 WHERE id = 1 RETURNING last", count))
	return last - int64(count) + 1, err
}

// streamed is an event as a row.
func streamed(e event.Event) ([]any, error) {
	detail, err := json.Marshal(e.RunEvent)
	return []any{
		e.Number, string(e.Node), e.Run, e.Job, query.Clean(e.Environment), e.Kind, query.Clean(e.Status), query.Clean(e.Type), bit(e.Reported), micros(e.StoredAt),
		query.Clean(string(detail)),
	}, err
}

// AddEvents implements event.Store.
func (s *Events) AddEvents(ctx context.Context, events []event.Event, now time.Time) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		number, err := takeNumbers(ctx, q, len(events))
		if err != nil {
			return err
		}
		rows := make([][]any, len(events))
		for i, e := range events {
			e.Number, e.StoredAt = number+int64(i), now
			if rows[i], err = streamed(e); err != nil {
				return err
			}
		}
		return s.dialect.insert(ctx, q, "run_events", streamRow, "", rows)
	})
	return explain(err, "store events of agents")
}

var eventRunRow = []column{
	{"node", texts},
	{"run", texts},
	{"job_id", ints},
	{"environment", texts},
	{"first", ints},
	{"last", ints},
	{"began_at", ints},
	{"ended_at", ints},
	{"status", texts},
	{"missing", ints},
	{"settled", ints},
	{"touched_at", ints},
}

// updateEventRuns writes runs whose rows are held, so that their order does not matter. Who held them has set touched_at; it stands here because
// a row cannot be without it.
func (s *Events) updateEventRuns(ctx context.Context, q querier, runs map[runKey]event.Run, now time.Time) error {
	rows := make([][]any, 0, len(runs))
	for _, r := range runs {
		rows = append(rows, []any{
			string(r.Node), r.ID, r.Job, query.Clean(r.Environment), r.First, int64(r.Last), micros(r.Began), micros(r.Ended),
			query.Clean(r.Status), int64(r.Missing), bit(r.Settled), micros(now),
		})
	}
	return s.dialect.insert(ctx, q, "event_runs", eventRunRow, `ON CONFLICT (node, run) DO UPDATE SET
		job_id = excluded.job_id, environment = excluded.environment, first = excluded.first, last = excluded.last,
		began_at = excluded.began_at, ended_at = excluded.ended_at, status = excluded.status, missing = excluded.missing, settled = excluded.settled`, rows)
}

// Events implements event.Store. The statement has only the conditions that are asked for, so that it can use
// its indexes.
func (s *Events) Events(ctx context.Context, f event.Filter) ([]event.Event, error) {
	w := filter{dialect: s.dialect}
	w.add("number > ?", f.After)
	if f.Before > 0 {
		w.add("number < ?", f.Before)
	}
	if f.Node != "" {
		w.add("node = ?", f.Node)
	}
	if f.Run != "" {
		w.add("run = ?", f.Run)
	}
	if f.Job > 0 {
		w.add("job_id > 0 AND job_id = ?", f.Job)
	}
	if f.Environment != "" {
		w.add("environment = ?", f.Environment)
	}
	oneOf(&w, "kind", f.Kinds)
	oneOf(&w, "status", f.Statuses)
	oneOf(&w, "type", f.Types)
	direction := ""
	if f.Newest {
		direction = " DESC"
	}
	events, err := collect(ctx, s.reads, scanEvent, "SELECT number, node, run, job_id, reported, stored_at, detail FROM run_events"+w.where()+
		" ORDER BY number"+direction+" LIMIT "+w.mark(f.Limit), w.args...)
	return events, explain(err, "read events of runs")
}

func scanEvent(row scanner) (e event.Event, err error) {
	var detail string
	if err = row.Scan(&e.Number, &e.Node, &e.Run, &e.Job, &e.Reported, at(&e.StoredAt), &detail); err == nil {
		err = json.Unmarshal([]byte(detail), &e.RunEvent)
	}
	return e, err
}

// EventSpan implements event.Store.
func (s *Events) EventSpan(ctx context.Context) (span event.Span, err error) {
	err = s.reads.row(ctx, "SELECT COALESCE((SELECT MIN(number) FROM run_events), last + 1), last FROM event_numbers WHERE id = 1").Scan(&span.First, &span.Last)
	return span, explain(err, "read which events of runs there are")
}

// EventsSince implements event.Store. Numbers and times grow together, so that it can be halved.
func (s *Events) EventsSince(ctx context.Context, t time.Time) (int64, error) {
	span, err := s.EventSpan(ctx)
	if err != nil {
		return 0, err
	}
	low, high := span.First, span.Last+1 // the answer is from low to high
	for low < high {
		middle := low + (high-low)/2
		var number, stored int64
		err := s.reads.row(ctx, "SELECT number, stored_at FROM run_events WHERE number >= $1 ORDER BY number LIMIT 1", middle).Scan(&number, &stored)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			high = middle
		case err != nil:
			return 0, explain(err, "find events of runs by time")
		case stored >= micros(t):
			high = middle
		default:
			low = number + 1
		}
	}
	return low, nil
}

// PruneEvents implements event.Store.
func (s *Events) PruneEvents(ctx context.Context, before time.Time) (int, error) {
	end, err := s.EventsSince(ctx, before)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, some := range []struct {
		statement string
		bound     int64
		counts    bool
	}{
		{"DELETE FROM run_events WHERE number IN (SELECT number FROM run_events WHERE number < $1 ORDER BY number LIMIT $2)", end, true},
		{`DELETE FROM event_runs WHERE (node, run) IN (SELECT node, run FROM event_runs WHERE touched_at < $1 LIMIT $2)`, micros(before), false},
	} {
		for count := int64(prunedEvents); count == prunedEvents; {
			err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
				count, err = q.exec(ctx, some.statement, some.bound, prunedEvents)
				return err
			})
			if err != nil {
				return total, explain(err, "prune events of runs")
			}
			if some.counts {
				total += int(count)
			}
		}
	}
	return total, nil
}

// prunedEvents is how many rows are forgotten at once.
const prunedEvents = 1000

// rawOf is a stored JSON value as events have it.
func rawOf(text string) jsontext.Value {
	value := jsontext.Value(text)
	if text == "" || !value.IsValid() {
		return nil
	}
	return value
}

package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// The pace of answers to who asks for events without a pause.
const (
	pace        = time.Second // the events of a job are looked at so often
	bytesASec   = 4 << 20     // a large answer comes so much later
	longestWait = 10 * time.Second
)

// The bounds of what is remembered.
const (
	maxFeeds     = 32
	maxFeedBytes = 128 << 20 // of all together; the largest one is kept even if it is larger
	feedLife     = time.Minute
)

// feeds is the events of jobs that somebody asks for, as they are sent.
type feeds struct {
	jobs     Jobs
	now      func() time.Time
	stopping <-chan struct{}

	mu   sync.Mutex
	open map[int64]*feed
}

// feed is the events of one job. Numbers only rise, so what was made stays: it is read from where it ended.
type feed struct {
	reading chan struct{} // holds one token, which who reads further has

	mu     sync.Mutex
	job    job.Job
	items  []byte  // JSON objects, each with a comma before it
	ids    []int64 // of the items
	begins []int   // where each begins in items
	last   int64   // the number up to which it is complete
	readAt time.Time
	usedAt time.Time
}

// of is the feed of a job.
func (f *feeds) of(id int64) *feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	one := f.open[id]
	if one == nil {
		f.forget(now)
		one = &feed{reading: make(chan struct{}, 1)}
		f.open[id] = one
	}
	one.mu.Lock()
	one.usedAt = now
	one.mu.Unlock()
	return one
}

// drop forgets a feed that nothing was read into: of a job that is not there, or not for who asked.
func (f *feeds) drop(id int64, one *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.readAt.IsZero() && f.open[id] == one {
		delete(f.open, id)
	}
}

// forget makes room: feeds that nobody asked for of late go, and then those that were asked for longest ago.
func (f *feeds) forget(now time.Time) {
	type age struct {
		id     int64
		usedAt time.Time
		bytes  int
	}
	var ages []age
	sum := 0
	for id, one := range f.open {
		one.mu.Lock()
		ages = append(ages, age{id, one.usedAt, len(one.items)})
		one.mu.Unlock()
		sum += ages[len(ages)-1].bytes
	}
	slices.SortFunc(ages, func(a, b age) int { return a.usedAt.Compare(b.usedAt) })
	for _, a := range ages {
		if now.Sub(a.usedAt) > feedLife || len(f.open) >= maxFeeds || sum > maxFeedBytes {
			delete(f.open, a.id)
			sum -= a.bytes
		}
	}
}

// known is the job of a feed, without what is large in it; it is read if nobody did.
func (f *feeds) known(ctx context.Context, one *feed, id int64) (job.Job, error) {
	one.mu.Lock()
	j, read := one.job, !one.readAt.IsZero()
	one.mu.Unlock()
	if read {
		return j, nil
	}
	changes, err := f.jobs.Changes(ctx, id, math.MaxInt64, 1)
	return changes.Job, err
}

// look brings a feed up to date, at most once in each pace: who comes earlier waits for it.
func (f *feeds) look(ctx context.Context, one *feed, id int64) error {
	asked := f.now()
	one.mu.Lock()
	readAt := one.readAt
	one.mu.Unlock()
	if wait := readAt.Add(pace).Sub(asked); !readAt.IsZero() && wait > 0 {
		if over, err := f.pause(ctx, wait); over || err != nil {
			return err
		}
	}
	select {
	case one.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-one.reading }()
	return f.readOn(ctx, one, id, asked)
}

// pause waits; over says that the server stops.
func (f *feeds) pause(ctx context.Context, wait time.Duration) (over bool, err error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-f.stopping:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// readOn reads what changed, unless somebody did so since asked.
func (f *feeds) readOn(ctx context.Context, one *feed, id int64, asked time.Time) error {
	one.mu.Lock()
	readAt, last, over := one.readAt, one.last, one.job.Status.Final() && one.last >= one.job.Change
	one.mu.Unlock()
	if readAt.After(asked) {
		return nil
	}
	var found []event
	var j job.Job
	for after := last; !over; {
		changes, err := f.jobs.Changes(ctx, id, after, runsAtOnce)
		if err != nil {
			return err
		}
		j = changes.Job
		for _, run := range changes.Runs {
			found = append(found, runEvents(j, run, last)...)
		}
		if after = changes.Last; len(changes.Runs) < runsAtOnce {
			found = append(found, jobEvents(j, last)...)
			last, over = after, true
		}
	}
	slices.SortFunc(found, func(a, b event) int { return cmp.Compare(a.number, b.number) })
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.readAt = f.now(); j.ID != 0 {
		one.job, one.last = j, last
	}
	for _, e := range found {
		one.ids, one.begins = append(one.ids, e.number), append(one.begins, len(one.items))
		one.items = append(append(one.items, ','), e.text()...)
	}
	return nil
}

// from is the items from a number on, as they are sent, and the number that is asked for next.
func (one *feed) from(start int64) (items []byte, next int64, final bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	next = one.last + 1
	i, _ := slices.BinarySearch(one.ids, start)
	if i < len(one.ids) {
		items = one.items[one.begins[i]+1 : len(one.items) : len(one.items)]
	}
	return items, next, one.job.Status.Final()
}

// event is something that happened in a job.
type event struct {
	number  int64
	kind    string
	at      time.Time
	node    fleet.Certname // empty: the job
	detail  map[string]any
	message string
}

func (e event) text() []byte {
	details := map[string]any{"detail": e.detail}
	if e.node != "" {
		details["node"] = e.node
	}
	text, _ := json.Marshal(struct { //nolint:errchkjson // all of it can be written
		ID      string         `json:"id"`
		Type    string         `json:"type"`
		At      any            `json:"timestamp"`
		Details map[string]any `json:"details"`
		Message string         `json:"message"`
	}{strconv.FormatInt(e.number, 10), e.kind, stamp(e.at), details, e.message})
	return text
}

// runEvents is the events of a run behind a number: that it began, and how it ended.
func runEvents(j job.Job, run job.Run, after int64) (found []event) {
	if run.Began > after {
		began := run
		began.State = job.Running
		found = append(found, event{run.Began, "node_running", run.StartedAt, run.Node, map[string]any{}, message(j, began)})
	}
	if !run.State.Final() || run.Change <= after {
		return found
	}
	kind := "node_errored"
	switch run.State {
	case job.Succeeded:
		kind = "node_finished"
	case job.RunFailed:
		kind = "node_failed"
	case job.Skipped:
		kind = "node_skipped"
	case job.Waiting, job.Sent, job.Running, job.Errored, job.TimedOut, job.Killed, job.Refused, job.Offline, job.Lost:
	}
	detail := exitCode(run)
	detail["state"], detail["reason"] = run.State, run.Reason
	return append(found, event{run.Change, kind, run.FinishedAt, run.Node, detail, message(j, run)})
}

// jobEvents is those of the job itself. Its end is the last event of all.
func jobEvents(j job.Job, after int64) (found []event) {
	if j.StopChange > after {
		found = append(found, event{j.StopChange, "job_stopping", j.StoppingAt, "", map[string]any{"reason": j.Reason}, "Stopping the job: " + j.Reason})
	}
	if !j.Status.Final() || j.OwnChange <= after {
		return found
	}
	kind := "job_finished"
	if j.Killed {
		kind = "job_aborted"
	}
	detail := map[string]any{"state": jobStates[j.Status], "node_states": nodeStates(j.Counts)}
	return append(found, event{j.OwnChange, kind, j.FinishedAt, "", detail, "The job is " + jobStates[j.Status]})
}

// jobEvents lists the events of a job from a number on.
func (h *Handler) jobEvents(w http.ResponseWriter, r *http.Request) error {
	ctx, start := r.Context(), int64(0)
	if text := r.URL.Query().Get("start"); r.URL.Query().Has("start") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return h.invalid("start", "it is the number of an event, not %.40q", text)
		}
		start = n
	}
	id, err := h.number("id", r.PathValue("id"))
	if err != nil {
		return err
	}
	one := h.feeds.of(id)
	j, err := h.feeds.known(ctx, one, id)
	if err == nil {
		err = h.allowOwn(ctx, fleet.JobRead, j)
	}
	if err == nil {
		err = h.feeds.look(ctx, one, id)
	}
	if err != nil {
		h.feeds.drop(id, one)
		return h.missing(unknownJob, map[string]string{"job": r.PathValue("id")}, err)
	}
	items, next, final := one.from(start)
	if !final && len(items) > bytesASec/4 {
		wait := min(time.Duration(len(items))*time.Second/bytesASec, longestWait)
		if _, err := h.feeds.pause(ctx, wait); err != nil {
			return err
		}
	}
	head := []byte(`{"next-events":` + string(nextEvents(linksOf(r), id, max(next, start))) + `,"items":[`)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(items)+3))
	for _, part := range [][]byte{head, items, []byte("]}\n")} {
		if _, err := w.Write(part); err != nil { // the caller is gone
			return nil //nolint:nilerr // and nobody is left to tell
		}
	}
	return nil
}

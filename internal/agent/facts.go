package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/agent/facter"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
)

// factSource resolves facts; *facter.Facter is one.
type factSource interface {
	All(ctx context.Context) (facter.Facts, error)
	Some(ctx context.Context, names []string) (json.RawMessage, error)
}

// submitter submits the node's facts to a server, apart from Puppet runs: from time to time, after a run that changed
// something, when somebody says so, and at once when one of those changed that the node's catalog read.
//
//	due ─► resolve all ─► pending ─► submit ─► accepted: kept is the base of the next difference
//	look ─► resolve the watched ones; one differs ─┘   └─ refused, server away: again after a pause
//
// Only the newest state matters: what was resolved anew takes the place of what waits.
type submitter struct {
	source   factSource
	store    factsFile
	servers  []string
	client   *http.Client
	interval time.Duration // zero: never
	watch    time.Duration // zero: never
	log      *slog.Logger

	wanted signal        // somebody wants them submitted now
	back   signal        // a server came back
	turn   chan struct{} // holds a token while all are resolved: whoever asks meanwhile takes what was found

	mu      sync.Mutex
	kept    keptFacts
	pending *facter.Facts
	looked  time.Time
	next    time.Time      // when they are due
	problem string         // why they were not resolved or accepted the last time
	blind   map[string]int // looks at a pointer that saw what a whole set did not show
}

// agenda is when what is to be done.
type agenda struct {
	due   time.Time // resolve all
	look  time.Time // resolve what is watched
	retry time.Time // submit what is pending
	alone time.Time // the server wants to be left alone until then
	fails int       // in a row
}

// Run submits facts until ctx is done.
func (f *submitter) Run(ctx context.Context) error {
	if f.interval == 0 || len(f.servers) == 0 {
		return nil
	}
	var a agenda
	a.due = f.firstDue(time.Now())
	a.look = time.Now().Add(jittered(f.watch))
	for {
		f.plan(a.due)
		timer := time.NewTimer(time.Until(f.soonest(a)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-f.wanted:
			a.due, a.fails = time.Time{}, 0
		case <-f.back:
			a.retry = time.Time{}
		}
		timer.Stop()
		f.step(ctx, &a, time.Now())
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
	}
}

// firstDue is at once for a node that no server knows, else when an interval is over. A fleet that starts together
// is spread.
func (f *submitter) firstDue(now time.Time) time.Time {
	accepted := f.keeping().Accepted
	if accepted.IsZero() {
		return now
	}
	due := accepted.Add(f.interval)
	if due.After(now.Add(f.interval)) { // the clock went back
		due = now
	}
	if !due.After(now) {
		due = now.Add(rand.N(f.interval/10 + 1)) //nolint:gosec // spreads load
	}
	return due
}

// jittered is d, give or take a tenth.
func jittered(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d - d/10 + rand.N(d/5+1) //nolint:gosec // spreads load
}

func (f *submitter) soonest(a agenda) time.Time {
	when := a.due
	if f.waiting() {
		if a.retry.Before(when) {
			when = a.retry
		}
	} else if f.watch > 0 && a.look.Before(when) {
		when = a.look
	}
	return when
}

// step does what is due.
func (f *submitter) step(ctx context.Context, a *agenda, now time.Time) {
	switch {
	case !a.due.After(now):
		f.resolve(ctx, a)
	case f.waiting():
	case f.watch > 0 && !a.look.After(now):
		a.look = now.Add(jittered(f.watch))
		if f.look(ctx) {
			f.resolve(ctx, a)
		}
	}
	if f.waiting() && !a.retry.After(time.Now()) {
		f.submit(ctx, a)
	}
}

// The pauses after a failure: resolving, and submitting.
const (
	firstFactsPause = 5 * time.Second
	lastFactsPause  = 5 * time.Minute
)

// resolve asks Facter for all.
func (f *submitter) resolve(ctx context.Context, a *agenda) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return
	}
	found, err := f.source.All(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.fails++
		a.due = time.Now().Add(f.pause(a.fails, time.Minute))
		f.failed(ctx, "facts were not resolved, will retry", err)
		return
	}
	a.due, a.retry, a.fails = time.Now().Add(jittered(f.interval)), a.alone, 0
	f.mu.Lock()
	f.pending = &found
	f.mu.Unlock()
}

// submit sends what is pending.
func (f *submitter) submit(ctx context.Context, a *agenda) {
	f.mu.Lock()
	found := *f.pending
	f.mu.Unlock()
	after, err := f.send(ctx, found)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		a.look, a.fails = time.Now().Add(jittered(f.watch)), 0
		f.settle("")
		return
	}
	a.fails++
	a.alone = time.Now().Add(after)
	a.retry = time.Now().Add(max(after, f.pause(a.fails, firstFactsPause)))
	f.failed(ctx, "facts were not accepted, will retry", err)
	if kind := fault.Of(err); kind != fault.Unavailable {
		f.settle(fault.Detail(err)) // the same again would not help; the next ones may
	}
}

// pause doubles from first on, spread, and is never longer than an interval.
func (f *submitter) pause(fails int, first time.Duration) time.Duration {
	longest := min(lastFactsPause, f.interval)
	return jittered(min(first<<min(fails-1, 10), longest))
}

func (f *submitter) failed(ctx context.Context, what string, err error) {
	f.log.WarnContext(ctx, what, "err", err)
	f.mu.Lock()
	f.problem = cmp.Or(fault.Detail(err), err.Error())
	f.mu.Unlock()
}

// settle ends what was pending.
func (f *submitter) settle(problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending, f.problem = nil, problem
}

func (f *submitter) waiting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending != nil
}

func (f *submitter) plan(due time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = due
}

func (f *submitter) keeping() keptFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept
}

// last are the facts that were resolved last. Facter is asked if none are kept and nobody is asking it.
func (f *submitter) last(ctx context.Context) (json.RawMessage, error) {
	if values := f.known(); len(values) > 0 {
		return values, nil
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "the node's facts are still being resolved")
	}
	if values := f.known(); len(values) > 0 {
		return values, nil
	}
	found, err := f.source.All(ctx)
	return found.Values, err
}

func (f *submitter) known() json.RawMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending != nil {
		return f.pending.Values
	}
	return f.kept.Values
}

// look tells whether one of the facts changed that the node's catalog read.
func (f *submitter) look(ctx context.Context) bool {
	f.learn(ctx)
	kept := f.keeping()
	pointers, names := f.visible(kept)
	if len(names) == 0 {
		return false
	}
	values, err := f.source.Some(ctx, names)
	if err != nil {
		if ctx.Err() == nil {
			f.failed(ctx, "watched facts were not resolved, will retry", err)
		}
		return false
	}
	f.mu.Lock()
	f.looked = time.Now().UTC()
	f.mu.Unlock()
	changed := differing(pointers, kept.Values, values)
	if len(changed) > 0 {
		f.log.InfoContext(ctx, "facts changed that the catalog read", "facts", changed)
		f.mu.Lock()
		for _, pointer := range changed {
			f.blind[pointer]++
		}
		f.mu.Unlock()
	}
	return len(changed) > 0
}

// differing lists the pointers at which two sets differ.
func differing(pointers []string, before, after json.RawMessage) []string {
	var changed []string
	for _, pointer := range pointers {
		was, err := facts.Glance(before, pointer)
		is, failed := facts.Glance(after, pointer)
		if err == nil && failed == nil && something(was) != something(is) {
			changed = append(changed, pointer)
		}
	}
	return changed
}

// something is what is there; puppet shows a fact that there is none of as an empty one.
func something(text string) string {
	if text == "null" || text == `""` {
		return ""
	}
	return text
}

// blindAfter is how often a look may be wrong about a pointer.
const blindAfter = 3

// visible lists the watched pointers that can be looked at, and the facts that they lead to. Those
// are left out that a look sees otherwise than a whole set, which some facts are that Puppet adds.
func (f *submitter) visible(kept keptFacts) (pointers, names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[string]bool{}
	for _, pointer := range kept.Watched {
		name := facts.AtPointer(pointer)
		if name == "" || name[0] == '-' || f.blind[pointer] >= blindAfter {
			continue
		}
		pointers = append(pointers, pointer)
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return pointers, names
}

// reconsider forgives looks that were right.
func (f *submitter) reconsider(before, after json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for pointer := range f.blind {
		if len(differing([]string{pointer}, before, after)) > 0 {
			delete(f.blind, pointer)
		}
	}
}

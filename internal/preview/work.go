package preview

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	lookAtOnce = 500                   // compilations that are looked at together
	pageShares = 2_000                 // shares that are read at once
	maxHeard   = 10_000                // compilations that are remembered to have ended; of more, all are looked at
	gathering  = 50 * time.Millisecond // how long compilations that end gather before they are looked at
	lookShare  = 20                    // looking at all that was asked for takes at most one in so many parts of the time
)

// work is the work on one preview. Its goroutine alone changes what knowing guards.
type work struct {
	*Service
	id      int64
	preview Preview  // as it was when the work began
	engines crossing // that the preview is between; known when it is loaded
	look    chan struct{}

	hearing sync.Mutex
	heard   []int64 // compilations that have ended: hints

	asked    map[int64][]uint32 // numbers of shares that wait, by compilation
	lookedAt time.Time          // at all of these
	lookTook time.Duration

	knowing   sync.RWMutex
	shares    []Share   // by Number
	comparing Comparing // what was taken in of them; nil before they are loaded
}

func newWork(s *Service, p Preview) *work {
	return &work{Service: s, id: p.ID, preview: p, look: make(chan struct{}, 1)}
}

func (w *work) hint() {
	select {
	case w.look <- struct{}{}:
	default:
	}
}

// hear notes a compilation that has ended. What there is no room for is found by looking at all.
func (w *work) hear(compilation int64) {
	w.hearing.Lock()
	defer w.hearing.Unlock()
	if len(w.heard) < maxHeard {
		w.heard = append(w.heard, compilation)
	}
	w.hint()
}

// takeHeard is the compilations that were heard of and that shares wait for.
func (w *work) takeHeard() []int64 {
	w.hearing.Lock()
	defer w.hearing.Unlock()
	heard := slices.DeleteFunc(w.heard, func(id int64) bool { return w.asked[id] == nil })
	w.heard = nil
	slices.Sort(heard)
	return slices.Compact(heard)
}

// so is what is known so far.
func (w *work) so(limit int) (api.FleetDifference, error) {
	w.knowing.RLock()
	defer w.knowing.RUnlock()
	if w.comparing == nil {
		return api.FleetDifference{}, nil
	}
	return w.comparing.Fleet(limit, w.nameOf)
}

func (w *work) nameOf(number uint32) string { return string(w.shares[number].Node) }

// members is the numbers of the nodes that have a change, as far as is known.
func (w *work) members(key string) []uint32 {
	w.knowing.RLock()
	defer w.knowing.RUnlock()
	if w.comparing == nil {
		return nil
	}
	return w.comparing.Members(key)
}

// run goes on until the preview has ended or ctx is done. What fails is tried again with the
// next look, from what the rows say.
func (w *work) run(ctx context.Context) {
	for {
		ended, err := w.advance(ctx)
		switch {
		case ctx.Err() != nil || ended:
			return
		case fault.Is(err, fault.Conflict): // somebody cancelled it
			return
		case err != nil:
			w.Log.WarnContext(ctx, "a preview does not go on, will retry", "preview", w.id, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.look:
		}
		select { // what ends together costs little more than one
		case <-ctx.Done():
			return
		case <-time.After(gathering):
		}
	}
}

func (w *work) forget() {
	w.knowing.Lock()
	defer w.knowing.Unlock()
	w.shares, w.comparing, w.asked = nil, nil, nil
}

// load reads the shares, and takes in those that are final.
func (w *work) load(ctx context.Context) error {
	comparing, err := w.Comparing()
	if err != nil {
		return err
	}
	if w.engines, err = w.crossing(ctx, w.preview); err != nil {
		return err
	}
	var all []Share
	if err := w.EachShare(ctx, w.id, func(s Share) error {
		all = append(all, s)
		return nil
	}); err != nil {
		return err
	}
	w.knowing.Lock()
	w.shares, w.comparing, w.asked, w.lookedAt = all, comparing, map[int64][]uint32{}, time.Time{}
	w.knowing.Unlock()
	for _, s := range all {
		w.await(s)
	}
	if err := w.takeInAgain(ctx); err != nil {
		w.forget()
		return err
	}
	return nil
}

// await remembers what a share waits for.
func (w *work) await(s Share) {
	if !s.State.Final() && s.Compilation != 0 {
		w.asked[s.Compilation] = append(w.asked[s.Compilation], s.Number)
	}
}

// known is that a share is another one now.
func (w *work) known(s Share) {
	before := w.shares[s.Number]
	left := slices.DeleteFunc(w.asked[before.Compilation], func(n uint32) bool { return n == s.Number })
	if len(left) == 0 {
		delete(w.asked, before.Compilation)
	} else {
		w.asked[before.Compilation] = left
	}
	w.shares[s.Number] = s
	w.await(s)
}

// advance looks after what was asked for, asks for what was not, and ends the preview when
// nothing waits. It says whether it has ended.
func (w *work) advance(ctx context.Context) (ended bool, err error) {
	if w.comparing == nil {
		if err := w.load(ctx); err != nil {
			return false, err
		}
	}
	err = w.follow(ctx)
	if w.comparing != nil {
		if e := w.ask(ctx); e != nil {
			err = e
		}
	}
	if w.comparing == nil || slices.ContainsFunc(w.shares, func(s Share) bool { return !s.State.Final() }) {
		return false, err
	}
	if err := w.finish(ctx); err != nil {
		return false, err
	}
	return true, nil
}

// ask asks for what was not asked for. What was compiled meanwhile is looked after: the first changes are there
// long before everything is asked.
func (w *work) ask(ctx context.Context) (failed error) {
	fresh := map[fleet.Certname]uint32{}
	var nodes []fleet.Certname
	for _, s := range w.shares {
		if !s.State.Final() && s.Compilation == 0 {
			fresh[s.Node] = s.Number
			nodes = append(nodes, s.Node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	err := w.Compiler.Ask(ctx, w.preview, nodes, func(answers []Answer) error {
		numbers := make([]uint32, len(answers))
		for i, a := range answers {
			numbers[i] = fresh[a.Node]
		}
		err := w.settle(ctx, answers, numbers)
		if w.comparing != nil {
			if e := w.follow(ctx); e != nil {
				err = e
			}
		}
		if w.comparing == nil {
			return err
		}
		if err != nil {
			failed = err
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return failed
}

// follow looks after the compilations that are said to have ended, and after all from time to time: a hint may be lost.
func (w *work) follow(ctx context.Context) (err error) {
	ids, begin := w.takeHeard(), time.Now()
	all := begin.Sub(w.lookedAt) >= max(w.Poll, lookShare*w.lookTook)
	if all {
		ids = slices.Sorted(maps.Keys(w.asked))
	}
	for batch := range slices.Chunk(ids, lookAtOnce) {
		if e := w.lookAfter(ctx, batch); e != nil {
			err = e
		}
		if w.comparing == nil {
			return err
		}
	}
	if all {
		w.lookedAt, w.lookTook = begin, time.Since(begin)
	}
	return err
}

func (w *work) lookAfter(ctx context.Context, ids []int64) error {
	answers, err := w.Compiler.Ended(ctx, ids)
	if err != nil {
		return err
	}
	var which []uint32
	var known []Answer
	for _, a := range answers {
		for _, number := range w.asked[a.Compilation] {
			known, which = append(known, a), append(which, number)
		}
	}
	return w.settle(ctx, known, which)
}

// finish stores the groups.
func (w *work) finish(ctx context.Context) error {
	_, err := w.Store.FinishPreview(ctx, Preview{ID: w.id, State: Ready, Unseen: unseen(w.shares), EndedAt: time.Now()}, w.comparing.Groups(w.nameOf))
	if err == nil {
		w.changes.Tell(w.id)
	}
	return err
}

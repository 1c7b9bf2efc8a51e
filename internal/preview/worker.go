package preview

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	askAtOnce  = 200     // nodes in one question to the compiler
	pageShares = 2_000   // shares that are read at once
	maxGroups  = 100_000 // that are stored
)

// Run works on previews until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	poll := time.NewTicker(s.Poll)
	defer poll.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		if err := s.begin(ctx, &running); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "which previews are open is not known, will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		case <-s.wake:
		}
		s.mu.Lock()
		for _, w := range s.live {
			w.hint()
		}
		s.mu.Unlock()
	}
}

// begin starts to work on open previews, as many as there is room for.
func (s *Service) begin(ctx context.Context, running *sync.WaitGroup) error {
	open, err := s.Store.OpenPreviews(ctx)
	if err != nil {
		return err
	}
	for _, p := range open {
		s.mu.Lock()
		_, there := s.live[p.ID]
		full := len(s.live) >= s.MaxAtOnce
		s.mu.Unlock()
		if full {
			return nil
		}
		if there {
			continue
		}
		w := &work{Service: s, id: p.ID, env: p.Environment, version: p.Version, look: make(chan struct{}, 1)}
		s.mu.Lock()
		s.live[p.ID] = w
		s.mu.Unlock()
		running.Go(func() {
			defer s.drop(p.ID)
			w.run(ctx)
		})
	}
	return nil
}

func (s *Service) drop(id int64) {
	s.mu.Lock()
	delete(s.live, id)
	s.mu.Unlock()
	s.Wake()
}

// work is the work on one preview. Its goroutine alone changes what knowing guards.
type work struct {
	*Service
	id      int64
	env     fleet.Environment
	version fleet.Digest
	look    chan struct{}

	knowing   sync.RWMutex
	shares    []Share   // by Number
	comparing Comparing // what was taken in of them; nil before they are loaded
}

func (w *work) hint() {
	select {
	case w.look <- struct{}{}:
	default:
	}
}

// so is what is known so far.
func (w *work) so(limit int) (api.FleetDifference, error) {
	w.knowing.RLock()
	defer w.knowing.RUnlock()
	if w.comparing == nil {
		return api.FleetDifference{}, nil
	}
	return w.comparing.So(limit, func(number uint32) string { return string(w.shares[number].Node) })
}

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
		case err != nil && fault.Of(err) == fault.Conflict: // somebody cancelled it
			return
		case err != nil:
			w.Log.WarnContext(ctx, "a preview does not go on, will retry", "preview", w.id, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.look:
		}
	}
}

func (w *work) forget() {
	w.knowing.Lock()
	defer w.knowing.Unlock()
	w.shares, w.comparing = nil, nil
}

// load reads the shares, and takes in those that are final.
func (w *work) load(ctx context.Context) error {
	comparing, err := w.Comparing()
	if err != nil {
		return err
	}
	var all []Share
	for {
		shares, err := w.Store.PreviewShares(ctx, w.id, SharePage{From: uint32(len(all)), Limit: pageShares}) //nolint:gosec // at most MaxTargets
		if err != nil {
			return err
		}
		all = append(all, shares...)
		if len(shares) < pageShares {
			break
		}
	}
	w.knowing.Lock()
	w.shares, w.comparing = all, comparing
	w.knowing.Unlock()
	for _, s := range all {
		if _, err := w.takeIn(ctx, s); err != nil {
			w.forget()
			return err
		}
	}
	return nil
}

// takeIn adds a share whose catalogs are known to the groups.
func (w *work) takeIn(ctx context.Context, s Share) (Verdict, error) {
	switch {
	case s.State == Failed:
		w.comparing.AddFailure(s.Number, s.Node, s.Failure)
	case s.State == Unable || s.Base == "" || s.Fresh == "":
	case s.Base == s.Fresh:
		w.comparing.AddSame(s.Number, s.Node)
	default:
		return w.comparing.Add(ctx, s.Number, s.Node, s.Base, s.Fresh)
	}
	return NoDifference, nil
}

// advance asks for what was not asked for, looks after what was, and ends the preview when
// nothing waits. It says whether it has ended.
func (w *work) advance(ctx context.Context) (ended bool, err error) {
	if w.comparing == nil {
		if err := w.load(ctx); err != nil {
			return false, err
		}
	}
	var fresh, pending []uint32
	for _, s := range w.shares {
		switch {
		case s.State.Final():
		case s.Compilation == 0:
			fresh = append(fresh, s.Number)
		default:
			pending = append(pending, s.Number)
		}
	}
	for batch := range slices.Chunk(pending, askAtOnce) {
		if e := w.lookAfter(ctx, batch); e != nil {
			err = e
		}
		if w.comparing == nil {
			return false, err
		}
	}
	for batch := range slices.Chunk(fresh, askAtOnce) {
		if e := w.ask(ctx, batch); e != nil {
			err = e
		}
		if w.comparing == nil {
			return false, err
		}
	}
	for _, s := range w.shares {
		if !s.State.Final() {
			return false, err
		}
	}
	if err := w.finish(ctx); err != nil {
		return false, err
	}
	return true, nil
}

func (w *work) ask(ctx context.Context, numbers []uint32) error {
	nodes := make([]fleet.Certname, len(numbers))
	for i, number := range numbers {
		nodes[i] = w.shares[number].Node
	}
	answers, err := w.Compiler.Ask(ctx, w.env, w.version, nodes)
	if err != nil {
		return err
	}
	return w.settle(ctx, answers, numbers)
}

func (w *work) lookAfter(ctx context.Context, numbers []uint32) error {
	ids, of := make([]int64, len(numbers)), make(map[int64][]uint32, len(numbers))
	for i, number := range numbers {
		ids[i] = w.shares[number].Compilation
		of[ids[i]] = append(of[ids[i]], number)
	}
	answers, err := w.Compiler.Ended(ctx, ids)
	if err != nil || len(answers) == 0 {
		return err
	}
	var which []uint32
	var known []Answer
	for _, a := range answers {
		for _, number := range of[a.Compilation] {
			known, which = append(known, a), append(which, number)
		}
	}
	return w.settle(ctx, known, which)
}

// settle steps shares on with the answers at the same places, and stores them. A share that cannot be
// compared now waits on; the others do not wait for it.
func (w *work) settle(ctx context.Context, answers []Answer, numbers []uint32) error {
	var failed error
	next := make([]Share, 0, len(numbers))
	for i, number := range numbers {
		s, compare := Step(w.shares[number], answers[i])
		if compare {
			compared, err := w.compare(ctx, s)
			if err != nil {
				failed = fmt.Errorf("compare the catalogs of %s: %w", s.Node, err)
				continue
			}
			s = compared
		} else if s.State == Failed {
			w.comparing.AddFailure(s.Number, s.Node, s.Failure)
		}
		next = append(next, s)
	}
	if _, err := w.Store.SavePreviewShares(ctx, w.id, next); err != nil {
		w.forget() // what was taken in is not what the rows say
		return err
	}
	w.knowing.Lock()
	defer w.knowing.Unlock()
	for _, s := range next {
		w.shares[s.Number] = s
	}
	return failed
}

// compare ends a share whose catalog is there. An error leaves it waiting; catalogs that are not
// stored any more, or are none, end it.
func (w *work) compare(ctx context.Context, s Share) (Share, error) {
	base, err := w.Bases.Base(ctx, s.Node)
	if err != nil {
		return s, err
	}
	s.Base = base
	verdict, err := w.takeIn(ctx, s)
	switch kind := fault.Of(err); {
	case err == nil:
		return s.judged(verdict), nil
	case kind == fault.NotFound || kind == fault.Invalid:
		s.State, s.Failure = Unable, Failure{Message: fault.Detail(err)}
		return s, nil
	default:
		return s, err
	}
}

// finish stores the groups.
func (w *work) finish(ctx context.Context) error {
	so, err := w.so(maxGroups)
	if err != nil {
		return err
	}
	groups := make([]Group, len(so.Groups))
	for i, change := range so.Groups {
		groups[i] = Group{Change: change, Nodes: w.comparing.Members(change.Key)}
	}
	_, err = w.Store.FinishPreview(ctx, Preview{ID: w.id, State: Ready, Unseen: unseen(w.shares), EndedAt: time.Now()}, groups)
	return err
}

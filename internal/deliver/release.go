package deliver

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Apply says when a node runs with a catalog that it is told of.
type Apply string

// When a node runs. Empty: as the server is set.
const (
	Scheduled Apply = "scheduled" // when its schedule says so
	AtOnce    Apply = "now"
)

// ParseApply reads when nodes run; empty stays empty.
func ParseApply(text string) (Apply, error) {
	switch a := Apply(text); a {
	case Scheduled, AtOnce, "":
		return a, nil
	}
	return "", fault.New(fault.Invalid, "catalogs are applied %s or %s, not %.40q", AtOnce, Scheduled, text)
}

// Release makes a catalog the next generation of a node, and returns the generation
// that is the newest then; done is false when it was that already. Conflict for a node
// that is pinned or in live mode.
func (s *Service) Release(ctx context.Context, node fleet.Certname, o Order, apply Apply) (g Generation, done bool, err error) {
	for range 3 { // somebody else may release at the same time
		standing, _, err := s.Standing(ctx, node)
		if err != nil {
			return g, false, err
		}
		step, err := Advance(standing, o, s.Now())
		if err != nil {
			return g, false, err
		}
		if step == nil {
			return *standing.Head, false, nil
		}
		switch err := s.Store.Take(ctx, *step); {
		case err == nil:
			s.Log.InfoContext(ctx, "catalog released", "node", node, "generation", step.Next.Number, "catalog", o.Catalog.Digest.Short(),
				"environment", o.Catalog.Environment, "version", o.Catalog.Version.Short(), "actor", o.By)
			s.promote(ctx, *step.Next)
			s.Changed(node, apply)
			return *step.Next, true, nil
		case fault.Of(err) != fault.Conflict:
			return g, false, err
		}
	}
	return g, false, fault.New(fault.Conflict, "others release to %s all the time", node)
}

// promote makes the inventory show a generation. What goes wrong is tried again by Run:
// the release itself is done.
func (s *Service) promote(ctx context.Context, g Generation) {
	err := s.Promoter.Promote(ctx, g)
	if err == nil {
		err = s.Store.Promoted(ctx, g.Node, g.Number)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "the inventory does not show a released catalog yet, will retry", "node", g.Node, "generation", g.Number, "err", err)
	}
}

// promoteEvery is how often Run looks for generations that the inventory does not show.
const promoteEvery = time.Minute

// promoteBatch is how many are read at once.
const promoteBatch = 100

// Run promotes what the process before could not, and what failed, until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(promoteEvery)
	defer tick.Stop()
	for {
		s.promoteRest(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) promoteRest(ctx context.Context) {
	for after, more := fleet.Certname(""), true; more; {
		rest, err := s.Store.Unpromoted(ctx, after, promoteBatch)
		if err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "list released catalogs failed, will retry", "err", err)
		}
		for _, g := range rest {
			if ctx.Err() != nil {
				return
			}
			s.promote(ctx, g)
			after = g.Node
		}
		more = len(rest) == promoteBatch
	}
}

// Pin keeps a node at its newest generation; with why empty it is unpinned.
func (s *Service) Pin(ctx context.Context, node fleet.Certname, by, why string) error {
	if _, _, err := s.Standing(ctx, node); err != nil {
		return err
	}
	p := Pin{}
	if why != "" {
		p = Pin{At: s.Now(), By: by, Why: why}
	}
	return s.Store.SetPin(ctx, node, p)
}

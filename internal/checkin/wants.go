package checkin

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Queue is where catalogs are wanted; a compile.Queue that knows nodes is one.
type Queue interface {
	Want(ctx context.Context, w compile.Want) (compile.Compilation, error)
	// StandingsNamed is what is known of those of the nodes that are active.
	StandingsNamed(ctx context.Context, nodes []fleet.Certname) ([]compile.Standing, error)
}

// Wants has catalogs compiled of nodes that do not ask themselves.
type Wants struct {
	Queue        Queue
	Environments Environments
	Trust        Trust
	Wake         func() // a dispatcher
}

// wantsAtOnce is how many rows are wanted at the same time: their commits are shared.
const wantsAtOnce = 32

// WantNow wants each node's catalog of the version that its environment has now. Nodes that cannot be compiled are refused, with
// the reason.
func (w Wants) WantNow(ctx context.Context, nodes []fleet.Certname, priority compile.Priority) ([]compile.Compilation, map[fleet.Certname]string, error) {
	standings, err := w.Queue.StandingsNamed(ctx, nodes)
	if err != nil {
		return nil, nil, err
	}
	refused := map[fleet.Certname]string{}
	for _, node := range nodes {
		refused[node] = "nothing is known of it, or it was deactivated or expired"
	}
	var mu sync.Mutex
	rows := make([]compile.Compilation, len(standings))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(wantsAtOnce)
	for i, standing := range standings {
		delete(refused, standing.Node)
		group.Go(func() error {
			c, err := w.wantNow(ctx, standing, priority)
			rows[i] = c
			if kind := fault.Of(err); err != nil && (kind == fault.NotFound || kind == fault.Invalid) {
				mu.Lock()
				defer mu.Unlock()
				refused[standing.Node] = fault.Detail(err)
				return nil
			}
			return err
		})
	}
	err = group.Wait()
	w.Wake()
	var wanted []compile.Compilation
	for _, c := range rows {
		if c.ID != 0 {
			wanted = append(wanted, c)
		}
	}
	return wanted, refused, err
}

func (w Wants) wantNow(ctx context.Context, known compile.Standing, priority compile.Priority) (compile.Compilation, error) {
	if known.FactsSeq == 0 {
		return compile.Compilation{}, fault.New(fault.NotFound, "no facts of %s are known: run `puppet agent -t` or `puppet facts upload` there", known.Node)
	}
	place, err := w.Environments.Of(ctx, known.Node, known.Environment)
	if err != nil {
		return compile.Compilation{}, err
	}
	if place.Version == "" { // of a node that was released to: what is compiled is what it would have in live mode
		version, err := w.Environments.Versions.Refresh(ctx, place.Environment)
		if err != nil {
			return compile.Compilation{}, err
		}
		place.Version = version.ID
	}
	trusted, err := w.Trust.Known(ctx, known.Node)
	if err != nil {
		return compile.Compilation{}, err
	}
	return w.Queue.Want(ctx, compile.Want{
		Node: known.Node, Environment: place.Environment, Version: place.Version, FactsSeq: known.FactsSeq, Trusted: trusted, Priority: priority, At: time.Now(),
	})
}

// Stage implements deliver.Stager over the queue. The ticket is the row's transaction: asked again with it, the row that has
// ended answers.
func (w Wants) Stage(ctx context.Context, wish deliver.Wish) (staged deliver.Staged, err error) {
	trusted, err := w.Trust.Known(ctx, wish.Node)
	if err != nil {
		return staged, err
	}
	c, err := w.Queue.Want(ctx, compile.Want{
		Node: wish.Node, Environment: wish.Environment, Version: wish.Version, Transaction: wish.Ticket, Trusted: trusted, Priority: compile.Waited,
		At: time.Now(), Staged: true,
	})
	if err != nil {
		return staged, err
	}
	switch c.State {
	case compile.Failed:
		staged.Failure = c.Err.Told()
	case compile.Done:
		given := CatalogOf(c)
		staged.Catalog = &given
	case compile.Wanted, compile.Leased: // it goes on
	}
	return staged, nil
}

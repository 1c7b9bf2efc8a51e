package server

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// compileDoor is httpapi.Compiling.
type compileDoor struct {
	*sql.Queue
	p *parts
}

// Resume wakes the dispatcher of this server; others see it within a poll.
func (d compileDoor) Resume(ctx context.Context, env fleet.Environment) error {
	err := d.Queue.Resume(ctx, env)
	d.p.dispatch.Wake()
	return err
}

// wantsAtOnce is how many rows are wanted at the same time: their commits are shared.
const wantsAtOnce = 32

// WantNow wants each node's catalog of the version that its environment has now.
func (d compileDoor) WantNow(ctx context.Context, nodes []fleet.Certname, priority compile.Priority) ([]compile.Compilation, map[fleet.Certname]string, error) {
	standings, err := d.p.store.Wants.StandingsNamed(ctx, nodes)
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
			c, err := d.wantNow(ctx, standing, priority)
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
	d.p.dispatch.Wake()
	var wanted []compile.Compilation
	for _, c := range rows {
		if c.ID != 0 {
			wanted = append(wanted, c)
		}
	}
	return wanted, refused, err
}

func (d compileDoor) wantNow(ctx context.Context, known compile.Standing, priority compile.Priority) (compile.Compilation, error) {
	node := known.Node
	if known.FactsSeq == 0 {
		return compile.Compilation{}, fault.New(fault.NotFound, "no facts of %s are known: run `puppet agent -t` or `puppet facts upload` there", node)
	}
	env, err := agentDoor{d.p}.NodeEnvironment(ctx, node, known.Environment)
	if err != nil {
		return compile.Compilation{}, err
	}
	version, err := d.p.library.Refresh(ctx, env)
	if err != nil {
		return compile.Compilation{}, err
	}
	trusted, err := d.trusted(ctx, node)
	if err != nil {
		return compile.Compilation{}, err
	}
	return d.Want(ctx, compile.Want{
		Node: node, Environment: env, Version: version.ID, FactsSeq: known.FactsSeq, Trusted: trusted, Priority: priority, At: time.Now(),
	})
}

// trusted is what the node's certificate says; nothing of a node that has none.
func (d compileDoor) trusted(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	trusted, err := agentDoor{d.p}.Trusted(ctx, node, nil)
	if fault.Of(err) == fault.NotFound {
		return nil, nil
	}
	return trusted, err
}

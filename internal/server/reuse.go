package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// newReuser wires what decides whether a stored catalog stands.
func (p *parts) newReuser(orders compile.Orders) *compile.Reuser {
	return compile.NewReuser(compile.ReuserParts{
		Store:       p.store.Reusables,
		Queue:       p.store.Queue,
		Orders:      orders,
		Inventory:   checkin.Questions{Asker: p.store.Queries},
		Documents:   documents{p.blobs},
		Results:     p.results,
		Log:         p.log.Logger,
		Versions:    &differ{library: p.library},
		Engine:      p.ruby.Engine,
		Await:       p.ruby.Await,
		Wake:        func() { p.dispatch.Wake() },
		VolatileTTL: func() time.Duration { return p.config.Load().VolatileTTL },
		CheckOneIn:  func() int { return p.config.Load().ReuseCheck },
	})
}

// maxDiffs is how many differences of versions are remembered: those of the last
// deploys, of all environments. Thousands of nodes ask for the same.
const maxDiffs = 32

// differ is compile.Differ over the library's trees.
type differ struct {
	library *code.Library
	mu      sync.Mutex
	known   map[versionPair]*compile.Changes
}

type versionPair struct {
	env      fleet.Environment
	from, to fleet.Digest
}

// Changes implements compile.Differ.
func (d *differ) Changes(ctx context.Context, env fleet.Environment, from, to fleet.Digest) (*compile.Changes, error) {
	pair := versionPair{env, from, to}
	d.mu.Lock()
	known := d.known[pair]
	d.mu.Unlock()
	if known != nil {
		return known, nil
	}
	older, err := d.library.Tree(ctx, env, from)
	if err != nil {
		return nil, err
	}
	newer, err := d.library.Tree(ctx, env, to)
	if err != nil {
		return nil, err
	}
	changes := compile.Changes(code.Diff(older, newer))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxDiffs {
		d.known = map[versionPair]*compile.Changes{}
	}
	d.known[pair] = &changes
	return &changes, nil
}

// catalogInputs is rest.CatalogInputs.
type catalogInputs struct {
	nodes   inventory.NodeStore
	rows    compile.Reusables
	chains  compile.Wants
	library *code.Library
	reuser  *compile.Reuser
}

// catalogInputs makes it.
func (p *parts) catalogInputs() catalogInputs {
	return catalogInputs{nodes: p.store.Nodes, rows: p.store.Reusables, chains: p.store.Wants, library: p.library, reuser: p.reuser}
}

// Inputs judges a catalog as if its node asked now, with the certificate that it
// showed last.
func (d catalogInputs) Inputs(ctx context.Context, name fleet.Certname) (compile.Verdict, []compile.ReuseStop, error) {
	node, err := d.nodes.Node(ctx, name)
	if err != nil {
		return compile.Verdict{}, nil, err
	}
	from, err := d.rows.Newest(ctx, name, node.Environment)
	if err != nil {
		return compile.Verdict{}, nil, err
	}
	version, err := d.library.Refresh(ctx, node.Environment)
	if err != nil {
		return compile.Verdict{}, nil, err
	}
	verdict, err := d.reuser.Judge(ctx, compile.Wish{Node: name, Environment: node.Environment, Version: version.ID, Trusted: from.Trusted})
	if err != nil {
		verdict = compile.Verdict{From: from, Why: "whether it stands is not known: " + fault.Detail(err)}
	}
	chains, err := d.chains.Chains(ctx)
	if err != nil {
		return compile.Verdict{}, nil, err
	}
	if i := slices.IndexFunc(chains, func(c compile.Chain) bool { return c.Node == name && c.Environment == node.Environment }); i >= 0 {
		verdict.Chain = &chains[i]
	}
	stops, err := d.rows.ReuseStops(ctx, name, node.Environment)
	return verdict, stops, err
}

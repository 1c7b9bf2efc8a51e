package near

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Checkins answers nodes that ask for their catalogs: as Service does while the records can be reached, and else with what is kept here.
type Checkins struct {
	Service checkin.Service
	Keeper  *Keeper
	Witness *Witness
	Intake
}

// Resolve finds out everything about a request, and keeps its facts. Only the node itself can be told without the records: what
// another one may have on its behalf is in them.
func (c *Checkins) Resolve(ctx context.Context, r checkin.Request) (v checkin.Visit, err error) {
	err = c.reach(ctx, func(ctx context.Context) (err error) {
		v, err = c.Service.Resolve(ctx, r)
		return err
	})
	if !errors.Is(err, ErrCut) {
		return v, err
	}
	if r.Certificate == nil {
		return v, errNobodyElse()
	}
	if r.Facts != nil { // they go into the queue, with what the certificate says
		if err := c.Service.SaveFacts(ctx, r); err != nil {
			return v, err
		}
	}
	kept, err := c.Keeper.Kept(r.Node)
	if err != nil {
		return v, err
	}
	p := kept.Pointer
	v = checkin.Visit{Request: r, Place: checkin.Place{Environment: p.Environment, Version: p.Version, Released: p.Mode == deliver.Released}, Kept: true}
	v.Facts = nil
	return v, nil
}

// errNobodyElse is what everybody is told who asks for a node and is not that node: whether they may, and what they would get, is in the records.
func errNobodyElse() error {
	return fault.Later(comeBack, "this server cannot reach the database: nodes get their catalogs from it now, and nobody else")
}

// SaveFacts stores the facts of a request that asks for nothing. The certificate of a node that does not send them itself is in the records.
func (c *Checkins) SaveFacts(ctx context.Context, r checkin.Request) error {
	if r.Certificate != nil {
		return c.Service.SaveFacts(ctx, r)
	}
	err := c.reach(ctx, func(ctx context.Context) error { return c.Service.SaveFacts(ctx, r) })
	if errors.Is(err, ErrCut) {
		return errNobodyElse()
	}
	return err
}

// Elsewhere says whether an agent is only to be told that its environment is another one.
func (c *Checkins) Elsewhere(ctx context.Context, v checkin.Visit) (elsewhere bool, err error) {
	if v.Kept {
		return v.CheckEnvironment && v.Environment != v.Requested, nil
	}
	err = c.reach(ctx, func(ctx context.Context) (err error) {
		elsewhere, err = c.Service.Elsewhere(ctx, v)
		return err
	})
	if errors.Is(err, ErrCut) {
		err = fault.Later(comeBack, "this server cannot reach the database any more")
	}
	return elsewhere, err
}

// Catalog answers a visit.
func (c *Checkins) Catalog(ctx context.Context, v checkin.Visit) (answer checkin.Answer, err error) {
	err = ErrCut
	if !v.Kept {
		err = c.reach(ctx, func(ctx context.Context) (err error) {
			answer, err = c.Service.Catalog(ctx, v)
			return err
		})
	}
	if err == nil && v.Certificate != nil {
		c.Keeper.Asked(v.Node)
	}
	switch {
	case !errors.Is(err, ErrCut):
		return answer, err
	case v.Certificate == nil:
		return answer, errNobodyElse()
	}
	return c.kept(ctx, v)
}

// kept answers with the catalog that is kept for a node. That it was given is told first: what nobody can see afterwards does not happen.
func (c *Checkins) kept(ctx context.Context, v checkin.Visit) (checkin.Answer, error) {
	kept, err := c.Keeper.Kept(v.Node)
	if err != nil {
		return checkin.Answer{}, err
	}
	p := kept.Pointer
	document, err := catalog.Render(kept.Document, catalog.Stamp{Static: v.Inlined(), Version: p.Version, UUID: p.UUID})
	if err != nil {
		return checkin.Answer{}, err
	}
	if err := c.Witness.Given(ctx, kept); err != nil {
		return checkin.Answer{}, err
	}
	return checkin.Answer{Document: document, Rich: catalog.Rich(document), Environment: p.Environment, CodeID: string(p.Version)}, nil
}

// Witness leaves words of what was given to nodes without the records.
type Witness struct {
	Intake
	Log *slog.Logger

	served atomic.Int64
}

// Served is how many times a kept catalog was given out since the start.
func (w *Witness) Served() int64 { return w.served.Load() }

// Given leaves a word in the stream of events, and in the log, that a kept catalog is given.
func (w *Witness) Given(ctx context.Context, kept Kept) error {
	since, _ := w.Link.Cut()
	now, p := w.Now(), kept.Pointer
	err := w.queue(Events, kept.Node, now, event.Batch{Node: kept.Node, Run: "kept-" + uuid.NewString(), Events: []pxp.RunEvent{{
		N: 1, Kind: event.Kept, Status: event.Success, At: now, Environment: string(p.Environment), Version: string(p.Version),
		Message: "the catalog " + p.Catalog.Short() + " that was known last was given by a server that could not reach the database",
	}}})
	if err != nil {
		return err
	}
	w.served.Add(1)
	w.Log.InfoContext(ctx, "a kept catalog is given", "node", kept.Node, "catalog", p.Catalog.Short(), "version", p.Version.Short(), "generation",
		p.Generation, "cut_since", since)
	return nil
}

// HeldAt says which files a node is given: without the records those of its kept catalog.
func (c *Checkins) HeldAt(ctx context.Context, node fleet.Certname) (at checkin.Code, ok bool, err error) {
	err = c.reach(ctx, func(ctx context.Context) (err error) {
		at, ok, err = c.Service.HeldAt(ctx, node)
		return err
	})
	if !errors.Is(err, ErrCut) {
		return at, ok, err
	}
	kept, err := c.Keeper.Kept(node)
	return checkin.Code{Environment: kept.Pointer.Environment, Version: kept.Pointer.Version}, err == nil, err
}

// Places decides which environment a node gets: without the records that of its kept catalog. The node itself is told, and nobody else.
type Places struct {
	Environments checkin.Environments
	Keeper       *Keeper
	Intake
}

// Of is the place of a node.
func (p Places) Of(ctx context.Context, node fleet.Certname, requested fleet.Environment) (place checkin.Place, err error) {
	err = p.reach(ctx, func(ctx context.Context) (err error) {
		place, err = p.Environments.Of(ctx, node, requested)
		return err
	})
	if !errors.Is(err, ErrCut) {
		return place, err
	}
	if who := fleet.ActorFrom(ctx); who.Kind != fleet.NodeActor || who.Name != string(node) {
		return place, errNobodyElse()
	}
	kept, err := p.Keeper.Kept(node)
	return checkin.Place{Environment: kept.Pointer.Environment, Version: kept.Pointer.Version}, err
}

// Roles adds what the roles of a certificate allow. Without the records that is not known: who may do something by its roles is not refused for good.
type Roles struct {
	Certificate func(ctx context.Context, who fleet.Actor) (fleet.Actor, error)
	Intake
}

// Of is who asks, with what that one may do.
func (r Roles) Of(ctx context.Context, who fleet.Actor) (known fleet.Actor, err error) {
	err = r.reach(ctx, func(ctx context.Context) (err error) {
		known, err = r.Certificate(ctx, who)
		return err
	})
	if errors.Is(err, ErrCut) {
		return who, errNobodyElse()
	}
	return known, err
}

// Versions lists what was deployed: without the records what kept catalogs are of.
type Versions struct {
	Store interface {
		Versions(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error)
	}
	Keeper *Keeper
	Intake
}

// Versions lists the versions of an environment.
func (v Versions) Versions(ctx context.Context, env fleet.Environment, limit int) (all []code.Version, err error) {
	err = v.reach(ctx, func(ctx context.Context) (err error) {
		all, err = v.Store.Versions(ctx, env, limit)
		return err
	})
	if !errors.Is(err, ErrCut) {
		return all, err
	}
	for _, id := range v.Keeper.Versions(env) {
		all = append(all, code.Version{ID: id, Environment: env})
	}
	if all == nil {
		return nil, fault.Later(comeBack, "this server cannot reach the database, and knows no version of %s", env)
	}
	return all, nil
}

// Deliveries says what nodes may have: without the records what is kept.
type Deliveries struct {
	Service interface {
		Pointer(ctx context.Context, node fleet.Certname) (deliver.Pointer, error)
		MayHave(ctx context.Context, node fleet.Certname, catalog fleet.Digest) (bool, error)
	}
	Keeper  *Keeper
	Witness *Witness
	Intake
}

// Pointer is what a node may have.
func (d Deliveries) Pointer(ctx context.Context, node fleet.Certname) (p deliver.Pointer, err error) {
	err = d.reach(ctx, func(ctx context.Context) (err error) {
		p, err = d.Service.Pointer(ctx, node)
		return err
	})
	if err == nil || fault.Is(err, fault.NotFound) { // that it may have nothing is an answer, too
		d.Keeper.Asked(node)
	}
	if !errors.Is(err, ErrCut) {
		return p, err
	}
	kept, err := d.Keeper.Kept(node)
	return kept.Pointer, err
}

// MayHave says whether a node may fetch a catalog. One that is kept here is given then, and told of.
func (d Deliveries) MayHave(ctx context.Context, node fleet.Certname, digest fleet.Digest) (may bool, err error) {
	err = d.reach(ctx, func(ctx context.Context) (err error) {
		may, err = d.Service.MayHave(ctx, node, digest)
		return err
	})
	if !errors.Is(err, ErrCut) {
		return may, err
	}
	kept, err := d.Keeper.Kept(node)
	if err != nil || kept.Pointer.Catalog != digest {
		return false, err
	}
	return true, d.Witness.Given(ctx, kept)
}

// Documents is a store that has the kept catalogs, too. Who may have one is asked before.
type Documents struct {
	cas.Store
	Keeper *Keeper
}

// Open implements cas.Store.
func (d Documents) Open(ctx context.Context, digest fleet.Digest) (cas.Blob, error) {
	blob, err := d.Store.Open(ctx, digest)
	if err == nil {
		return blob, nil
	}
	if document, there := d.Keeper.document(digest); there {
		return held{bytes.NewReader(document)}, nil
	}
	return nil, err
}

// held is a blob in memory.
type held struct{ *bytes.Reader }

func (held) Close() error { return nil }

package near

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Kept is the catalog that a node may have, as it was known last.
type Kept struct {
	Node     fleet.Certname
	Pointer  deliver.Pointer
	Document []byte // as it is stored, under the digest of the pointer
}

// Shelf keeps a catalog for each node on this server's own disk. Methods may be called concurrently.
type Shelf interface {
	// Keep puts a catalog in the place of the node's earlier one.
	Keep(k Kept) error
	// Kept is the catalog of a node; NotFound.
	Kept(node fleet.Certname) (Kept, error)
	// Drop forgets a node's catalog. One that there is none of is no error.
	Drop(node fleet.Certname) error
	// Pointers is what is kept, without the documents.
	Pointers() (map[fleet.Certname]deliver.Pointer, error)
}

// Keeper keeps the catalogs of the nodes that ask this server, and gives them out while the records cannot be reached.
//
// What a node may have is what its pointer says (see package deliver): in released mode only what was released, in live mode the newest one that is
// not held. The keeper asks again when a node has asked, and for all nodes in turn; so a catalog that the node got from another server, or that was
// compiled before it asked, is known here a moment later.
type Keeper struct {
	Link     *Link
	Shelf    Shelf
	Pointers interface {
		// Pointer is what a node may have; NotFound.
		Pointer(ctx context.Context, node fleet.Certname) (deliver.Pointer, error)
	}
	Documents interface {
		Document(ctx context.Context, d fleet.Digest) ([]byte, error)
	}
	// Fetch brings what a node needs besides to this server's disk, as far as it can: files of its catalog, and of its version.
	Fetch func(ctx context.Context, k Kept)
	For   time.Duration // how long kept catalogs are given since the link was cut
	Every time.Duration // the time between two rounds over all nodes; 0: a minute, and more for many nodes
	Now   func() time.Time
	Log   *slog.Logger

	wanted chan fleet.Certname

	mu    sync.Mutex // guards the rest
	known map[fleet.Certname]acquaintance
}

// acquaintance is a node that asks this server.
type acquaintance struct {
	asked   time.Time       // last, or when this server started
	pointer deliver.Pointer // of what is kept; zero: nothing is
	given   int             // counts what made it behind
	covered int             // what given was when the answer that is kept was asked for; less than given: it is behind
}

const (
	keeperRound  = time.Minute
	nodeTime     = 20 * time.Millisecond // that a round takes at least for each node: 50 of them a second
	forgetNodes  = 7 * 24 * time.Hour    // that have not asked for so long
	wantedAtOnce = 4096                  // nodes that may wait to be looked at; others wait for the round
)

// NewKeeper returns a keeper that knows what was kept before.
func NewKeeper(k *Keeper) (*Keeper, error) {
	k.known, k.wanted = map[fleet.Certname]acquaintance{}, make(chan fleet.Certname, wantedAtOnce)
	if k.Fetch == nil {
		k.Fetch = func(context.Context, Kept) {}
	}
	all, err := k.Shelf.Pointers()
	for node, pointer := range all {
		k.known[node] = acquaintance{asked: k.Now(), pointer: pointer, given: 1}
	}
	return k, err
}

// Asked notes that a node itself has asked this server for its catalog, before it is answered.
func (k *Keeper) Asked(node fleet.Certname) {
	k.mu.Lock()
	a := k.known[node]
	a.asked = k.Now()
	a.given++
	k.known[node] = a
	k.mu.Unlock()
	select {
	case k.wanted <- node:
	default:
	}
}

// Count is how many nodes have a catalog here.
func (k *Keeper) Count() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.known {
		if a.pointer.Catalog != "" {
			n++
		}
	}
	return n
}

// Versions is the versions of an environment that kept catalogs are of.
func (k *Keeper) Versions(env fleet.Environment) []fleet.Digest {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[fleet.Digest]bool{}
	for _, a := range k.known {
		if a.pointer.Environment == env && a.pointer.Version != "" {
			all[a.pointer.Version] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Run keeps what is kept up to date until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	round := time.NewTimer(0)
	defer round.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case node := <-k.wanted:
			k.try(ctx, node)
		case <-round.C:
			nodes := k.nodes(ctx)
			k.round(ctx, nodes)
			round.Reset(max(cmp.Or(k.Every, keeperRound), time.Duration(len(nodes))*nodeTime))
		}
	}
}

// nodes are those that are looked at in a round. Those that have not asked for long are forgotten.
func (k *Keeper) nodes(ctx context.Context) []fleet.Certname {
	k.mu.Lock()
	all := slices.Sorted(maps.Keys(k.known))
	k.mu.Unlock()
	return slices.DeleteFunc(all, func(node fleet.Certname) bool { return k.old(node) && k.forget(ctx, node) })
}

// old is whether a node has not asked for so long that it is forgotten.
func (k *Keeper) old(node fleet.Certname) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Now().Sub(k.known[node].asked) > forgetNodes
}

// forget drops a node and its catalog, unless it asks meanwhile: then it is looked at again. The disk is slow: nobody waits for it.
func (k *Keeper) forget(ctx context.Context, node fleet.Certname) (forgotten bool) {
	if err := k.drop(node); err != nil {
		k.Log.WarnContext(ctx, "the catalog of a node that asks no more stays on this server's disk, will retry", "node", node, "err", err)
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Now().Sub(k.known[node].asked) <= forgetNodes {
		return false
	}
	delete(k.known, node)
	return true
}

// drop takes a node's catalog off the shelf.
func (k *Keeper) drop(node fleet.Certname) error {
	if err := k.Shelf.Drop(node); err != nil {
		return err
	}
	k.note(node, deliver.Pointer{}, 0)
	return nil
}

func (k *Keeper) round(ctx context.Context, nodes []fleet.Certname) {
	for _, node := range nodes {
		if _, cut := k.Link.Cut(); cut || ctx.Err() != nil {
			return
		}
		k.try(ctx, node)
	}
}

func (k *Keeper) try(ctx context.Context, node fleet.Certname) {
	if err := k.Refresh(ctx, node); err != nil && ctx.Err() == nil {
		if _, cut := k.Link.Cut(); !cut {
			k.Log.WarnContext(ctx, "the catalog of a node is not kept here as it is now, will retry", "node", node, "err", err)
		}
	}
}

// Refresh asks what a node may have, and keeps that.
func (k *Keeper) Refresh(ctx context.Context, node fleet.Certname) error {
	ctx, done := k.Link.While(ctx)
	defer done()
	if ctx.Err() != nil {
		return ErrCut
	}
	k.mu.Lock()
	before := k.known[node]
	k.mu.Unlock()
	pointer, err := k.Pointers.Pointer(ctx, node)
	if fault.Is(err, fault.NotFound) { // it may have nothing, or is gone
		if err := k.drop(node); err != nil {
			return err
		}
		k.note(node, deliver.Pointer{}, before.given)
		return nil
	}
	if err != nil {
		return err
	}
	if before.pointer == pointer {
		k.note(node, pointer, before.given)
		return nil
	}
	document, err := k.Documents.Document(ctx, pointer.Catalog)
	if err != nil {
		return err
	}
	kept := Kept{node, pointer, document}
	if err := k.Shelf.Keep(kept); err != nil {
		return err
	}
	k.note(node, pointer, before.given)
	k.Fetch(ctx, kept)
	return nil
}

func (k *Keeper) note(node fleet.Certname, pointer deliver.Pointer, covered int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.known[node]
	a.pointer, a.covered = pointer, max(a.covered, covered)
	k.known[node] = a
}

// behind is whether a node may have something newer than what is kept for it.
func (k *Keeper) behind(node fleet.Certname) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.known[node]
	return a.covered < a.given
}

// Kept is what a node may have while the records cannot be reached. Unavailable when nothing is kept for it, or for too long, or the node is behind.
func (k *Keeper) Kept(node fleet.Certname) (Kept, error) {
	since, cut := k.Link.Cut()
	if away := k.Now().Sub(since); cut && away > k.For {
		return Kept{},
			fault.Later(comeBack, "this server has not reached the database for %s, and gives out the catalogs that it keeps for %s only (near_catalogs_for)",
				fault.Duration(away.Round(time.Minute)), fault.Duration(k.For))
	}
	behind := k.behind(node) // before the shelf is read: what is put there meanwhile is newer
	kept, err := k.Shelf.Kept(node)
	switch {
	case fault.Is(err, fault.NotFound):
		return kept,
			fault.Later(comeBack, "this server cannot reach the database, and keeps no catalog of %s: the node has not asked here before, or may have none", node)
	case err != nil:
		return kept, err
	case behind:
		return Kept{}, fault.Later(comeBack,
			"this server cannot reach the database, and the catalog that it keeps of %s may be older than the node's own: the node goes on with its own", node)
	case kept.Node != node || fleet.DigestOf(kept.Document) != kept.Pointer.Catalog:
		return Kept{}, errors.Join(fault.New(fault.Internal, "the catalog that is kept for %s is not its own", node), k.drop(node))
	}
	return kept, nil
}

// document is a kept catalog by its digest.
func (k *Keeper) document(digest fleet.Digest) ([]byte, bool) {
	k.mu.Lock()
	var of fleet.Certname
	for node, a := range k.known {
		if a.pointer.Catalog == digest {
			of = node
			break
		}
	}
	k.mu.Unlock()
	if of == "" {
		return nil, false
	}
	kept, err := k.Shelf.Kept(of)
	return kept.Document, err == nil && fleet.DigestOf(kept.Document) == digest
}

// comeBack is when a node may ask again that gets nothing because the records cannot be reached.
const comeBack = time.Minute

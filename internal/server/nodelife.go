package server

import (
	"context"
	"math"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// expireNodes marks nodes that gave no sign of life for node_ttl.
func (h housekeeper) expireNodes(ctx context.Context, now time.Time) (int, error) {
	ttl := h.config.Load().NodeTTL
	if ttl == 0 {
		return 0, nil
	}
	n, err := h.store.Nodes.ExpireNodes(ctx, now.Add(-ttl), now)
	if n > 0 {
		h.log.InfoContext(ctx, "nodes expired: they gave no sign of life", "count", n, "node_ttl", ttl)
	}
	return n, err
}

// purgeBatch is how many nodes are purged in one transaction: others want to write,
// too.
const purgeBatch = 25

// purgeNodes forgets nodes that left node_purge_ttl ago, at most limit of them; 0: all.
func (h housekeeper) purgeNodes(ctx context.Context, now time.Time, limit int) (int, error) {
	ttl := h.config.Load().NodePurgeTTL
	if ttl == 0 {
		return 0, nil
	}
	if limit <= 0 {
		limit = math.MaxInt
	}
	for total := 0; ; {
		batch := min(purgeBatch, limit-total)
		names, err := h.store.Nodes.PurgeLeftNodes(ctx, now.Add(-ttl), batch)
		for _, name := range names {
			h.log.InfoContext(ctx, "node forgotten, long after it left", "node", name)
		}
		h.departures.purged(ctx, "its node was purged, long after it left", names...)
		if total += len(names); err != nil || len(names) < batch || total == limit {
			return total, err
		}
	}
}

// keeper is puppetdb.Keeper: housekeeping on demand.
type keeper struct {
	housekeeper
	nodes knownNodes
}

// ExpireNodes implements puppetdb.Keeper.
func (k keeper) ExpireNodes(ctx context.Context) (int, error) { return k.expireNodes(ctx, time.Now()) }

// PurgeNodes implements puppetdb.Keeper.
func (k keeper) PurgeNodes(ctx context.Context, limit int) (int, error) {
	return k.purgeNodes(ctx, time.Now(), limit)
}

// PurgeReports implements puppetdb.Keeper.
func (k keeper) PurgeReports(ctx context.Context) (int, error) {
	return k.store.Reports.PruneReports(ctx, time.Now().Add(-k.config.Load().ReportRetention))
}

// PurgeNode implements puppetdb.Keeper.
func (k keeper) PurgeNode(ctx context.Context, name fleet.Certname) error {
	return k.nodes.PurgeNode(ctx, name)
}

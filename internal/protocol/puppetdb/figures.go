package puppetdb

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// figure asks a query that counts.
func (h *Handler) figure(ctx context.Context, text string) (int64, error) {
	parsed, err := pql.Read(text)
	if err != nil {
		return 0, err
	}
	q, err := pql.Check(parsed)
	if err != nil {
		return 0, err
	}
	var row struct{ Count *int64 }
	err = h.Asker.Ask(ctx, inventory.Question{Query: q}, func(text json.RawMessage) error { return json.Unmarshal(text, &row) })
	if err == nil && row.Count == nil {
		err = errNoFigure
	}
	if err != nil {
		return 0, err
	}
	return *row.Count, nil
}

// population is what dashboards show first. Counting resources takes long, so it is
// remembered for a while.
type population struct {
	mu    sync.Mutex
	at    time.Time
	count map[string]float64
}

// populationAge is how old the figures may be.
const populationAge = time.Minute

// populated counts nodes and resources.
func (h *Handler) populated(ctx context.Context) (map[string]float64, error) {
	p := &h.population
	p.mu.Lock() // one counts for all
	defer p.mu.Unlock()
	if p.count != nil && h.Now().Sub(p.at) < populationAge {
		return p.count, nil
	}
	count := map[string]float64{}
	for name, query := range map[string]string{
		"num-active-nodes": `nodes[count()]{}`, "num-inactive-nodes": `nodes[count()]{node_state = "inactive"}`, "num-resources": `resources[count()]{}`,
	} {
		n, err := h.figure(ctx, query)
		if err != nil {
			return nil, err
		}
		count[name] = float64(n)
	}
	count["num-nodes"] = count["num-active-nodes"] // PuppetDB, too, leaves the others out
	count["avg-resources-per-node"] = 0
	if nodes := count["num-active-nodes"]; nodes > 0 {
		count["avg-resources-per-node"] = count["num-resources"] / nodes
	}
	p.at, p.count = h.Now(), count
	return count, nil
}

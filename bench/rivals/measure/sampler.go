package measure

import (
	"context"
	"time"
)

// Peak samples memory until ctx is done and returns the highest PSS and RSS
// seen. Reading smaps_rollup of a large process costs milliseconds of CPU,
// so sample seldom; the cost is the harness's, not the server's.
func Peak(ctx context.Context, every time.Duration, sample func() (Usage, error)) (pss, rss int64) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if u, err := sample(); err == nil {
			pss, rss = max(pss, u.PSSBytes), max(rss, u.RSSBytes)
		}
		select {
		case <-ctx.Done():
			return pss, rss
		case <-tick.C:
		}
	}
}

package agent

import (
	"math/rand/v2"
	"time"
)

// pauses are how long to wait before servers are asked again. Nodes that failed at the same moment do not come back at the same moment.
type pauses struct {
	poll   time.Duration // after a question that went well, about
	failed time.Duration // the longest of the last pause after a failure; 0: it went well
}

// next is the pause after a question: longer with each failure, and as short as at first when the last one went well.
func (p *pauses) next(failed bool) time.Duration {
	if !failed {
		p.failed = 0
		return p.poll/2 + rand.N(p.poll) //nolint:gosec // no secret
	}
	p.failed = min(max(2*p.failed, firstLook), p.poll)
	return p.failed/2 + rand.N(p.failed) //nolint:gosec // no secret
}

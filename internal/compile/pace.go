package compile

import (
	"sync"
	"time"
)

// pace knows how long a compilation takes lately: a mean in which each new one
// counts an eighth. It does not fade while nothing is compiled, as a rate would.
type pace struct {
	mu   sync.Mutex
	mean time.Duration
}

func (p *pace) note(wall time.Duration) {
	if wall <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		p.mean = wall
		return
	}
	p.mean += (wall - p.mean) / 8
}

// wall is zero when nothing is known.
func (p *pace) wall() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean
}

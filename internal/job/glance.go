package job

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// glanceAge is how old a glance may be. Many may watch one job: they share what was read.
	glanceAge = 100 * time.Millisecond
	// glanceMay is how long a store may take for one.
	glanceMay = 10 * time.Second
)

// glances are jobs as they were read a moment ago.
type glances struct {
	reading singleflight.Group
	mu      sync.Mutex
	last    map[int64]glance
}

type glance struct {
	job Job
	at  time.Time
}

// Glance is a job as it is, or was a moment ago; NotFound.
func (s *Service) Glance(ctx context.Context, id int64) (Job, error) {
	g := &s.glances
	g.mu.Lock()
	kept, ok := g.last[id]
	g.mu.Unlock()
	if ok && time.Since(kept.at) < glanceAge {
		return kept.job, nil
	}
	read := g.reading.DoChan(strconv.FormatInt(id, 10), func() (any, error) {
		at := time.Now()
		reading, done := context.WithTimeout(context.WithoutCancel(ctx), glanceMay) // it is not the one caller's alone
		defer done()
		j, err := alone(reading, s.Store, id)
		if err == nil {
			g.keep(j, at)
		}
		return j, err
	})
	select {
	case got := <-read:
		j, _ := got.Val.(Job)
		return j, got.Err
	case <-ctx.Done():
		return Job{}, ctx.Err()
	}
}

// keep keeps a glance, and drops those that are too old.
func (g *glances) keep(j Job, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, kept := range g.last {
		if at.Sub(kept.at) > glanceAge {
			delete(g.last, id)
		}
	}
	if g.last == nil {
		g.last = map[int64]glance{}
	}
	g.last[j.ID] = glance{j, at}
}

// WaitGlance is Wait for whoever only glances at a job: it may return up to about a second late.
func (s *Service) WaitGlance(ctx context.Context, id, after int64) error {
	return s.changes.Wait(ctx, id, func() (bool, error) {
		j, err := s.Glance(ctx, id)
		return j.Change > after || j.Status.Final(), err
	})
}

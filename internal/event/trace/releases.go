package trace

import (
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/tutti-project/tutti/internal/release"
)

// Releases is a release.Store that tells of waves and releases that have ended.
type Releases struct {
	release.Store
	Recorder *Recorder
}

// SaveRelease implements release.Store.
func (s Releases) SaveRelease(ctx context.Context, c release.Change) (release.Release, error) {
	saved, err := s.Store.SaveRelease(ctx, c)
	if err == nil && s.Recorder != nil {
		s.Recorder.released(saved)
	}
	return saved, err
}

// released tells of what ended with a step of a release: the wave that it is at, or all of it. A wave that is told of again is the same step.
func (r *Recorder) released(rel release.Release) {
	of := r.of("release", rel.ID)
	about := []attribute.KeyValue{attribute.Int64("tutti.release", rel.ID), attribute.String("tutti.environment", string(rel.Environment))}
	for _, w := range rel.Waves {
		if w.Number != rel.Wave || w.EndedAt.IsZero() {
			continue
		}
		s := step{
			of: of, key: fmt.Sprint("wave ", w.Number), under: whole, name: "wave", begin: w.StartedAt, end: w.EndedAt,
			about: append(slices.Clip(about), attribute.Int("tutti.wave", w.Number), attribute.Int("tutti.nodes", w.Nodes)),
		}
		for _, job := range append([]int64{w.Rehearse, w.Job}, w.Jobs...) {
			if job != 0 {
				s.with = append(s.with, r.of("job", job))
			}
		}
		r.record(s)
	}
	if !rel.State.Final() {
		return
	}
	s := step{
		of: of, key: whole, name: string(rel.Kind), begin: rel.CreatedAt, end: rel.EndedAt,
		about: append(about, attribute.String("tutti.state", string(rel.State)), attribute.Int("tutti.nodes", rel.Counts.Total())),
	}
	if rel.State != release.Done {
		s.failed = rel.Reason
	}
	r.record(s)
}

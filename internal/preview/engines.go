package preview

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Engines is which Puppet installation compiles what. Both name the default, too.
type Engines interface {
	// EngineOf names the engine that compiles a version; NotFound for one that is not kept.
	EngineOf(ctx context.Context, env fleet.Environment, version fleet.Digest) (string, error)
	// Deployed is versions of an environment with their engines, the newest first.
	Deployed(ctx context.Context, env fleet.Environment) ([]code.Version, error)
}

// AcrossEngines says whether another engine compiles a preview's version than compiled its environment's code when the preview was made: what
// differs in form only is then noise of the engine.
func (s *Service) AcrossEngines(ctx context.Context, p Preview) (bool, error) {
	if s.Engines == nil {
		return false, nil
	}
	own, err := s.Engines.EngineOf(ctx, p.Environment, p.Version)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	deployed, err := s.Engines.Deployed(ctx, p.Environment)
	if err != nil {
		return false, err
	}
	before := engineAt(deployed, p.CreatedAt)
	return before != "" && before != own, nil
}

// engineAt is the engine of the version that an environment had at a time; empty if it had none.
func engineAt(deployed []code.Version, at time.Time) string {
	for _, v := range deployed {
		if !v.DeployedAt.After(at) {
			return v.Engine
		}
	}
	return ""
}

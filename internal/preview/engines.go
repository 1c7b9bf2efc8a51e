package preview

import (
	"cmp"
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

// crossing is the engine that compiles a preview's version, and the one that its environment's code had when the preview was made; empty: not known.
type crossing struct{ own, before string }

// across says whether another engine compiled a node's base than compiles the preview: what differs in form only is then noise of the engine.
// Of a base whose engine is not known the environment's is taken.
func (c crossing) across(base string) bool {
	base = cmp.Or(base, c.before)
	return c.own != "" && base != "" && base != c.own
}

// crossing finds out which engines a preview is between.
func (s *Service) crossing(ctx context.Context, p Preview) (crossing, error) {
	if s.Engines == nil {
		return crossing{}, nil
	}
	own, err := s.engineOf(ctx, p.Environment, p.Version)
	if err != nil || own == "" {
		return crossing{}, err
	}
	deployed, err := s.Engines.Deployed(ctx, p.Environment)
	return crossing{own, engineAt(deployed, p.CreatedAt)}, err
}

// engineOf is the engine that compiles a version; empty for one that is not kept.
func (s *Service) engineOf(ctx context.Context, env fleet.Environment, version fleet.Digest) (string, error) {
	if s.Engines == nil || version == "" {
		return "", nil
	}
	name, err := s.Engines.EngineOf(ctx, env, version)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return name, err
}

// AcrossEngines says whether another engine compiled the catalog that a node of a preview has than compiles the preview.
func (s *Service) AcrossEngines(ctx context.Context, p Preview, share Share) (bool, error) {
	c, err := s.crossing(ctx, p)
	return c.across(share.BaseEngine), err
}

// anyAcross says whether another engine compiled what some node of a preview has.
func (s *Service) anyAcross(ctx context.Context, p Preview) (bool, error) {
	c, err := s.crossing(ctx, p)
	if err != nil || c.own == "" || c.across("") {
		return c.across(""), err
	}
	other, err := s.Store.PreviewShares(ctx, p.ID, SharePage{Limit: 1, NotBy: c.own})
	return len(other) > 0, err
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

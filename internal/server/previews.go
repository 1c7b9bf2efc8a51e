package server

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
)

// openPreviews wires the preview core to its neighbours.
func (p *parts) openPreviews() error {
	key, err := p.data.Seal()
	if err != nil {
		return err
	}
	secret, err := key.Derived("tutti names of changes 1")
	if err != nil {
		return err
	}
	compilations := preview.Compilations{
		Queue:  wantsAndReadings{p.store.Queue, p.store.Reusables},
		Reuser: p.reuser,
		Reuse:  func() bool { return p.config.Load().ReuseCatalogs },
		Wake:   p.dispatch.Wake,
	}
	settings := current{&p.config}
	p.policies = &policy.Service{Store: p.store.Policies, Changed: func() { p.releases.Worker.Wake() }}
	p.previews = preview.NewService(preview.Config{
		Store:    p.store.Previews,
		Compiler: compilations,
		Bases:    compilations,
		Logs:     compilations,
		Resolver: previewTargets{p.resolver},
		Reach:    rbac.Reach,
		Relay:    p.relay,
		Log:      p.log.Logger,
		Engines:  previewEngines{p},
		Comparing: func() (preview.Comparing, error) {
			return preview.NewComparing(p.blobs, secret, settings.brakeLimits())
		},
	})
	p.judge = preview.Judge{Previews: p.previews, Policies: p.policies}
	return nil
}

// previewTargets is preview.Resolver.
type previewTargets struct{ target.Resolver }

// Resolve implements preview.Resolver.
func (t previewTargets) Resolve(ctx context.Context, env fleet.Environment, wanted api.JobTargets) ([]fleet.Certname, error) {
	return t.NamedOrOf(ctx, env, wanted)
}

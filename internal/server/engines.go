package server

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// engineOf is a ruby.Chooser: a version's code says what compiles it.
func (p *parts) engineOf(ctx context.Context, env fleet.Environment, version fleet.Digest) (string, error) {
	tree, err := p.library.Tree(ctx, env, version)
	if err != nil {
		return "", err
	}
	return tree.Manifest().Engine, nil
}

// checkEngine refuses a deployment for an engine that cannot be used. One that keeps its environment's engine is not refused.
func (d deployments) checkEngine(ctx context.Context, deployment code.Deployment) error {
	if name := deployment.Manifest.Engine; name != "" && name != code.DefaultEngine {
		return d.engines.Check(ctx, name)
	}
	return nil
}

// serverFacts is $server_facts: who compiles a version.
func (p *parts) serverFacts() func(context.Context, fleet.Environment, fleet.Digest) (json.RawMessage, error) {
	name := settings.ServerName()
	four, six := outwardAddresses()
	return func(ctx context.Context, env fleet.Environment, version fleet.Digest) (json.RawMessage, error) {
		puppet, by, err := p.ruby.Puppet(ctx, env, version)
		if err != nil {
			return nil, err
		}
		if by == ruby.ByPuppet {
			by = ""
		}
		return json.Marshal(compilerFacts{by, puppet, name, four, six, env})
	}
}

// compilerFacts are in the order in which a Puppet Server has them: code may iterate over them.
type compilerFacts struct {
	Implementation string            `json:"serverimplementation,omitempty"` // OpenVox says whose it is, Puppet does not
	Version        string            `json:"serverversion"`
	Name           string            `json:"servername"`
	Address4       string            `json:"serverip"`
	Address6       string            `json:"serverip6,omitempty"`
	Environment    fleet.Environment `json:"environment"`
}

// maxPreviewed is how many versions of an environment are looked at for the one that it had when a preview was made.
const maxPreviewed = 1000

// previewEngines is preview.Engines.
type previewEngines struct{ *parts }

// EngineOf implements preview.Engines.
func (e previewEngines) EngineOf(ctx context.Context, env fleet.Environment, version fleet.Digest) (string, error) {
	name, err := e.engineOf(ctx, env, version)
	return cmp.Or(name, e.ruby.Default()), err
}

// Deployed implements preview.Engines.
func (e previewEngines) Deployed(ctx context.Context, env fleet.Environment) ([]code.Version, error) {
	versions, err := e.store.Versions.Versions(ctx, env, maxPreviewed)
	for i := range versions {
		versions[i].Engine = cmp.Or(versions[i].Engine, e.ruby.Default())
	}
	return versions, err
}

// engineStandings is rest.Engines.
type engineStandings struct{ engines *ruby.Engines }

// Engines implements rest.Engines.
func (d engineStandings) Engines() []api.Engine {
	var all []api.Engine
	for i, s := range d.engines.Standings() {
		e := api.Engine{Name: s.Name, Default: i == 0, Puppet: s.Puppet, By: s.By, Ruby: s.Version, JIT: s.JIT, Interpreter: s.Ruby, Gems: s.Gems}
		if s.Trouble != nil {
			e.Trouble = fault.Detail(s.Trouble)
		}
		all = append(all, e)
	}
	return all
}

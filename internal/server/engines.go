package server

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// namedRuby is the engine of the setting ruby.
const namedRuby = "ruby"

// engines are those that are configured, and those that were found and are not configured by another name; the default is the first.
// Without found, which nobody looked for yet, those that may be found are no mistake.
func (c Config) engines(found []ruby.Engine) ([]ruby.Engine, error) {
	var all []ruby.Engine
	if c.Ruby != "" {
		all = append(all, ruby.Engine{Name: namedRuby, Ruby: c.Ruby})
	}
	for _, entry := range c.Engines {
		name, path, err := c.engineEntry("engines", entry)
		if err != nil {
			return nil, err
		}
		if at(all, name) >= 0 {
			return nil, bad("engines", "the name %s is given twice", name)
		}
		all = append(all, ruby.Engine{Name: name, Ruby: path})
	}
	for _, engine := range found {
		if at(all, engine.Name) < 0 {
			all = append(all, engine)
		}
	}
	for _, entry := range c.EngineGems {
		name, path, err := c.engineEntry("engine_gems", entry)
		if err != nil {
			return nil, err
		}
		i := at(all, name)
		switch {
		case i < 0 && found == nil && usual(name):
			continue
		case i < 0:
			return nil, bad("engine_gems", "there is no engine %s: name its Ruby in the setting engines", name)
		}
		all[i].Gems = append(all[i].Gems, path)
	}
	return c.withDefaultFirst(all, found)
}

// withDefaultFirst puts the default first. What is found on the machine may be the default, once it is looked for.
func (c Config) withDefaultFirst(all, found []ruby.Engine) ([]ruby.Engine, error) {
	first := c.Engine
	switch {
	case first == "" && c.Ruby != "":
		first = namedRuby
	case first == "" && len(found) > 0:
		first = found[0].Name
	}
	i := at(all, first)
	switch {
	case i > 0:
		all = slices.Concat(all[i:i+1], all[:i], all[i+1:])
	case i < 0 && first != "" && (found != nil || !usual(first)):
		return nil, bad("engine", "there is no engine %.80q: name its Ruby in the setting engines", first)
	}
	return all, nil
}

// usual tells names of engines that may be found on the machine.
func usual(name string) bool { return name == ruby.Packaged || name == ruby.System }

func at(all []ruby.Engine, name string) int {
	return slices.IndexFunc(all, func(e ruby.Engine) bool { return e.Name == name })
}

// engineEntry reads NAME:PATH.
func (c Config) engineEntry(key, entry string) (name, path string, err error) {
	name, path, found := strings.Cut(entry, ":")
	switch {
	case !found:
		return "", "", bad(key, "%.200q is not NAME:PATH", entry)
	case code.CheckEngine(name) != nil:
		return "", "", bad(key, "%s", fault.Detail(code.CheckEngine(name)))
	case name == code.DefaultEngine || name == namedRuby:
		return "", "", bad(key, "the name %s is taken", name)
	case !filepath.IsAbs(path):
		return "", "", bad(key, "%.200q is not an absolute path", path)
	}
	if err := c.mayShow(path); err != nil {
		return "", "", bad(key, "%s", err)
	}
	return name, path, nil
}

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
	name, address := serverName(), outwardAddress()
	return func(ctx context.Context, env fleet.Environment, version fleet.Digest) (json.RawMessage, error) {
		puppet, err := p.ruby.Puppet(ctx, env, version)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]string{"serverversion": puppet, "servername": name, "serverip": address, "environment": string(env)})
	}
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

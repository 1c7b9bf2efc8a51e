package settings

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
)

// namedRuby is the engine of the setting ruby.
const namedRuby = "ruby"

// EnginesWith is the engines that are configured, and those that were found and are not configured by another name; the default is the first.
// Without found, which nobody looked for yet, those that may be found are no mistake.
func (c Config) EnginesWith(found []ruby.Engine) ([]ruby.Engine, error) {
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
			return nil, Bad("engines", "the name %s is given twice", name)
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
		case i < 0 && found == nil && MayBeFound(name):
			continue
		case i < 0:
			return nil, Bad("engine_gems", "there is no engine %s: name its Ruby in the setting engines", name)
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
	case i < 0 && first != "" && (found != nil || !MayBeFound(first)):
		return nil, Bad("engine", "there is no engine %.80q: name its Ruby in the setting engines", first)
	}
	return all, nil
}

// MayBeFound tells names of engines that may be found on the machine.
func MayBeFound(name string) bool { return name == ruby.Packaged || name == ruby.System }

func at(all []ruby.Engine, name string) int {
	return slices.IndexFunc(all, func(e ruby.Engine) bool { return e.Name == name })
}

// engineEntry reads NAME:PATH.
func (c Config) engineEntry(key, entry string) (name, path string, err error) {
	name, path, found := strings.Cut(entry, ":")
	switch {
	case !found:
		return "", "", Bad(key, "%.200q is not NAME:PATH", entry)
	case code.CheckEngine(name) != nil:
		return "", "", Bad(key, "%s", fault.Detail(code.CheckEngine(name)))
	case name == code.DefaultEngine || name == namedRuby:
		return "", "", Bad(key, "the name %s is taken", name)
	case !filepath.IsAbs(path):
		return "", "", Bad(key, "%.200q is not an absolute path", path)
	}
	if err := c.mayShow(path); err != nil {
		return "", "", Bad(key, "%s", err)
	}
	return name, path, nil
}

package puppet

import (
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// node tells a node which environment it gets. Agents read nothing else of it,
// so facts and classes are left out.
func (s *server) node(c *call) error {
	f, err := c.accepted(dataFormats)
	if err != nil {
		return err
	}
	place, err := s.Places.Of(c.ctx(), c.node, c.env)
	if isNotFound(err) {
		return c.noEnvironment()
	}
	if err != nil {
		return err
	}
	return c.value(f, struct {
		Name        fleet.Certname    `json:"name"`
		Environment fleet.Environment `json:"environment"`
	}{c.node, place.Environment})
}

// status says that the server lives.
func (s *server) status(c *call) error {
	f, err := c.accepted(dataFormats)
	if err != nil {
		return err
	}
	return c.value(f, struct {
		Alive   bool   `json:"is_alive"`
		Version string `json:"version"`
	}{true, s.PuppetVersion()})
}

// environments lists what environments there are.
func (s *server) environments(c *call) error {
	f, err := c.accepted([]format{formatJSON})
	if err != nil {
		return err
	}
	list, err := s.Environments.ListEnvironments(c.ctx())
	if err != nil {
		return err
	}
	type settings struct {
		ModulePath    []string `json:"modulepath"`
		Manifest      string   `json:"manifest,omitempty"`
		Timeout       string   `json:"environment_timeout"`
		ConfigVersion string   `json:"config_version"`
	}
	type environment struct {
		Settings settings `json:"settings"`
	}
	all := make(map[fleet.Environment]environment, len(list))
	for _, env := range list {
		path := env.ModulePath
		if path == nil {
			path = []string{}
		}
		// Code never changes under a version, so it is cached for good.
		all[env.Name] = environment{settings{path, env.Manifest, "unlimited", env.ConfigVersion}}
	}
	return c.value(f, struct {
		SearchPaths  []string                          `json:"search_paths"`
		Environments map[fleet.Environment]environment `json:"environments"`
	}{[]string{}, all})
}

// isNotFound tells a missing thing from a failure.
func isNotFound(err error) bool { return fault.Is(err, fault.NotFound) }

// isDenied tells a forbidden thing from a failure.
func isDenied(err error) bool { return fault.Is(err, fault.Denied) }

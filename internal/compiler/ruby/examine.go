package ruby

import "context"

// Examine asks an engine what it is, as a server does before it compiles with it; Trouble says why it cannot be used.
func Examine(ctx context.Context, engine Engine, noJIT bool) Standing {
	s := Standing{Engine: engine}
	found, err := identify(ctx, Config{Name: engine.Name, Ruby: engine.Ruby, Gems: engine.Gems, NoJIT: noJIT})
	if err != nil {
		s.Trouble = err
		return s
	}
	s.Puppet, s.By, s.Version, s.JIT = found.puppet, found.by, found.ruby, len(found.jit) > 0
	return s
}

package settings

import (
	"github.com/tutti-project/tutti/internal/event/trace"
	"github.com/tutti-project/tutti/internal/fault"
)

// Trace says where this server's traces go; server is its name among the servers, installation the same for all of them.
func (c Config) Trace(server, version, installation string) (trace.Config, error) {
	share, err := c.tracedShare()
	return trace.Config{URL: c.Traces, Share: share, Server: server, Version: version, Installation: installation}, err
}

func (c Config) tracedShare() (float64, error) { return percent("traces_share", c.TracesShare) }

func (c Config) checkTraces() error {
	share, err := c.tracedShare()
	if err != nil || c.Traces == "" {
		return err
	}
	if err := (trace.Config{URL: c.Traces, Share: share}).Check(); err != nil {
		return Bad("traces", "%s", fault.Detail(err))
	}
	return nil
}

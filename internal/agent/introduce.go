package agent

import (
	"runtime"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// introduce says over a new connection what this agent is. A broker that does not know the message answers with an error, as an older server
// does: receive passes over it.
func (d *daemon) introduce() {
	if len(d.primaries()) == 0 {
		return // no server of Tutti
	}
	begun := d.begun.CompareAndSwap(false, true)
	m := d.engine.Introduction(pxp.AgentTold{Version: d.Version, OS: runtime.GOOS, Arch: runtime.GOARCH, Begun: begun})
	d.introduced.Store(m.ID)
	if err := d.link.Send(m); err != nil {
		if begun {
			d.begun.Store(false)
		}
		d.log.Debug("the server is not told which modules this agent has; it is with the next connection", "err", err)
	}
}

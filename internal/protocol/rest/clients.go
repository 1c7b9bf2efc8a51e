package rest

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
)

// How pxp-agent calls itself: by its websocket library. It came with a package whose version is a fact.
const (
	pxpLibrary     = "WebSocket++"
	pxpClient      = "pxp-agent"
	packageVersion = "aio_agent_version"
)

// nameClients says of connections which program is at their other end, and of which version. Some are nil: these nodes are not connected.
func (h *nodes) nameClients(ctx context.Context, connected []*api.Connected, names []fleet.Certname) error {
	unknown := map[fleet.Certname]*api.Connected{}
	var asked []fleet.Certname
	for i, c := range connected {
		if c == nil {
			continue
		}
		c.Client, c.ClientVersion, _ = strings.Cut(c.Agent, "/")
		if c.Client == pxpLibrary {
			c.Client, c.ClientVersion = pxpClient, ""
			unknown[names[i]], asked = c, append(asked, names[i])
		}
	}
	if len(asked) == 0 {
		return nil
	}
	leaves, err := h.facts.FactLeaves(ctx, asked, []string{facts.PathText(packageVersion)})
	if err != nil {
		return err
	}
	for name, found := range leaves {
		if len(found) == 1 && found[0].Kind == facts.String {
			unknown[name].ClientVersion = "puppet-agent " + found[0].Text
		}
	}
	return nil
}

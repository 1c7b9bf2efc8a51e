package rest

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// How pxp-agent calls itself: by its websocket library. It came with a package whose version is a fact.
const (
	pxpLibrary     = "WebSocket++"
	pxpClient      = "pxp-agent"
	packageVersion = "aio_agent_version"
)

// agentName is where the program at the other end of a connection, or of the last one, is named; nil: there was none.
type agentName struct {
	agent           string // how it calls itself
	client, version *string
}

func agentNameOf(now *api.Connected, last *api.LastSeen) agentName {
	switch {
	case now != nil:
		return agentName{now.Agent, &now.Client, &now.ClientVersion}
	case last != nil:
		return agentName{last.Agent, &last.Client, &last.ClientVersion}
	}
	return agentName{}
}

// nameClients says which program each agent is, and of which version.
func (h *nodes) nameClients(ctx context.Context, agents []agentName, names []fleet.Certname) error {
	unknown := map[fleet.Certname]agentName{}
	var asked []fleet.Certname
	for i, a := range agents {
		if a.client == nil {
			continue
		}
		*a.client, *a.version, _ = strings.Cut(a.agent, "/")
		if *a.client == pxpLibrary {
			*a.client, *a.version = pxpClient, ""
			unknown[names[i]], asked = a, append(asked, names[i])
		}
	}
	for part := range slices.Chunk(asked, inventory.MaxNamed) {
		leaves, err := h.facts.FactLeaves(ctx, part, []string{facts.PathText(packageVersion)})
		if err != nil {
			return err
		}
		for name, found := range leaves {
			if len(found) == 1 && found[0].Kind == facts.String {
				*unknown[name].version = "puppet-agent " + found[0].Text
			}
		}
	}
	return nil
}

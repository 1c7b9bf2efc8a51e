package server

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// knownNodes is the inventory's nodes and those that are connected. A node is one as soon as its agent is connected, though nothing is
// stored of it before its first facts.
type knownNodes struct {
	inventory.NodeStore
	agents     agents
	departures departures
}

// Node implements inventory.NodeStore.
func (k knownNodes) Node(ctx context.Context, name fleet.Certname) (inventory.Node, error) {
	n, err := k.NodeStore.Node(ctx, name)
	if err == nil || fault.Of(err) != fault.NotFound {
		return n, err
	}
	if who, there := k.agents.presence(name); there {
		return inventory.Node{Certname: name, CreatedAt: who.Since}, nil
	}
	return n, err
}

// Nodes implements inventory.NodeStore.
func (k knownNodes) Nodes(ctx context.Context, page inventory.Page) ([]inventory.Node, error) {
	stored, err := k.NodeStore.Nodes(ctx, page)
	if err != nil {
		return nil, err
	}
	end := ""
	if len(stored) == page.Limit {
		end = string(stored[len(stored)-1].Certname)
	}
	for _, name := range k.agents.names() {
		if string(name) <= page.After || end != "" && string(name) > end {
			continue
		}
		if at, there := slices.BinarySearchFunc(stored, name, byCertname); !there {
			if who, connected := k.agents.presence(name); connected {
				stored = slices.Insert(stored, at, inventory.Node{Certname: name, CreatedAt: who.Since})
			}
		}
	}
	return stored[:min(len(stored), page.Limit)], nil
}

func byCertname(n inventory.Node, name fleet.Certname) int {
	return strings.Compare(string(n.Certname), string(name))
}

// PurgeNode implements inventory.NodeStore. The node's runs end with what is known of it.
func (k knownNodes) PurgeNode(ctx context.Context, name fleet.Certname) error {
	err := k.NodeStore.PurgeNode(ctx, name)
	if err == nil || fault.Of(err) == fault.NotFound {
		k.departures.endRuns(ctx, "its node was purged", name)
	}
	return err
}

package inventory

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Connections tells which agents are connected now, and lists them.
type Connections interface {
	Presences
	Connected() []fleet.Certname // sorted, each once
}

// WithConnected is a NodeStore that has the nodes that are connected as well: a node is one as soon as its agent is connected, though
// nothing is stored of it before its first facts.
type WithConnected struct {
	NodeStore
	Connections Connections
}

// Node implements NodeStore.
func (w WithConnected) Node(ctx context.Context, name fleet.Certname) (Node, error) {
	n, err := w.NodeStore.Node(ctx, name)
	if err == nil || fault.Of(err) != fault.NotFound {
		return n, err
	}
	if who, there := w.Connections.Presence(name); there {
		return Node{Certname: name, CreatedAt: who.Since}, nil
	}
	return n, err
}

// Nodes implements NodeStore.
func (w WithConnected) Nodes(ctx context.Context, page Page) ([]Node, error) {
	stored, err := w.NodeStore.Nodes(ctx, page)
	if err != nil {
		return nil, err
	}
	end := ""
	if len(stored) == page.Limit {
		end = string(stored[len(stored)-1].Certname)
	}
	for _, name := range w.Connections.Connected() {
		if string(name) <= page.After || end != "" && string(name) > end {
			continue
		}
		if at, there := slices.BinarySearchFunc(stored, name, byCertname); !there {
			if who, connected := w.Connections.Presence(name); connected {
				stored = slices.Insert(stored, at, Node{Certname: name, CreatedAt: who.Since})
			}
		}
	}
	return stored[:min(len(stored), page.Limit)], nil
}

func byCertname(n Node, name fleet.Certname) int {
	return strings.Compare(string(n.Certname), string(name))
}

package rest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pki"
)

// roster is which nodes there are, and whose agent is connected.
type roster struct {
	nodes        inventory.NodeStore
	certificates Certificates
	ends         CertificateEnds
	presences    inventory.Presences
}

// checkNodes refuses names that no node has: a misspelt name would end as a node that
// is offline. A node is known by its facts, its connection or its certificate.
func (h *roster) checkNodes(ctx context.Context, names []fleet.Certname) error {
	var strangers []string
	for part := range slices.Chunk(names, inventory.MaxNamed) {
		nodes, err := h.nodes.NodesNamed(ctx, part)
		if err != nil {
			return err
		}
		known := make(map[fleet.Certname]bool, len(nodes))
		for _, node := range nodes {
			known[node.Certname] = true
		}
		for _, name := range part {
			if known[name] || h.connected(name) != nil {
				continue
			}
			if signed, err := h.signed(ctx, name); err != nil {
				return err
			} else if !signed {
				strangers = append(strangers, string(name))
			}
		}
	}
	if len(strangers) == 0 {
		return nil
	}
	text := strings.Join(strangers[:min(len(strangers), maxDeniedNamed)], ", ")
	if len(strangers) > maxDeniedNamed {
		text += fmt.Sprintf(", … (%d in all)", len(strangers))
	}
	return fault.New(fault.NotFound, "field targets: no node is called %s; see `tutti node list`", text)
}

// signed says whether a name has a certificate.
func (h *roster) signed(ctx context.Context, name fleet.Certname) (bool, error) {
	entry, err := h.certificates.Show(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return entry.State == pki.Signed, err
}

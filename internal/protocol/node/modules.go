package node

import (
	"context"
	"net/http"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Modules knows the modules of actions that nodes have from code; supply.Service is one.
type Modules interface {
	// Supply is what a node has.
	Supply(ctx context.Context, node fleet.Certname) (action.Supply, error)
	// MayHave says whether a node may fetch a content.
	MayHave(ctx context.Context, node fleet.Certname, content fleet.Digest) (bool, error)
}

// modules says which modules a node has.
func (h *Handler) modules(w http.ResponseWriter, r *http.Request, node fleet.Certname) error {
	supply, err := h.Modules.Supply(r.Context(), node)
	if err != nil {
		return err
	}
	return tagged(w, r, supply)
}

// moduleFile sends a file of one of them.
func (h *Handler) moduleFile(w http.ResponseWriter, r *http.Request, node fleet.Certname) error {
	digest, err := fleet.ParseDigest(r.PathValue("digest"))
	if err != nil {
		return err
	}
	may, err := h.Modules.MayHave(r.Context(), node, digest)
	if err != nil {
		return err
	}
	if !may {
		return fault.New(fault.NotFound, "%s has no module with the file %s; what it has says %s/modules", node, digest.Short(), Prefix)
	}
	return h.content(w, r, digest, "application/octet-stream")
}

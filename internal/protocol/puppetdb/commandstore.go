package puppetdb

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// maxAhead is how far another server's clock may be ahead of ours.
const maxAhead = time.Hour

// produced bounds when something was produced. What claims to come from the future
// would keep everything out until then.
func (h *Handler) produced(at time.Time) time.Time {
	if now := h.Now(); at.IsZero() || at.After(now.Add(maxAhead)) {
		return now
	}
	return at
}

// about checks that a payload is of the node that the command names.
func (o order) about(name fleet.Certname) error {
	if o.certname != "" && o.certname != string(name) {
		return fault.New(fault.Invalid, "the command is for certname %q, but its payload is of %q", clip(o.certname), string(name))
	}
	return nil
}

func (h *Handler) replaceFacts(ctx context.Context, o order) error {
	f, err := inventory.ParseWireFacts(o.payload)
	if err == nil {
		err = o.about(f.Certname)
	}
	if err != nil {
		return err
	}
	f.ReceivedAt, f.ProducedAt = h.Now(), h.produced(f.ProducedAt)
	_, _, err = h.Store.SaveFacts(ctx, f)
	return err
}

func (h *Handler) replaceCatalog(ctx context.Context, o order) error {
	c, err := inventory.ParseWireCatalog(o.payload)
	if err == nil {
		err = o.about(c.Certname)
	}
	if err != nil {
		return err
	}
	c.CompiledAt, c.ProducedAt = h.Now(), h.produced(c.ProducedAt)
	return h.Store.SaveCatalog(ctx, c)
}

func (h *Handler) replaceInputs(ctx context.Context, o order) error {
	in, err := inventory.ParseWireInputs(o.payload)
	if err == nil {
		err = o.about(in.Certname)
	}
	if err != nil {
		return err
	}
	in.ProducedAt = h.produced(in.ProducedAt)
	return h.Store.SaveCatalogInputs(ctx, in)
}

func (h *Handler) storeReport(ctx context.Context, o order) error {
	r, err := inventory.ParseWireReport(o.payload)
	if err == nil {
		err = o.about(r.Certname)
	}
	if err != nil {
		return err
	}
	r.ReceivedAt, r.ProducedAt = h.Now(), h.produced(r.ProducedAt)
	return h.Store.SaveReport(ctx, r)
}

func (h *Handler) deactivateNode(ctx context.Context, o order) error {
	word, err := inventory.ParseWireDeactivate(o.payload, o.version)
	if err == nil {
		err = o.about(word.Certname)
	}
	if err != nil {
		return err
	}
	return h.Store.DeactivateNode(ctx, word.Certname, h.produced(word.At))
}

func (h *Handler) configureExpiration(ctx context.Context, o order) error {
	word, err := inventory.ParseWireExpiration(o.payload)
	if err == nil {
		err = o.about(word.Certname)
	}
	if err != nil {
		return err
	}
	return h.Store.ConfigureExpiration(ctx, word.Certname, word.Expire, h.produced(word.At))
}

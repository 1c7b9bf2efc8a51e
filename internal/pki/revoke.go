package pki

import (
	"context"
	"math/big"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Revoke takes back every certificate of a name. Twice is no error. Conflict if
// only a request waits, NotFound if the name is unknown.
func (a *Authority) Revoke(ctx context.Context, name fleet.Certname) error {
	done, err := a.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	marked, err := a.mark(ctx, name)
	if err != nil || len(marked) == 0 {
		return err
	}
	return a.renewList(ctx, true)
}

// mark revokes in the store and in memory, and leaves the list to the caller.
func (a *Authority) mark(ctx context.Context, name fleet.Certname) ([]Certificate, error) {
	marked, err := a.store.Revoke(ctx, name, now())
	if err != nil {
		return nil, err
	}
	if len(marked) == 0 {
		return nil, a.whyNothingRevoked(ctx, name)
	}
	a.refuse(marked)
	for _, c := range marked {
		a.log.InfoContext(ctx, "certificate revoked", "node", name, "serial", c.Serial.Text(16))
	}
	a.mu.RLock()
	left := a.left
	a.mu.RUnlock()
	if left != nil {
		left(ctx, name)
	}
	return marked, nil
}

func (a *Authority) whyNothingRevoked(ctx context.Context, name fleet.Certname) error {
	_, err := a.store.Certificate(ctx, name)
	if err == nil || fault.Of(err) != fault.NotFound {
		return err // revoked before
	}
	if _, reqErr := a.store.Request(ctx, name); reqErr == nil {
		return fault.New(fault.Conflict, "%s has no certificate yet, only a request: delete it or clean the name", name)
	}
	return err
}

// refuse makes CheckPeer refuse certificates from now on, then tells the hooks
// about those it did not know.
func (a *Authority) refuse(certs []Certificate) {
	a.mu.Lock()
	var fresh []*big.Int
	for _, c := range certs {
		if key := c.Serial.String(); !a.revoked[key] {
			a.revoked[key] = true
			fresh = append(fresh, c.Serial)
		}
	}
	hooks := a.hooks
	a.mu.Unlock()
	if len(fresh) == 0 {
		return
	}
	for _, hook := range hooks {
		hook(fresh)
	}
}

// Clean revokes what the names hold and forgets them, so that they may ask
// again; one revocation list is made for all. It returns the names that nothing
// was known of.
func (a *Authority) Clean(ctx context.Context, names ...fleet.Certname) (unknown []fleet.Certname, err error) {
	done, err := a.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	revoked := 0
	for _, name := range names {
		marked, err := a.mark(ctx, name)
		if err != nil && fault.Of(err) != fault.NotFound && fault.Of(err) != fault.Conflict {
			return unknown, err
		}
		revoked += len(marked)
		switch err := a.forget(ctx, name); {
		case err != nil && fault.Of(err) != fault.NotFound:
			return unknown, err
		case err != nil && len(marked) == 0:
			unknown = append(unknown, name)
		}
	}
	if revoked == 0 {
		return unknown, nil
	}
	return unknown, a.renewList(ctx, true)
}

// Forget drops a name's request and certificate without revoking: the
// certificate stays good until it ends, and the name may ask again.
func (a *Authority) Forget(ctx context.Context, name fleet.Certname) error {
	done, err := a.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	return a.forget(ctx, name)
}

func (a *Authority) forget(ctx context.Context, name fleet.Certname) error {
	_, waitErr := a.store.Request(ctx, name)
	if err := a.store.Forget(ctx, name); err != nil {
		return err
	}
	if waitErr == nil {
		a.waiting.Add(-1)
	}
	a.log.InfoContext(ctx, "certificate forgotten", "node", name)
	return nil
}

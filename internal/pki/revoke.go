package pki

import (
	"context"
	"math/big"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Revoke takes back every certificate of a name. Twice is no error. Conflict if
// only a request waits, NotFound if the name is unknown.
func (a *Authority) Revoke(ctx context.Context, name fleet.Certname) error {
	done, err := a.records.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	marked, err := a.mark(ctx, name)
	if err != nil || len(marked) == 0 {
		return err
	}
	return a.Revocations.renew(ctx, true)
}

// mark revokes for good, and leaves the list to the caller.
func (a *Authority) mark(ctx context.Context, name fleet.Certname) ([]Certificate, error) {
	good, err := a.store.Unrevoked(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(good) == 0 {
		return nil, a.whyNothingRevoked(ctx, name)
	}
	if err := a.records.commit(ctx, Change{At: now(), Revoked: serialsOf(good)}); err != nil {
		return nil, err
	}
	a.Revocations.expel(ctx, good)
	return good, nil
}

func serialsOf(certs []Certificate) (serials []*big.Int) {
	for _, c := range certs {
		serials = append(serials, c.Serial)
	}
	return serials
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

// cleanedAtOnce is how many names one change cleans.
const cleanedAtOnce = 500

// Clean revokes what the names hold and forgets them, so that they may ask
// again; one revocation list is made for all. It returns the names that nothing
// was known of.
func (a *Authority) Clean(ctx context.Context, names ...fleet.Certname) (unknown []fleet.Certname, err error) {
	done, err := a.records.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	revoked := 0
	for batch := range slices.Chunk(names, cleanedAtOnce) {
		strangers, marked, err := a.clean(ctx, batch)
		unknown, revoked = append(unknown, strangers...), revoked+marked
		if err != nil {
			return unknown, err
		}
	}
	if revoked == 0 {
		return unknown, nil
	}
	return unknown, a.Revocations.renew(ctx, true)
}

// clean is one change for several names, and counts the certificates that it revoked.
func (a *Authority) clean(ctx context.Context, names []fleet.Certname) (unknown []fleet.Certname, revoked int, err error) {
	c := Change{At: now()}
	var marked []Certificate
	for _, name := range names {
		good, err := a.store.Unrevoked(ctx, name)
		if err != nil {
			return nil, 0, err
		}
		certified, waits, err := a.known(ctx, name)
		if err != nil {
			return nil, 0, err
		}
		if !certified && !waits && len(good) == 0 {
			unknown = append(unknown, name)
			continue
		}
		marked = append(marked, good...)
		c.Forgotten = append(c.Forgotten, name)
	}
	if len(c.Forgotten) == 0 {
		return unknown, 0, nil
	}
	c.Revoked = serialsOf(marked)
	if err := a.records.commit(ctx, c); err != nil {
		return unknown, 0, err
	}
	a.Revocations.expel(ctx, marked)
	a.log.InfoContext(ctx, "certificates cleaned", "nodes", c.Forgotten)
	return unknown, len(marked), nil
}

// known tells whether a name has a certificate, and whether a request of it waits.
func (a *Authority) known(ctx context.Context, name fleet.Certname) (certified, waits bool, err error) {
	_, certErr := a.store.Certificate(ctx, name)
	_, waitErr := a.store.Request(ctx, name)
	for _, err := range []error{certErr, waitErr} {
		if err != nil && fault.Of(err) != fault.NotFound {
			return false, false, err
		}
	}
	return certErr == nil, waitErr == nil, nil
}

// Forget drops a name's request and certificate without revoking: the
// certificate stays good until it ends, and the name may ask again.
func (a *Authority) Forget(ctx context.Context, name fleet.Certname) error {
	done, err := a.records.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	switch certified, waits, err := a.known(ctx, name); {
	case err != nil:
		return err
	case certified:
		err = a.records.commit(ctx, Change{At: now(), Forgotten: []fleet.Certname{name}})
		if err != nil {
			return err
		}
	case waits:
		return a.Requests.Delete(ctx, name)
	default:
		return fault.New(fault.NotFound, "there is no certificate and no request of %s", name)
	}
	a.log.InfoContext(ctx, "certificate forgotten", "node", name)
	return nil
}

package pki

import (
	"bytes"
	"context"
	"crypto"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Submit takes a certificate request in, and tells whether the name has its
// certificate now. The same request again is no error and changes nothing; a
// newer one for the same key replaces one that waits.
func (a *Authority) Submit(ctx context.Context, name fleet.Certname, requestPEM []byte) (signed bool, err error) {
	r, err := a.admissible(name, requestPEM)
	if err != nil {
		return false, err
	}
	if signed, err := a.nameTaken(ctx, r); signed || err != nil {
		return signed, err
	}
	approved, err := a.autosign.Load().approves(ctx, name, r.pem())
	if err != nil {
		a.log.WarnContext(ctx, "autosign could not decide, the request waits", "node", name, "err", err)
		approved = false
	}
	done, err := a.take(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	return a.admit(ctx, r, approved)
}

// admissible parses a request and holds it against the settings.
func (a *Authority) admissible(name fleet.Certname, requestPEM []byte) (*csr, error) {
	r, err := parseCSR(requestPEM)
	if err != nil {
		return nil, err
	}
	return r, a.cfg.permit(r, name)
}

// nameTaken is true if the name holds a certificate for the request's key, and
// a Conflict if it holds another.
func (a *Authority) nameTaken(ctx context.Context, r *csr) (bool, error) {
	have, err := a.store.Certificate(ctx, r.name)
	switch {
	case err != nil && fault.Of(err) == fault.NotFound:
		return false, nil
	case err != nil:
		return false, err
	case !have.RevokedAt.IsZero():
		return false, fault.New(fault.Conflict, "%s has a revoked certificate: clean it before the node asks again", r.name)
	case holdsKey(have, r.PublicKey):
		return true, nil
	default:
		return false, fault.New(fault.Conflict, "%s has a signed certificate already, with another key: clean it before the node asks again", r.name)
	}
}

func holdsKey(c Certificate, key crypto.PublicKey) bool {
	certs, err := parseCertificates(c.PEM)
	return err == nil && sameKey(certs[0].PublicKey, key)
}

// admit stores a request and signs it if it may be. The caller has the turn.
func (a *Authority) admit(ctx context.Context, r *csr, approved bool) (bool, error) {
	if signed, err := a.nameTaken(ctx, r); signed || err != nil {
		return signed, err
	}
	before, err := a.waitingBefore(ctx, r)
	if err != nil {
		return false, err
	}
	carried, good, err := a.spendToken(ctx, r)
	if err != nil {
		return false, err
	}
	if carried && !good && before != same { // left waiting, anybody could read the token
		return false, fault.New(fault.Denied, "the join token of %s is unknown, used up, too old, or for another name: make a new one", r.name)
	}
	if err := a.keepRequest(ctx, r, before); err != nil {
		return false, err
	}
	if !approved && !good {
		return false, nil
	}
	_, err = a.issue(ctx, r, 0)
	return err == nil, err
}

// standing is what waits already under a request's name.
type standing int

const (
	nothing standing = iota
	same             // byte for byte
	older            // another request for the same key, to be replaced
)

// waitingBefore is a Conflict if a request for another key waits.
func (a *Authority) waitingBefore(ctx context.Context, r *csr) (standing, error) {
	waiting, err := a.store.Request(ctx, r.name)
	if err != nil && fault.Of(err) == fault.NotFound {
		if a.waiting.Load() >= int64(a.cfg.MaxWaiting) {
			return nothing, fault.Later(10*time.Minute, "%d certificate requests wait already: sign or clean some", a.cfg.MaxWaiting)
		}
		return nothing, nil
	}
	if err != nil {
		return nothing, err
	}
	if bytes.Equal(waiting.PEM, r.pem()) {
		return same, nil
	}
	if old, err := parseCSR(waiting.PEM); err == nil && sameKey(old.PublicKey, r.PublicKey) {
		return older, nil
	}
	return nothing, fault.New(fault.Conflict, "a request of %s with another key waits already: clean it before the node asks again", r.name)
}

func (a *Authority) keepRequest(ctx context.Context, r *csr, before standing) error {
	if before == same {
		return nil
	}
	if before == older {
		if err := a.deleteRequest(ctx, r.name); err != nil {
			return err
		}
	}
	if err := a.store.SaveRequest(ctx, Request{Certname: r.name, PEM: r.pem(), ReceivedAt: now()}); err != nil {
		return err
	}
	a.waiting.Add(1)
	a.log.InfoContext(ctx, "certificate request received", "node", r.name)
	return nil
}

func (a *Authority) deleteRequest(ctx context.Context, name fleet.Certname) error {
	if err := a.store.DeleteRequest(ctx, name); err != nil {
		return err
	}
	a.waiting.Add(-1)
	return nil
}

// DeleteRequest removes a waiting request; NotFound if there is none.
func (a *Authority) DeleteRequest(ctx context.Context, name fleet.Certname) error {
	if err := a.deleteRequest(ctx, name); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "certificate request deleted", "node", name)
	return nil
}

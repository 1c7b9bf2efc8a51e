package pki

import (
	"bytes"
	"context"
	"crypto"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Submit takes a certificate request in that came from an address, and tells
// whether the name has its certificate now. The same request again is no error and
// changes nothing; a newer one for the same key replaces one that waits. A good
// token goes before everything: it waits behind no stranger, and a request that
// somebody else has left under its name makes room.
func (a *Authority) Submit(ctx context.Context, name fleet.Certname, requestPEM []byte, from string) (signed bool, err error) {
	r, err := a.admissible(name, requestPEM)
	if err != nil {
		return false, err
	}
	if signed, err := a.nameTaken(ctx, r); signed || err != nil {
		return signed, err
	}
	if good, err := a.tokenGood(ctx, r); good || err != nil {
		return a.admitByToken(ctx, r, originOf(from), err)
	}
	done, err := a.lines.take(ctx, originOf(from))
	if err != nil {
		return false, err
	}
	defer done()
	if carriesToken(r) {
		return false, a.refuseToken(ctx, r)
	}
	approved, err := a.autosign.Load().approves(ctx, name, r.pem())
	if err != nil {
		a.log.WarnContext(ctx, "autosign could not decide, the request waits", "node", name, "err", err)
		approved = false
	}
	if approved {
		return a.admitApproved(ctx, r, originOf(from))
	}
	return false, a.leaveWaiting(ctx, r, originOf(from))
}

// admissible parses a request and holds it against the settings.
func (a *Authority) admissible(name fleet.Certname, requestPEM []byte) (*csr, error) {
	r, err := parseCSR(requestPEM)
	if err != nil {
		return nil, err
	}
	if err := a.cfg.permit(r, name); err != nil {
		return nil, err
	}
	return r, a.reserved.check(r.name, r.altNames)
}

// nameTaken is true if the name holds a certificate for the request's key, and
// a Conflict if it holds another.
func (a *Authority) nameTaken(ctx context.Context, r *csr) (bool, error) {
	have, err := a.store.Certificate(ctx, r.name)
	switch {
	case fault.Is(err, fault.NotFound):
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

// admitByToken signs for a token that was good a moment ago, unless somebody was
// quicker to spend it.
func (a *Authority) admitByToken(ctx context.Context, r *csr, from string, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	done, err := a.take(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if signed, err := a.nameTaken(ctx, r); signed || err != nil {
		return signed, err
	}
	if err := a.spendToken(ctx, r); err != nil {
		return false, err
	}
	if err := a.keepRequest(ctx, r, from); err != nil { // if signing fails now, a person can do it
		return false, err
	}
	_, err = a.issue(ctx, r, 0)
	return err == nil, err
}

// refuseToken is Denied: left waiting, anybody could read the token. Only a request
// that waits already, byte for byte, goes on waiting.
func (a *Authority) refuseToken(ctx context.Context, r *csr) error {
	if before, err := a.waitingBefore(ctx, r); before == same || err != nil {
		return err
	}
	return fault.New(fault.Denied, "the join token of %s is unknown, used up, too old, or for another name: make a new one", r.name)
}

// admitApproved signs what the policy approves, unless another key was first.
func (a *Authority) admitApproved(ctx context.Context, r *csr, from string) (bool, error) {
	done, err := a.take(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if signed, err := a.nameTaken(ctx, r); signed || err != nil {
		return signed, err
	}
	before, err := a.waitingBefore(ctx, r)
	if err != nil {
		return false, err
	}
	if before != same {
		if err := a.keepRequest(ctx, r, from); err != nil {
			return false, err
		}
	}
	_, err = a.issue(ctx, r, 0)
	return err == nil, err
}

// leaveWaiting keeps a request for a person to decide. It takes no turn of those
// who sign: strangers wait for strangers.
func (a *Authority) leaveWaiting(ctx context.Context, r *csr, from string) error {
	done, err := a.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	before, err := a.waitingBefore(ctx, r)
	if before == same || err != nil {
		return err
	}
	return a.keepRequest(ctx, r, from)
}

// enter waits for the right to add a request to those that wait.
func (a *Authority) enter(ctx context.Context) (done func(), err error) {
	select {
	case a.door <- struct{}{}:
		return func() { <-a.door }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "many certificate requests come in")
	}
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
	if fault.Is(err, fault.NotFound) {
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

// keepRequest stores a request in place of what waits under its name, and lets
// those go for whom there is no room any more.
func (a *Authority) keepRequest(ctx context.Context, r *csr, from string) error {
	head := RequestHead{Certname: r.name, ReceivedAt: now(), From: from}
	if err := a.store.ReplaceRequest(ctx, Request{RequestHead: head, PEM: r.pem()}); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "certificate request received", "node", r.name, "remote", from)
	out := a.waiting.add(head)
	if len(out) == 0 {
		return nil
	}
	a.log.WarnContext(ctx, "too many certificate requests wait: the oldest of the address with most made room", "node", out[0], "requests", len(out))
	_, err := a.store.DropRequests(ctx, out)
	return err
}

// DeleteRequest removes a waiting request; NotFound if there is none.
func (a *Authority) DeleteRequest(ctx context.Context, name fleet.Certname) error {
	if err := a.store.DeleteRequest(ctx, name); err != nil {
		return err
	}
	a.waiting.remove(name)
	a.log.InfoContext(ctx, "certificate request deleted", "node", name)
	return nil
}

// CleanRequests removes every request that waits, or those that came from an
// address (IPv6: from its network), and returns how many. No certificate is touched.
func (a *Authority) CleanRequests(ctx context.Context, from string) (int, error) {
	return a.dropRequests(ctx, time.Now().Add(time.Hour), originOf(from), "certificate requests cleaned")
}

// expireRequests removes those that have waited too long.
func (a *Authority) expireRequests(ctx context.Context) error {
	if a.cfg.RequestTTL == 0 {
		return nil
	}
	_, err := a.dropRequests(ctx, time.Now().Add(-a.cfg.RequestTTL), "", "certificate requests expired")
	return err
}

func (a *Authority) dropRequests(ctx context.Context, before time.Time, from, what string) (int, error) {
	done, err := a.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	names := a.waiting.since(before, from)
	if len(names) == 0 {
		return 0, nil
	}
	dropped, err := a.store.DropRequests(ctx, names)
	if err != nil {
		return 0, err
	}
	a.waiting.remove(names...)
	a.log.InfoContext(ctx, what, "requests", dropped)
	return dropped, nil
}

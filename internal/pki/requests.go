package pki

import (
	"bytes"
	"context"
	"crypto"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Requests are the certificate requests of nodes: which are signed at once (by a token or the policy), which wait for a person, which make
// room for others, and the signature of a person.
type Requests struct {
	cfg      Config // its limits, and what requests may ask for
	store    Store
	issuer   *issuer
	records  *records
	autosign atomic.Pointer[AutosignPolicy]
	door     chan struct{} // holds one token: the holder adds or drops waiting requests
	lines    lines
	waiting  *waitingRoom
	log      *slog.Logger
}

// SetAutosign exchanges the policy for requests that come from now on.
func (q *Requests) SetAutosign(policy AutosignPolicy) error {
	if err := policy.Check(); err != nil {
		return err
	}
	q.autosign.Store(&policy)
	return nil
}

// Submit takes a certificate request in that came from an address, and tells
// whether the name has its certificate now. The same request again is no error and
// changes nothing; a newer one for the same key replaces one that waits. A good
// token goes before everything: it waits behind no stranger, and a request that
// somebody else has left under its name makes room.
func (q *Requests) Submit(ctx context.Context, name fleet.Certname, requestPEM []byte, from string) (signed bool, err error) {
	r, err := q.admissible(name, requestPEM)
	if err != nil {
		return false, err
	}
	if signed, err := q.nameTaken(ctx, r); signed || err != nil {
		return signed, err
	}
	if good, err := q.tokenGood(ctx, r); good || err != nil {
		return q.admitByToken(ctx, r, originOf(from), err)
	}
	done, err := q.lines.take(ctx, originOf(from))
	if err != nil {
		return false, err
	}
	defer done()
	if carriesToken(r) {
		return false, q.refuseToken(ctx, r)
	}
	approved, err := q.autosign.Load().approves(ctx, name, r.pem())
	if err != nil {
		q.log.WarnContext(ctx, "autosign could not decide, the request waits", "node", name, "err", err)
		approved = false
	}
	if approved {
		return q.admitApproved(ctx, r, originOf(from))
	}
	return false, q.leave(ctx, r, originOf(from))
}

// admissible parses a request and holds it against the settings.
func (q *Requests) admissible(name fleet.Certname, requestPEM []byte) (*csr, error) {
	r, err := parseCSR(requestPEM)
	if err != nil {
		return nil, err
	}
	if err := q.cfg.permit(r, name); err != nil {
		return nil, err
	}
	return r, q.issuer.reserved.check(r.name, r.altNames)
}

// nameTaken is true if the name holds a certificate for the request's key, and
// a Conflict if it holds another.
func (q *Requests) nameTaken(ctx context.Context, r *csr) (bool, error) {
	have, err := q.store.Certificate(ctx, r.name)
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
func (q *Requests) admitByToken(ctx context.Context, r *csr, from string, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	done, err := q.records.take(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if signed, err := q.nameTaken(ctx, r); signed || err != nil {
		return signed, err
	}
	if err := q.spendToken(ctx, r); err != nil {
		return false, err
	}
	if err := q.keep(ctx, r, from); err != nil { // if signing fails now, a person can do it
		return false, err
	}
	_, err = q.issuer.request(ctx, r, 0)
	return err == nil, err
}

// refuseToken is Denied: left waiting, anybody could read the token. Only a request
// that waits already, byte for byte, goes on waiting.
func (q *Requests) refuseToken(ctx context.Context, r *csr) error {
	if before, err := q.waitingBefore(ctx, r); before == same || err != nil {
		return err
	}
	return fault.New(fault.Denied, "the join token of %s is unknown, used up, too old, or for another name: make a new one", r.name)
}

// admitApproved signs what the policy approves, unless another key was first.
func (q *Requests) admitApproved(ctx context.Context, r *csr, from string) (bool, error) {
	done, err := q.records.take(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if signed, err := q.nameTaken(ctx, r); signed || err != nil {
		return signed, err
	}
	before, err := q.waitingBefore(ctx, r)
	if err != nil {
		return false, err
	}
	if before != same {
		if err := q.keep(ctx, r, from); err != nil {
			return false, err
		}
	}
	_, err = q.issuer.request(ctx, r, 0)
	return err == nil, err
}

// leave keeps a request for a person to decide. It takes no turn of those
// who sign: strangers wait for strangers.
func (q *Requests) leave(ctx context.Context, r *csr, from string) error {
	done, err := q.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	before, err := q.waitingBefore(ctx, r)
	if before == same || err != nil {
		return err
	}
	return q.keep(ctx, r, from)
}

// enter waits for the right to add a request to those that wait.
func (q *Requests) enter(ctx context.Context) (done func(), err error) {
	select {
	case q.door <- struct{}{}:
		return func() { <-q.door }, nil
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
func (q *Requests) waitingBefore(ctx context.Context, r *csr) (standing, error) {
	waiting, err := q.store.Request(ctx, r.name)
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

// keep stores a request in place of what waits under its name, and lets
// those go for whom there is no room any more.
func (q *Requests) keep(ctx context.Context, r *csr, from string) error {
	head := RequestHead{Certname: r.name, ReceivedAt: now(), From: from}
	if err := q.store.ReplaceRequest(ctx, Request{RequestHead: head, PEM: r.pem()}); err != nil {
		return err
	}
	q.log.InfoContext(ctx, "certificate request received", "node", r.name, "remote", from)
	out := q.waiting.add(head)
	if len(out) == 0 {
		return nil
	}
	q.log.WarnContext(ctx, "too many certificate requests wait: the oldest of the address with most made room", "node", out[0], "requests", len(out))
	_, err := q.store.DropRequests(ctx, out)
	return err
}

// Sign issues the certificate that name's waiting request asks for. A zero ttl
// means the setting's. NotFound if nothing waits; Conflict if the name has been
// signed already.
func (q *Requests) Sign(ctx context.Context, name fleet.Certname, ttl time.Duration) (Certificate, error) {
	if ttl < 0 {
		return Certificate{}, fault.New(fault.Invalid, "the certificate's life is %s, it must be positive", ttl)
	}
	done, err := q.records.take(ctx)
	if err != nil {
		return Certificate{}, err
	}
	defer done()
	waiting, err := q.store.Request(ctx, name)
	if err != nil {
		return Certificate{}, q.whyNothingWaits(ctx, name, err)
	}
	r, err := q.admissible(name, waiting.PEM) // settings may have changed since
	if err != nil {
		return Certificate{}, err
	}
	return q.issuer.request(ctx, r, ttl)
}

func (q *Requests) whyNothingWaits(ctx context.Context, name fleet.Certname, err error) error {
	if fault.Of(err) != fault.NotFound {
		return err
	}
	if _, certErr := q.store.Certificate(ctx, name); certErr == nil {
		return fault.New(fault.Conflict, "%s has a certificate and no waiting request", name)
	}
	return err
}

// Waiting returns the waiting request of a name.
func (q *Requests) Waiting(ctx context.Context, name fleet.Certname) (Request, error) {
	return q.store.Request(ctx, name)
}

// Delete removes a waiting request; NotFound if there is none.
func (q *Requests) Delete(ctx context.Context, name fleet.Certname) error {
	if err := q.store.DeleteRequest(ctx, name); err != nil {
		return err
	}
	q.waiting.remove(name)
	q.log.InfoContext(ctx, "certificate request deleted", "node", name)
	return nil
}

// Clean removes every request that waits, or those that came from an
// address (IPv6: from its network), and returns how many. No certificate is touched.
func (q *Requests) Clean(ctx context.Context, from string) (int, error) {
	if err := q.count(ctx); err != nil { // other servers let some in
		return 0, err
	}
	return q.drop(ctx, time.Now().Add(time.Hour), originOf(from), "certificate requests cleaned")
}

// count brings what is known of waiting requests up to the store's rows.
func (q *Requests) count(ctx context.Context) error {
	done, err := q.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	heads, err := q.store.RequestHeads(ctx)
	if err == nil {
		q.waiting.fill(heads)
	}
	return err
}

// expire removes those that have waited too long.
func (q *Requests) expire(ctx context.Context) error {
	if q.cfg.RequestTTL == 0 {
		return nil
	}
	_, err := q.drop(ctx, time.Now().Add(-q.cfg.RequestTTL), "", "certificate requests expired")
	return err
}

func (q *Requests) drop(ctx context.Context, before time.Time, from, what string) (int, error) {
	done, err := q.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	names := q.waiting.since(before, from)
	if len(names) == 0 {
		return 0, nil
	}
	dropped, err := q.store.DropRequests(ctx, names)
	if err != nil {
		return 0, err
	}
	q.waiting.remove(names...)
	q.log.InfoContext(ctx, what, "requests", dropped)
	return dropped, nil
}

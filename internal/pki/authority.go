package pki

import (
	"bytes"
	"context"
	"crypto/x509"
	"log/slog"
	"math/big"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Authority is the fleet's CA. See the package comment for what it promises.
type Authority struct {
	cfg   Config
	store Store
	log   *slog.Logger
	names map[string]string // OID to short name

	autosign atomic.Pointer[AutosignPolicy]
	turn     chan struct{} // holds one token: whoever has it decides
	door     chan struct{} // the same for those who add or drop waiting requests
	lines    lines
	waiting  *waitingRoom
	reserved reservation
	journal  *journal // of whoever has the turn

	mu       sync.RWMutex
	ca       *ca
	crl      crl
	upper    []byte // revocation lists of the CAs above ours, in PEM
	upperMod time.Time
	revoked  map[string]bool // serial numbers of our own
	hooks    []func([]*big.Int)
	left     func(context.Context, fleet.Certname)
}

// now is the present as it is kept: UTC, to the second.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// Open loads the CA of cfg.Dir, or makes it at the first start, and signs a
// fresh revocation list. It starts nothing: call Run for what takes time.
func Open(ctx context.Context, cfg Config, store Store, log *slog.Logger) (*Authority, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := makeDir(cfg.Dir); err != nil {
		return nil, err
	}
	root, err := openCA(ctx, cfg, store)
	if err != nil {
		return nil, err
	}
	if err := root.checkTime(time.Now()); err != nil {
		return nil, err
	}
	a := &Authority{
		cfg: cfg, store: store, log: log, names: oidNames(cfg.OIDNames), turn: make(chan struct{}, 1),
		door: make(chan struct{}, 1), waiting: newWaitingRoom(cfg.MaxWaiting, cfg.MaxWaitingOfOne), ca: root, revoked: map[string]bool{},
	}
	a.autosign.Store(&cfg.Autosign)
	if a.journal, err = reconcile(ctx, cfg.Dir, root, store); err != nil {
		return nil, err
	}
	if err := a.loadUpperLists(); err != nil {
		return nil, err
	}
	if err := a.reserveNames(ctx); err != nil {
		return nil, err
	}
	return a, a.refresh(ctx, true)
}

// SetAutosign exchanges the policy for requests that come from now on.
func (a *Authority) SetAutosign(policy AutosignPolicy) error {
	if err := policy.Check(); err != nil {
		return err
	}
	a.autosign.Store(&policy)
	return nil
}

// Run looks for what other processes revoked and keeps the revocation list
// fresh, until ctx is done.
func (a *Authority) Run(ctx context.Context) error {
	tick := time.NewTicker(a.cfg.RefreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := a.Refresh(ctx); err != nil && ctx.Err() == nil {
				a.log.ErrorContext(ctx, "certificate state not refreshed, will retry", "err", err)
			}
		}
	}
}

// Refresh reads the store's rows once: what another process revoked counts from
// now on, and a list that is missing entries or gets old is made again.
func (a *Authority) Refresh(ctx context.Context) error { return a.refresh(ctx, false) }

func (a *Authority) refresh(ctx context.Context, force bool) error {
	done, err := a.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := a.settle(ctx); err != nil {
		return err
	}
	if err := a.countRequests(ctx); err != nil {
		return err
	}
	if err := a.expireRequests(ctx); err != nil {
		return err
	}
	return a.renewList(ctx, force)
}

// countRequests brings what is known of waiting requests up to the store's rows.
func (a *Authority) countRequests(ctx context.Context) error {
	done, err := a.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	heads, err := a.store.RequestHeads(ctx)
	if err == nil {
		a.waiting.fill(heads)
	}
	return err
}

// take waits for the right to decide and returns how to give it back.
func (a *Authority) take(ctx context.Context) (done func(), err error) {
	select {
	case a.turn <- struct{}{}:
		return func() { <-a.turn }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "the CA is busy")
	}
}

func (a *Authority) current() *ca {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.ca
}

// Bundle is the CA's certificates in PEM, the signing one first, and when they
// last changed. The caller must not change it.
func (a *Authority) Bundle() ([]byte, time.Time) {
	c := a.current()
	return c.bundle, c.modified
}

// Pool holds the certificates that a peer's certificate is verified against.
func (a *Authority) Pool() *x509.CertPool { return a.current().pool.Clone() }

// OnRevoke calls f with the serial numbers of certificates that were just
// revoked, after CheckPeer refuses them. f must return quickly and may be
// called concurrently. Register hooks before the first revocation.
func (a *Authority) OnRevoke(f func(serials []*big.Int)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hooks = append(a.hooks, f)
}

// OnLeave calls f with each name whose certificates were revoked by this authority, after CheckPeer refuses them. Set it before the
// first revocation.
func (a *Authority) OnLeave(f func(context.Context, fleet.Certname)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = f
}

// CheckPeer tells whether a certificate, whose chain was verified already, is
// one that this CA issued and has not revoked, and that has not ended since the
// connection was made. It only looks into memory.
func (a *Authority) CheckPeer(cert *x509.Certificate) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	switch signer := a.ca.signer(); {
	case !issuedBy(cert, signer):
		return fault.New(fault.Denied, "the certificate of %q was not issued by this CA", cert.Subject.CommonName)
	case a.isRevoked(cert.SerialNumber):
		return fault.New(fault.Denied, "the certificate of %q with serial number %X is revoked", cert.Subject.CommonName, cert.SerialNumber)
	case time.Now().After(cert.NotAfter):
		return fault.New(fault.Denied, "the certificate of %q ended at %s", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

// isRevoked allocates nothing: every request comes by here.
func (a *Authority) isRevoked(serial *big.Int) bool {
	var text [64]byte // 20 bytes of serial number, the most that RFC 5280 allows, are 49 digits
	return a.revoked[string(serial.Append(text[:0], 10))]
}

// issuedBy compares names and key identifiers; the signature was verified before.
func issuedBy(cert, signer *x509.Certificate) bool {
	return bytes.Equal(cert.RawIssuer, signer.RawSubject) &&
		(len(cert.AuthorityKeyId) == 0 || bytes.Equal(cert.AuthorityKeyId, signer.SubjectKeyId))
}

package pki

import (
	"bytes"
	"context"
	"crypto/x509"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Authority is the fleet's CA: its parts, each for those who need only that, and what is done with the certificates of nodes. See the
// package comment for what it promises.
type Authority struct {
	Requests    *Requests
	Revocations *Revocations
	Server      *ServerCertificates
	Audit       AuditKey

	dir          string
	refreshEvery time.Duration
	watchEvery   time.Duration
	shared       Shared // nil: this authority is alone
	allowRenewal bool
	store        Store
	log          *slog.Logger
	names        shortNames
	ca           *atomic.Pointer[ca]
	records      *records
	issuer       *issuer
	hinted       chan struct{} // see Hint
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
	root, journal, err := openRecords(ctx, cfg, store)
	if err != nil {
		return nil, err
	}
	servers, err := store.ServerCertificates(ctx)
	if err != nil {
		return nil, err
	}
	a := compose(cfg, store, root, journal, log)
	if err := a.Revocations.loadUpper(); err != nil {
		return nil, err
	}
	if err := a.issuer.reserved.begin(root, servers); err != nil {
		return nil, err
	}
	return a, a.refresh(ctx, true)
}

// openRecords opens the key, and the journal that belongs to it and to the store.
func openRecords(ctx context.Context, cfg Config, store Store) (*ca, *journal, error) {
	if cfg.Shared != nil {
		return openShared(ctx, cfg, store)
	}
	root, err := openCA(ctx, cfg, store)
	if err != nil {
		return nil, nil, err
	}
	if err := root.checkTime(time.Now()); err != nil {
		return nil, nil, err
	}
	j, err := reconcile(ctx, cfg.Dir, root, store, false)
	if fault.Is(err, fault.Conflict) { // one that was of several may lack what the others did last
		if err := catchUpBefore(ctx, cfg.Dir, root, store); err != nil {
			return nil, nil, err
		}
		j, err = reconcile(ctx, cfg.Dir, root, store, false)
	}
	return root, j, err
}

// compose makes the parts, each of those that it stands on.
func compose(cfg Config, store Store, root *ca, journal *journal, log *slog.Logger) *Authority {
	current := new(atomic.Pointer[ca])
	current.Store(root)
	waiting := newWaitingRoom(cfg.MaxWaiting, cfg.MaxWaitingOfOne)
	records := &records{store: store, waiting: waiting, turn: make(chan struct{}, 1), journal: journal, shared: cfg.Shared != nil, log: log}
	_ = records.noted(nil)
	issuer := &issuer{ca: current, records: records, reserved: &reservation{}, ttl: cfg.LeafTTL, log: log}
	revocations := &Revocations{
		dir: cfg.Dir, ttl: cfg.CRLTTL, store: store, ca: current, records: records, shared: cfg.Shared, revoked: map[string]bool{}, log: log,
	}
	records.heard = func(c Change) {
		revocations.refuse(c.ended())
		issuer.reserved.addServers(c.Issued)
	}
	requests := &Requests{cfg: cfg, store: store, issuer: issuer, records: records, door: make(chan struct{}, 1), waiting: waiting, log: log}
	requests.autosign.Store(&cfg.Autosign)
	return &Authority{
		Requests: requests, Revocations: revocations, Audit: AuditKey{ca: current},
		Server: &ServerCertificates{dir: cfg.Dir, store: store, issuer: issuer, records: records, revocations: revocations, log: log},
		dir:    cfg.Dir, refreshEvery: cfg.RefreshEvery, watchEvery: cfg.WatchEvery, shared: cfg.Shared, allowRenewal: cfg.AllowRenewal, store: store, log: log,
		names: newShortNames(cfg.OIDNames), ca: current, records: records, issuer: issuer, hinted: make(chan struct{}, 1),
	}
}

// Run looks for what other processes revoked and keeps the revocation list
// fresh, until ctx is done.
func (a *Authority) Run(ctx context.Context) error {
	tick, watch := time.NewTicker(a.refreshEvery), time.NewTicker(a.watchEvery)
	defer tick.Stop()
	defer watch.Stop()
	if a.shared == nil {
		watch.Stop()
	}
	blind := false // it is said once, not every two seconds
	look := func() {
		err := a.look(ctx)
		if err != nil && ctx.Err() == nil && !blind {
			a.log.ErrorContext(ctx, "what other servers' CAs do cannot be seen, will retry", "err", err)
		}
		blind = err != nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watch.C:
			look()
		case <-a.hinted:
			look()
		case <-tick.C:
			if err := a.Refresh(ctx); err != nil && ctx.Err() == nil {
				a.log.ErrorContext(ctx, "certificate state not refreshed, will retry", "err", err)
			}
		}
	}
}

// Hint says that another authority of this CA may have done something: Run looks at once, not only when it is time. It never blocks.
func (a *Authority) Hint() {
	select {
	case a.hinted <- struct{}{}:
	default: // one is waiting already
	}
}

// look takes over what other authorities of this CA have done since the last look, and has a new list signed if they revoked something.
func (a *Authority) look(ctx context.Context) error {
	have, err := a.store.CAAnchor(ctx)
	if err != nil || have == *a.records.at.Load() {
		return err
	}
	done, err := a.records.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	return a.Revocations.renew(ctx, false)
}

// Refresh reads the store's rows once: what another process revoked counts from
// now on, and a list that is missing entries or gets old is made again.
func (a *Authority) Refresh(ctx context.Context) error { return a.refresh(ctx, false) }

func (a *Authority) refresh(ctx context.Context, force bool) error {
	done, err := a.records.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := a.records.settle(ctx); err != nil {
		return err
	}
	if err := a.Requests.count(ctx); err != nil {
		return err
	}
	if err := a.Requests.expire(ctx); err != nil {
		return err
	}
	if err := a.Revocations.shareUpper(ctx); err != nil {
		return err
	}
	return a.Revocations.renew(ctx, force)
}

// Bundle is the CA's certificates in PEM, the signing one first, and when they
// last changed. The caller must not change it.
func (a *Authority) Bundle() ([]byte, time.Time) {
	c := a.ca.Load()
	return c.bundle, c.modified
}

// Pool holds the certificates that a peer's certificate is verified against.
func (a *Authority) Pool() *x509.CertPool { return a.ca.Load().pool.Clone() }

// issuedBy compares names and key identifiers; the signature was verified before.
func issuedBy(cert, signer *x509.Certificate) bool {
	return bytes.Equal(cert.RawIssuer, signer.RawSubject) &&
		(len(cert.AuthorityKeyId) == 0 || bytes.Equal(cert.AuthorityKeyId, signer.SubjectKeyId))
}

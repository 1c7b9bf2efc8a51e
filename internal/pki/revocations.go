package pki

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Revocations say who is refused: in memory for each connection and request, and in signed lists for everybody else. The rows of the
// store are the authority.
type Revocations struct {
	dir     string
	ttl     time.Duration // of a list
	store   Store
	ca      *atomic.Pointer[ca]
	records *records
	shared  Shared // nil: nobody else needs the lists of the CAs above ours
	log     *slog.Logger

	mu       sync.RWMutex
	crl      crl
	upper    []byte // revocation lists of the CAs above ours, in PEM
	upperMod time.Time
	revoked  map[string]bool // serial numbers of our own
	hooks    []func([]*big.Int)
	left     func(context.Context, fleet.Certname)
}

// CRL is the chain of revocation lists in PEM, ours first, and when it last changed.
// The caller must not change it.
func (v *Revocations) CRL() ([]byte, time.Time) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	changed := v.crl.madeAt
	if v.upperMod.After(changed) {
		changed = v.upperMod
	}
	return slices.Concat(v.crl.pem, v.upper), changed
}

// renew brings memory and the list up to the store's rows, and signs a new
// one if forced, if entries are missing, or if half its life is over. The caller has
// the turn, so that a newer list never holds fewer entries.
func (v *Revocations) renew(ctx context.Context, force bool) error {
	rows, err := v.store.Revoked(ctx)
	if err != nil {
		return err
	}
	v.refuse(rows)
	v.mu.RLock()
	have := v.crl
	v.mu.RUnlock()
	if !force && have.entries == len(rows) && time.Since(have.madeAt) < v.ttl/2 {
		return nil
	}
	made, err := v.makeList(ctx, rows)
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.crl = made
	v.mu.Unlock()
	return nil
}

func (v *Revocations) makeList(ctx context.Context, rows []Certificate) (crl, error) {
	number, err := v.store.NextCRLNumber(ctx)
	if err != nil {
		return crl{}, err
	}
	signer := v.ca.Load()
	at := now()
	template := &x509.RevocationList{
		Number: number, ThisUpdate: at.Add(-backdate), NextUpdate: at.Add(v.ttl),
		SignatureAlgorithm: signatureAlgorithm(signer.key),
	}
	for _, row := range rows {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: row.Serial, RevocationTime: row.RevokedAt.UTC(), ReasonCode: keyCompromise,
		})
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, signer.signer(), signer.key)
	if err != nil {
		return crl{}, err
	}
	return crl{pem: encodeCRL(der), entries: len(rows), madeAt: time.Now(), ends: template.NextUpdate}, nil
}

func (v *Revocations) loadUpper() error {
	path := filepath.Join(v.dir, chainCRLFile)
	content, err := readFile(path)
	if err != nil || len(content) == 0 { // an empty one was left by earlier versions for a CA with none above it
		return err
	}
	if _, err := parseCRLs(content); err != nil {
		return describe(err, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be read", path)
	}
	v.upper, v.upperMod = content, info.ModTime()
	return nil
}

// shareUpper takes over lists of the CAs above ours that another authority of this CA was given, or gives it those that are here. The caller has the turn.
func (v *Revocations) shareUpper(ctx context.Context) error {
	if v.shared == nil {
		return nil
	}
	kept, err := v.shared.Load(ctx, sharedLists)
	if err != nil {
		return err
	}
	v.mu.RLock()
	own := v.upper
	v.mu.RUnlock()
	switch {
	case kept == nil && len(own) > 0:
		return v.shared.Keep(ctx, sharedLists, own)
	case kept == nil || bytes.Equal(kept, own):
		return nil
	}
	return v.keepUpper(kept)
}

// MergeCRLs takes newer revocation lists of the CAs above ours. Lists of our own
// CA are passed over: its list is made from what was revoked here. Invalid if a
// list is not signed by a CA of the bundle.
func (v *Revocations) MergeCRLs(ctx context.Context, text []byte) error {
	lists, err := parseCRLs(text)
	if err != nil {
		return err
	}
	done, err := v.records.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := v.shareUpper(ctx); err != nil {
		return err
	}
	v.mu.RLock()
	old := v.upper
	v.mu.RUnlock()
	merged, err := mergeUpper(v.ca.Load(), old, lists)
	if err != nil || bytes.Equal(merged, old) {
		return err
	}
	if v.shared != nil {
		if err := v.shared.Keep(ctx, sharedLists, merged); err != nil {
			return err
		}
	}
	return v.keepUpper(merged)
}

// keepUpper stores the lists of the CAs above ours; there may be none.
func (v *Revocations) keepUpper(lists []byte) error {
	if len(lists) == 0 {
		if err := removeFile(v.dir, chainCRLFile); err != nil {
			return err
		}
	} else if err := writeFile(v.dir, chainCRLFile, lists, 0o644); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.upper, v.upperMod = lists, time.Now()
	return nil
}

// Expirations says when the CA's certificates and revocation lists end, by
// the name of their CA.
func (v *Revocations) Expirations() (certs, lists map[string]time.Time) {
	root := v.ca.Load()
	v.mu.RLock()
	defer v.mu.RUnlock()
	certs, lists = map[string]time.Time{}, map[string]time.Time{}
	for _, cert := range root.chain {
		certs[cert.Subject.CommonName] = cert.NotAfter.UTC()
	}
	lists[root.signer().Subject.CommonName] = v.crl.ends
	if upper, err := parseCRLs(v.upper); err == nil { // it was checked when it came in
		for _, list := range upper {
			lists[list.Issuer.CommonName] = list.NextUpdate.UTC()
		}
	}
	return certs, lists
}

// OnRevoke calls f with the serial numbers of certificates that were just
// revoked, after CheckPeer refuses them. f must return quickly and may be
// called concurrently. Register hooks before the first revocation.
func (v *Revocations) OnRevoke(f func(serials []*big.Int)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hooks = append(v.hooks, f)
}

// OnLeave calls f with each name whose certificates were revoked by this authority, after CheckPeer refuses them. Set it before the
// first revocation.
func (v *Revocations) OnLeave(f func(context.Context, fleet.Certname)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = f
}

// CheckPeer tells whether a certificate, whose chain was verified already, is
// one that this CA issued and has not revoked, and that has not ended since the
// connection was made. It only looks into memory.
func (v *Revocations) CheckPeer(cert *x509.Certificate) error {
	switch {
	case !issuedBy(cert, v.ca.Load().signer()):
		return fault.New(fault.Denied, "the certificate of %q was not issued by this CA", cert.Subject.CommonName)
	case v.isRevoked(cert.SerialNumber):
		return fault.New(fault.Denied, "the certificate of %q with serial number %s is revoked", cert.Subject.CommonName, fleet.Serial(cert.SerialNumber))
	case time.Now().After(cert.NotAfter):
		return fault.New(fault.Denied, "the certificate of %q ended at %s", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

// isRevoked allocates nothing: every request comes by here.
func (v *Revocations) isRevoked(serial *big.Int) bool {
	var text [64]byte // 20 bytes of serial number, the most that RFC 5280 allows, are 49 digits
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.revoked[string(serial.Append(text[:0], 10))]
}

// expel refuses whoever shows a certificate that was just revoked, and says so.
func (v *Revocations) expel(ctx context.Context, marked []Certificate) {
	v.refuse(marked)
	v.mu.RLock()
	left := v.left
	v.mu.RUnlock()
	var last fleet.Certname
	for _, c := range marked {
		v.log.InfoContext(ctx, "certificate revoked", "node", c.Certname, "serial", fleet.Serial(c.Serial))
		if left != nil && c.Certname != last {
			left(ctx, c.Certname)
		}
		last = c.Certname
	}
}

// refuse makes CheckPeer refuse certificates from now on, then tells the hooks
// about those it did not know.
func (v *Revocations) refuse(certs []Certificate) {
	v.mu.Lock()
	var fresh []*big.Int
	for _, c := range certs {
		if key := c.Serial.String(); !v.revoked[key] {
			v.revoked[key] = true
			fresh = append(fresh, c.Serial)
		}
	}
	hooks := v.hooks
	v.mu.Unlock()
	if len(fresh) == 0 {
		return
	}
	for _, hook := range hooks {
		hook(fresh)
	}
}

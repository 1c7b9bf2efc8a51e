package pki

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// keyCompromise is the reason that every revocation gives (RFC 5280, 5.3.1).
const keyCompromise = 1

// crl is our own signed list.
type crl struct {
	pem     []byte
	entries int
	madeAt  time.Time
	ends    time.Time
}

// CRL is the chain of revocation lists in PEM, ours first, and when it last changed.
// The caller must not change it.
func (a *Authority) CRL() ([]byte, time.Time) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	changed := a.crl.madeAt
	if a.upperMod.After(changed) {
		changed = a.upperMod
	}
	return slices.Concat(a.crl.pem, a.upper), changed
}

// renewList brings memory and the list up to the store's rows, and signs a new
// one if forced, if entries are missing, or if half its life is over. The caller has
// the turn, so that a newer list never holds fewer entries.
func (a *Authority) renewList(ctx context.Context, force bool) error {
	rows, err := a.store.Revoked(ctx)
	if err != nil {
		return err
	}
	a.refuse(rows)
	a.mu.RLock()
	have := a.crl
	a.mu.RUnlock()
	if !force && have.entries == len(rows) && time.Since(have.madeAt) < a.cfg.CRLTTL/2 {
		return nil
	}
	made, err := a.makeList(ctx, rows)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.crl = made
	a.mu.Unlock()
	return nil
}

func (a *Authority) makeList(ctx context.Context, rows []Certificate) (crl, error) {
	number, err := a.store.NextCRLNumber(ctx)
	if err != nil {
		return crl{}, err
	}
	signer := a.current()
	at := now()
	template := &x509.RevocationList{
		Number: number, ThisUpdate: at.Add(-backdate), NextUpdate: at.Add(a.cfg.CRLTTL),
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

func encodeCRL(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

func parseCRLs(text []byte) ([]*x509.RevocationList, error) {
	var lists []*x509.RevocationList
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "revocation list %d is broken", len(lists)+1)
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 {
		return nil, fault.New(fault.Invalid, "there is no revocation list in PEM")
	}
	return lists, nil
}

func (a *Authority) loadUpperLists() error {
	path := filepath.Join(a.cfg.Dir, chainCRLFile)
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
	a.upper, a.upperMod = content, info.ModTime()
	return nil
}

// MergeCRLs takes newer revocation lists of the CAs above ours. Lists of our own
// CA are passed over: its list is made from what was revoked here. Invalid if a
// list is not signed by a CA of the bundle.
func (a *Authority) MergeCRLs(ctx context.Context, text []byte) error {
	lists, err := parseCRLs(text)
	if err != nil {
		return err
	}
	done, err := a.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	a.mu.RLock()
	root, old := a.ca, a.upper
	a.mu.RUnlock()
	merged, err := mergeUpper(root, old, lists)
	if err != nil || bytes.Equal(merged, old) {
		return err
	}
	return a.keepUpper(merged)
}

// keepUpper stores the lists of the CAs above ours; there may be none.
func (a *Authority) keepUpper(lists []byte) error {
	if len(lists) == 0 {
		if err := removeFile(a.cfg.Dir, chainCRLFile); err != nil {
			return err
		}
	} else if err := writeFile(a.cfg.Dir, chainCRLFile, lists, 0o644); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.upper, a.upperMod = lists, time.Now()
	return nil
}

// mergeUpper keeps the newest list of each CA above the signing one, in the
// order of the chain.
func mergeUpper(root *ca, old []byte, lists []*x509.RevocationList) ([]byte, error) {
	newest := map[int]*x509.RevocationList{}
	if len(old) > 0 {
		kept, err := parseCRLs(old)
		if err != nil {
			return nil, err
		}
		lists = append(kept, lists...)
	}
	for _, list := range lists {
		i := slices.IndexFunc(root.chain, func(c *x509.Certificate) bool { return list.CheckSignatureFrom(c) == nil })
		if i < 0 {
			return nil, fault.New(fault.Invalid, "the revocation list of %q is not signed by a CA of this fleet's bundle", list.Issuer)
		}
		if have := newest[i]; have == nil || listNumber(list).Cmp(listNumber(have)) > 0 {
			newest[i] = list
		}
	}
	var merged []byte
	for i := range root.chain {
		if list := newest[i]; list != nil && i > 0 {
			merged = append(merged, encodeCRL(list.Raw)...)
		}
	}
	return merged, nil
}

func listNumber(list *x509.RevocationList) *big.Int {
	if list.Number == nil {
		return new(big.Int)
	}
	return list.Number
}

// Expirations says when the CA's certificates and revocation lists end, by
// the name of their CA.
func (a *Authority) Expirations() (certs, lists map[string]time.Time) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	certs, lists = map[string]time.Time{}, map[string]time.Time{}
	for _, cert := range a.ca.chain {
		certs[cert.Subject.CommonName] = cert.NotAfter.UTC()
	}
	lists[a.ca.signer().Subject.CommonName] = a.crl.ends
	if upper, err := parseCRLs(a.upper); err == nil { // it was checked when it came in
		for _, list := range upper {
			lists[list.Issuer.CommonName] = list.NextUpdate.UTC()
		}
	}
	return certs, lists
}

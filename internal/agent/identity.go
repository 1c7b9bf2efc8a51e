package agent

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Identity is who a node is: its certificate and key, and whom it believes. It follows its
// files: what changed on disk counts from the next connection on.
type Identity struct {
	ca, certificate, key, crl string // paths
	Log                       *slog.Logger

	mu    sync.Mutex
	stamp [4]stamp
	now   loaded
}

// loaded is what the files held when they were read last.
type loaded struct {
	config *tls.Config
	leaf   *x509.Certificate
	bundle []*x509.Certificate
	name   fleet.Certname
}

// stamp tells one state of a file from another: a replaced one is another file, though it may be as large and as new.
type stamp struct{ info os.FileInfo }

func (s stamp) same(other stamp) bool {
	a, b := s.info, other.info
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// LoadIdentity reads the files; its errors name the file and what to do.
func LoadIdentity(c Config) (*Identity, error) {
	i := &Identity{ca: c.CAFile, certificate: c.CertificateFile, key: c.KeyFile, crl: c.CRLFile, Log: slog.New(slog.DiscardHandler)}
	i.stamp = i.stamps()
	var err error
	i.now, err = i.read()
	return i, err
}

// Name is the certificate's common name.
func (i *Identity) Name() fleet.Certname { return i.current().name }

// Certificate is the node's own.
func (i *Identity) Certificate() *x509.Certificate { return i.current().leaf }

func (i *Identity) authorities() []*x509.Certificate { return i.current().bundle }

// TLS is the configuration for the next connection.
func (i *Identity) TLS() (*tls.Config, error) { return i.current().config, nil }

// current reads the files again if they changed. Files that cannot be used now, half
// written perhaps, leave things as they were.
func (i *Identity) current() loaded {
	i.mu.Lock()
	defer i.mu.Unlock()
	stamps := i.stamps()
	if slices.EqualFunc(stamps[:], i.stamp[:], stamp.same) {
		return i.now
	}
	fresh, err := i.read()
	if err == nil && fresh.name != i.now.name {
		err = fault.New(fault.Conflict, "the certificate is of %s, but this agent is %s until it is started again", fresh.name, i.now.name)
	}
	if err != nil {
		i.Log.Warn("certificates changed, but cannot be used; the old ones stay", "err", err)
	} else {
		i.now = fresh
		i.Log.Info("certificates were read again", "expires", fresh.leaf.NotAfter)
	}
	i.stamp = stamps
	return i.now
}

func (i *Identity) stamps() (all [4]stamp) {
	for n, path := range []string{i.ca, i.certificate, i.key, i.crl} {
		if info, err := os.Stat(path); err == nil {
			all[n] = stamp{info}
		}
	}
	return all
}

// read makes sense of the files.
func (i *Identity) read() (l loaded, err error) {
	texts := [4][]byte{}
	for n, path := range []string{i.ca, i.certificate, i.key, i.crl} {
		texts[n], err = os.ReadFile(path)
		if n == 3 && errors.Is(err, os.ErrNotExist) {
			continue // a fleet without revocation
		}
		if errors.Is(err, os.ErrNotExist) {
			return l, fault.New(fault.NotFound, "there is no %s; this node has not joined: run `tutti agent join https://HOST:8140`", path)
		}
		if err != nil {
			return l, fault.New(fault.Invalid, "%s cannot be read: %v; run it as the user that owns the file", path, cause(err))
		}
	}
	if l.bundle, err = parseCertificates(texts[0]); err != nil {
		return l, fault.New(fault.Invalid, "%s: %s", i.ca, fault.Detail(err))
	}
	chain, err := parseCertificates(texts[1])
	if err != nil {
		return l, fault.New(fault.Invalid, "%s: %s", i.certificate, fault.Detail(err))
	}
	key, err := parseKey(texts[2])
	if err != nil {
		return l, fault.New(fault.Invalid, "%s: %s", i.key, fault.Detail(err))
	}
	l.leaf = chain[0]
	if !sameKey(l.leaf.PublicKey, key.Public()) {
		return l, fault.New(fault.Invalid, "%s is not the key of %s; put back the one that belongs to it, or remove both and join again", i.key, i.certificate)
	}
	if l.name, err = fleet.ParseCertname(l.leaf.Subject.CommonName); err != nil {
		return l, fault.New(fault.Invalid, "%s: %s", i.certificate, fault.Detail(err))
	}
	lists, err := parseLists(texts[3])
	if err != nil {
		return l, fault.New(fault.Invalid, "%s: %s", i.crl, fault.Detail(err))
	}
	own := tls.Certificate{PrivateKey: key, Leaf: l.leaf}
	for _, c := range chain {
		own.Certificate = append(own.Certificate, c.Raw)
	}
	l.config = &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: poolOf(l.bundle), Certificates: []tls.Certificate{own},
		ClientSessionCache: tls.NewLRUClientSessionCache(4),
		VerifyConnection:   func(s tls.ConnectionState) error { return notRevoked(s.VerifiedChains, lists) },
	}
	return l, nil
}

// maxLists bounds a file of revocation lists.
const maxLists = 20

func parseLists(text []byte) ([]*x509.RevocationList, error) {
	var all []*x509.RevocationList
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "a revocation list cannot be read: %v", err)
		}
		if all = append(all, list); len(all) > maxLists {
			return nil, fault.New(fault.Invalid, "there are more than %d revocation lists", maxLists)
		}
	}
	return all, nil
}

// notRevoked looks for a chain without a revoked certificate. A list that has run out still counts:
// a node that was away for long must come back to get the next one.
func notRevoked(chains [][]*x509.Certificate, lists []*x509.RevocationList) error {
	var found error
	for _, chain := range chains {
		if found = revokedIn(chain, lists); found == nil {
			return nil
		}
	}
	return found
}

func revokedIn(chain []*x509.Certificate, lists []*x509.RevocationList) error {
	for n, c := range chain[:len(chain)-1] {
		issuer := chain[n+1]
		for _, list := range lists {
			if string(list.RawIssuer) != string(issuer.RawSubject) || list.CheckSignatureFrom(issuer) != nil {
				continue
			}
			if revokedBy(c, list) {
				return fmt.Errorf("the certificate of %s (serial number %s) was revoked", c.Subject.CommonName, fleet.Serial(c.SerialNumber))
			}
		}
	}
	return nil
}

// revokedBy says whether a list that its CA is known to have signed names a certificate.
func revokedBy(c *x509.Certificate, list *x509.RevocationList) bool {
	return string(list.RawIssuer) == string(c.RawIssuer) && slices.ContainsFunc(list.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool {
		return e.SerialNumber.Cmp(c.SerialNumber) == 0
	})
}

package pki

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxImportFiles bounds how many certificates and requests an import reads.
const maxImportFiles = 1_000_000

// Imported counts what an import took over. Skipped names files that were left out
// and why.
type Imported struct {
	Certificates int
	Revoked      int
	Requests     int
	Skipped      []string
}

// Import takes over an existing Puppet CA directory: key, bundle, revocation
// lists, list number, inventory, signed certificates and waiting requests.
// It is refused if this CA has issued anything that is not part of the import; an import
// that was cut short can be repeated. Afterwards the listener needs a new
// server certificate and pool.
func (a *Authority) Import(ctx context.Context, dir string) (Imported, error) {
	read, err := readPuppetCA(dir)
	if err != nil {
		return Imported{}, err
	}
	if err := read.root.checkTime(time.Now()); err != nil {
		return Imported{}, err
	}
	if a.records.shared {
		return Imported{}, fault.New(fault.Conflict, "several servers share this CA: import with one server alone, without the setting cluster, then set it again")
	}
	done, err := a.records.take(ctx)
	if err != nil {
		return Imported{}, err
	}
	defer done()
	if err := a.refuseOtherCA(ctx, read); err != nil {
		return Imported{}, err
	}
	if err := a.storeImport(ctx, read); err != nil {
		return Imported{}, err
	}
	if err := a.takeOver(ctx, read); err != nil {
		return Imported{}, err
	}
	a.log.InfoContext(ctx, "CA imported", "dir", dir, "certificates", read.count.Certificates,
		"revoked", read.count.Revoked, "requests", read.count.Requests, "skipped", len(read.count.Skipped))
	return read.count, nil
}

// puppetCA is everything in a Puppet CA directory, checked.
type puppetCA struct {
	root     *ca
	upper    []byte
	certs    []Certificate // current ones last, so that a repeated save finds them so
	requests []Request
	topList  *big.Int
	count    Imported
}

// CheckSource says whether dir can be the directory of a Puppet CA: its key and its certificates are read, and nothing more.
func CheckSource(dir string) error { return new(puppetCA).readRoot(dir) }

func readPuppetCA(dir string) (*puppetCA, error) {
	p := &puppetCA{topList: new(big.Int)}
	if err := p.readRoot(dir); err != nil {
		return nil, err
	}
	lists, err := p.readLists(dir)
	if err != nil {
		return nil, err
	}
	issued, err := p.readInventory(dir)
	if err != nil {
		return nil, err
	}
	if err := p.readSigned(dir, lists); err != nil {
		return nil, err
	}
	p.addHistory(issued, lists)
	return p, p.readRequests(dir)
}

func required(dir, name string) ([]byte, error) {
	const usual = "Puppet Server has it in /etc/puppetlabs/puppetserver/ca, Debian's in /var/lib/puppetserver/ca"
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, &fault.Error{Kind: fault.Invalid, Detail: dir + " is a file; the CA of a Puppet Server is a directory", Hint: usual}
	}
	content, err := readFile(filepath.Join(dir, name))
	if err == nil && content == nil {
		err = &fault.Error{
			Kind: fault.Invalid, Detail: fmt.Sprintf("%s is missing in %s, which can be no directory of a Puppet CA", name, dir), Hint: usual,
		}
	}
	return content, err
}

func (p *puppetCA) readRoot(dir string) error {
	keyText, err := required(dir, "ca_key.pem")
	if err != nil {
		return err
	}
	bundle, err := required(dir, "ca_crt.pem")
	if err != nil {
		return err
	}
	key, err := parseKey(keyText)
	if err != nil {
		return describe(err, filepath.Join(dir, "ca_key.pem"))
	}
	certs, err := parseCertificates(bundle)
	if err != nil {
		return describe(err, filepath.Join(dir, "ca_crt.pem"))
	}
	if p.root, err = newCA(key, certs, time.Now()); err != nil {
		return describe(err, dir)
	}
	return nil
}

// readLists returns when each serial number of the signing CA was revoked.
func (p *puppetCA) readLists(dir string) (map[string]revocation, error) {
	revoked := map[string]revocation{}
	var all []*x509.RevocationList
	for _, name := range []string{"ca_crl.pem", "infra_crl.pem"} {
		content, err := readFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if content == nil && name == "infra_crl.pem" {
			continue
		}
		lists, err := parseCRLs(content)
		if err != nil {
			return nil, describe(err, filepath.Join(dir, name))
		}
		all = append(all, lists...)
	}
	upper, err := mergeUpper(p.root, nil, all)
	if err != nil {
		return nil, describe(err, dir)
	}
	p.upper = upper
	for _, list := range all {
		p.addRevocations(list, revoked)
	}
	return revoked, p.noteEndedLists(dir)
}

// noteEndedLists says which lists of the CAs above ours agents will refuse: only
// those CAs can make newer ones.
func (p *puppetCA) noteEndedLists(dir string) error {
	if len(p.upper) == 0 {
		return nil
	}
	lists, err := parseCRLs(p.upper)
	if err != nil {
		return describe(err, dir)
	}
	for _, list := range lists {
		if ends := list.NextUpdate; !ends.IsZero() && time.Now().After(ends) {
			p.skip("ca_crl.pem", fault.New(fault.Invalid, "the revocation list of %s, which was taken over, ended at %s: agents that check the whole chain refuse it; "+
				"have that CA make a newer one and send it with PUT /puppet-ca/v1/certificate_revocation_list", list.Issuer, stamp(ends)))
		}
	}
	return nil
}

type revocation struct {
	serial *big.Int
	at     time.Time
}

func (p *puppetCA) addRevocations(list *x509.RevocationList, to map[string]revocation) {
	if !bytes.Equal(list.RawIssuer, p.root.signer().RawSubject) {
		return
	}
	if n := listNumber(list); n.Cmp(p.topList) > 0 {
		p.topList = n
	}
	for _, entry := range list.RevokedCertificateEntries {
		to[entry.SerialNumber.String()] = revocation{entry.SerialNumber, entry.RevocationTime.UTC()}
	}
}

func (p *puppetCA) readInventory(dir string) ([]inventoryLine, error) {
	content, err := readFile(filepath.Join(dir, "inventory.txt"))
	if err != nil {
		return nil, err
	}
	issued, skipped := parseInventory(content)
	for _, line := range skipped {
		p.count.Skipped = append(p.count.Skipped, "inventory.txt: "+line)
	}
	return issued, nil
}

func (p *puppetCA) readSigned(dir string, revoked map[string]revocation) error {
	return eachPEM(filepath.Join(dir, "signed"), func(name string, content []byte) error {
		certs, err := parseCertificates(content)
		if err != nil {
			p.skip("signed/"+name, err)
			return nil
		}
		certname, err := fleet.ParseCertname(strings.TrimSuffix(name, ".pem"))
		if err == nil && string(certname) != certs[0].Subject.CommonName {
			err = fault.New(fault.Invalid, "it is the certificate of %q", certs[0].Subject.CommonName)
		}
		if err == nil && certs[0].CheckSignatureFrom(p.root.signer()) != nil {
			err = fault.New(fault.Invalid, "it was not signed by this CA")
		}
		if err != nil {
			p.skip("signed/"+name, err)
			return nil
		}
		c := certificateOf(certs[0])
		c.Current = true
		c.RevokedAt = revoked[c.Serial.String()].at
		p.certs = append(p.certs, c)
		p.count.Certificates++
		return nil
	})
}

func (p *puppetCA) skip(file string, err error) {
	p.count.Skipped = append(p.count.Skipped, file+": "+err.Error())
}

// addHistory adds what is revoked, or was issued and is still good, but has no
// file any more: it must stay on the list, or be there to be revoked by name.
func (p *puppetCA) addHistory(issued []inventoryLine, revoked map[string]revocation) {
	known := map[string]bool{p.root.signer().SerialNumber.String(): len(p.root.chain) == 1}
	for _, c := range p.certs {
		known[c.Serial.String()] = true
	}
	var old []Certificate
	for _, line := range issued {
		key := line.serial.String()
		at, isRevoked := revoked[key]
		if known[key] || !isRevoked && line.notAfter.Before(time.Now()) {
			continue
		}
		known[key] = true
		old = append(old, Certificate{
			Certname: line.name, Serial: line.serial, NotBefore: line.notBefore, NotAfter: line.notAfter,
			IssuedAt: line.notBefore, RevokedAt: at.at,
		})
	}
	for key, r := range revoked {
		if !known[key] {
			old = append(old, Certificate{Serial: r.serial, NotBefore: r.at, NotAfter: r.at, IssuedAt: r.at, RevokedAt: r.at})
		}
	}
	slices.SortFunc(old, func(a, b Certificate) int { return a.Serial.Cmp(b.Serial) })
	p.certs = append(old, p.certs...)
	p.count.Revoked = len(revoked)
}

func (p *puppetCA) readRequests(dir string) error {
	return eachPEM(filepath.Join(dir, "requests"), func(name string, content []byte) error {
		r, err := parseCSR(content)
		if err == nil && string(r.name)+".pem" != name {
			err = fault.New(fault.Invalid, "it is the request of %s", r.name)
		}
		if err != nil {
			p.skip("requests/"+name, err)
			return nil
		}
		p.requests = append(p.requests, Request{RequestHead: RequestHead{Certname: r.name, ReceivedAt: now()}, PEM: r.pem()})
		p.count.Requests++
		return nil
	})
}

// eachPEM reads the .pem files of a directory by name; a missing directory
// is an empty one.
func eachPEM(dir string, do func(name string, content []byte) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be read", dir)
	}
	if len(entries) > maxImportFiles {
		return fault.New(fault.Invalid, "%s holds more than %d files", dir, maxImportFiles)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasSuffix(entry.Name(), ".pem") {
			continue
		}
		content, err := readFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		if err := do(entry.Name(), content); err != nil {
			return err
		}
	}
	return nil
}

// refuseOtherCA keeps an import from orphaning certificates issued here.
func (a *Authority) refuseOtherCA(ctx context.Context, p *puppetCA) error {
	ours := map[string]bool{}
	for _, c := range p.certs {
		ours[c.Serial.String()+" "+string(c.Certname)] = true
	}
	current, err := a.store.Certificates(ctx)
	if err != nil {
		return err
	}
	revoked, err := a.store.Revoked(ctx)
	if err != nil {
		return err
	}
	for _, c := range append(current, revoked...) {
		if !ours[c.Serial.String()+" "+string(c.Certname)] {
			return fault.New(fault.Conflict, "this CA has issued certificates already (%s, serial number %s): import into an empty data directory",
				c.Certname, fleet.Serial(c.Serial))
		}
	}
	return nil
}

func (a *Authority) storeImport(ctx context.Context, p *puppetCA) error {
	if err := a.store.RaiseCRLNumber(ctx, p.topList); err != nil {
		return err
	}
	good := map[fleet.Certname]bool{}
	for _, c := range p.certs {
		good[c.Certname] = good[c.Certname] || c.Current && c.RevokedAt.IsZero()
	}
	for _, r := range p.requests {
		if good[r.Certname] {
			continue // it was answered
		}
		if err := a.store.SaveRequest(ctx, r); err != nil && fault.Of(err) != fault.Conflict {
			return err
		}
	}
	return a.Requests.count(ctx)
}

// takeOver makes the imported CA ours: on disk in one step, with a journal of its
// own that says all that was imported; then in the store, for which a start after a
// crash does the same; then in memory.
func (a *Authority) takeOver(ctx context.Context, p *puppetCA) error {
	if err := a.records.settle(ctx); err != nil {
		return err
	}
	if err := a.Revocations.keepUpper(p.upper); err != nil {
		return err
	}
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	p.root.identity = identity
	all := newLedger()
	for _, c := range p.certs {
		all.add(c)
	}
	journal, err := beginJournal(a.dir, p.root.key, identity, a.records.journal.last, all.rows())
	if err != nil {
		return err
	}
	if err := saveCA(a.dir, p.root); err != nil {
		return err
	}
	former := a.records.journal
	a.records.journal = journal
	if err := a.store.RestateCA(ctx, journal.last, all.rows()); err != nil {
		return err
	}
	if err := errors.Join(journal.settled(), former.file.Close(), removeFile(a.dir, filepath.Base(former.path))); err != nil {
		return err
	}
	a.ca.Store(p.root)
	a.issuer.reserved.addCA(p.root)
	return a.Revocations.renew(ctx, true)
}

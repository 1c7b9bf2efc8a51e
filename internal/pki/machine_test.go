package pki_test

import (
	"context"
	"crypto/x509"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

// model is what a fleet of two names and two keys each must look like.
type model struct {
	state map[fleet.Certname]pki.State // absent: unknown
	key   map[fleet.Certname]int       // of the request or certificate
	certs map[string]*issued           // all there ever were, by serial number
}

type issued struct {
	name    fleet.Certname
	cert    *x509.Certificate
	revoked bool
}

// TestLifeOfANameHoldsItsPromises runs random orders over the states in the package
// comment, with restarts between, and compares everything that can be seen.
func TestLifeOfANameHoldsItsPromises(t *testing.T) {
	t.Parallel()
	names := []fleet.Certname{"web1", "web2"}
	requests := map[fleet.Certname][2][]byte{}
	for _, name := range names {
		requests[name] = [2][]byte{pkitest.CSR{Name: string(name)}.PEM(t), pkitest.CSR{Name: string(name)}.PEM(t)}
	}
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		cfg := pki.Config{Dir: filepath.Join(dir, strconv.Itoa(runs)), AllowRenewal: true}
		ctx, store := context.Background(), pkitest.NewMemory()
		a := reopen(t, cfg, store)
		m := &model{map[fleet.Certname]pki.State{}, map[fleet.Certname]int{}, map[string]*issued{}}
		name := rapid.SampledFrom(names)
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				who, key := name.Draw(t, "name"), rapid.IntRange(0, 1).Draw(t, "key")
				signed, err := a.Requests.Submit(ctx, who, requests[who][key], "")
				m.submit(t, who, key, signed, err)
			},
			"sign": func(t *rapid.T) {
				who := name.Draw(t, "name")
				c, err := a.Requests.Sign(ctx, who, 0)
				m.sign(t, who, c, err)
			},
			"revoke": func(t *rapid.T) {
				who := name.Draw(t, "name")
				m.revoke(t, who, a.Revoke(ctx, who))
			},
			"clean": func(t *rapid.T) {
				who := name.Draw(t, "name")
				unknown, err := a.Clean(ctx, who)
				if err != nil || (len(unknown) == 1) != m.unknown(who) {
					t.Fatalf("clean %s: unknown %v, %v", who, unknown, err)
				}
				m.markRevoked(who)
				delete(m.state, who)
			},
			"forget": func(t *rapid.T) {
				who := name.Draw(t, "name")
				_, known := m.state[who]
				if err := a.Forget(ctx, who); (err == nil) != known {
					t.Fatalf("forget %s: %v", who, err)
				}
				delete(m.state, who)
			},
			"renew": func(t *rapid.T) { m.renew(ctx, t, a) },
			"restart": func(t *rapid.T) {
				a = reopen(t, cfg, store)
			},
			"": func(t *rapid.T) { m.compare(ctx, t, a) },
		})
	})
}

func reopen(t *rapid.T, cfg pki.Config, store pki.Store) *pki.Authority {
	a, err := pki.Open(context.Background(), cfg, store, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// unknown is true if cleaning has nothing to do: no row, and no forgotten
// certificate that is still good.
func (m *model) unknown(who fleet.Certname) bool {
	_, known := m.state[who]
	return !known && !m.good(who)
}

func (m *model) good(who fleet.Certname) bool {
	for _, c := range m.certs {
		if c.name == who && !c.revoked {
			return true
		}
	}
	return false
}

func (m *model) markRevoked(who fleet.Certname) {
	for _, c := range m.certs {
		c.revoked = c.revoked || c.name == who
	}
}

func (m *model) submit(t *rapid.T, who fleet.Certname, key int, signed bool, err error) {
	switch state, known := m.state[who]; {
	case !known:
		m.state[who], m.key[who] = pki.Requested, key
		if signed || err != nil {
			t.Fatalf("new request: signed %t, %v", signed, err)
		}
	case state == pki.Revoked || m.key[who] != key:
		if err == nil || fault.Of(err) != fault.Conflict {
			t.Fatalf("%s name took a request: %v", state, err)
		}
	case signed != (state == pki.Signed) || err != nil:
		t.Fatalf("repeated request of %s name: signed %t, %v", state, signed, err)
	}
}

func (m *model) sign(t *rapid.T, who fleet.Certname, c pki.Certificate, err error) {
	if may := m.state[who] == pki.Requested; may != (err == nil) {
		t.Fatalf("sign %s name: %v", m.state[who], err)
	}
	if err == nil {
		m.state[who] = pki.Signed
		m.add(t, c)
	}
}

func (m *model) add(t *rapid.T, c pki.Certificate) {
	key := c.Serial.String()
	if m.certs[key] != nil {
		t.Fatalf("serial number %s was used before", key)
	}
	cert, err := x509.ParseCertificate(decodePEM(c.PEM))
	if err != nil {
		t.Fatal(err)
	}
	m.certs[key] = &issued{name: c.Certname, cert: cert}
}

func (m *model) revoke(t *rapid.T, who fleet.Certname, err error) {
	state, known := m.state[who]
	may := state == pki.Signed || state == pki.Revoked || m.good(who)
	if may != (err == nil) {
		t.Fatalf("revoke %s name (known %t): %v", state, known, err)
	}
	m.markRevoked(who)
	if state == pki.Signed {
		m.state[who] = pki.Revoked
	}
}

func (m *model) renew(ctx context.Context, t *rapid.T, a *pki.Authority) {
	serials := slices.Sorted(maps.Keys(m.certs))
	if len(serials) == 0 {
		return // nothing to renew yet
	}
	old := m.certs[rapid.SampledFrom(serials).Draw(t, "serial")]
	c, err := a.Renew(ctx, old.cert)
	switch {
	case old.revoked && err == nil:
		t.Fatal("a revoked certificate was renewed")
	case m.state[old.name] != pki.Signed && err == nil:
		t.Fatal("a forgotten certificate was renewed")
	case err == nil:
		m.add(t, c)
	}
}

func (m *model) compare(ctx context.Context, t *rapid.T, a *pki.Authority) {
	entries, err := a.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[fleet.Certname]pki.State{}
	for _, e := range entries {
		seen[e.Certname] = e.State
	}
	if !maps.Equal(seen, m.state) {
		t.Fatalf("list shows %v, want %v", seen, m.state)
	}
	text, _ := a.Revocations.CRL()
	list, err := x509.ParseRevocationList(decodePEM(text))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, entry := range list.RevokedCertificateEntries {
		listed[entry.SerialNumber.String()] = true
	}
	for serial, c := range m.certs {
		if refused := a.Revocations.CheckPeer(c.cert) != nil; refused != c.revoked || listed[serial] != c.revoked {
			t.Fatalf("serial %s: refused %t, listed %t, want %t", serial, refused, listed[serial], c.revoked)
		}
	}
}

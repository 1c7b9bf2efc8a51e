package pki_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

// house is several authorities of one CA, each in a directory of its own.
type house struct {
	store   *pkitest.Memory
	secrets *pkitest.Secrets
	dirs    string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{store: pkitest.NewMemory(), secrets: new(pkitest.Secrets), dirs: t.TempDir()}
}

func (h *house) config(name string) pki.Config {
	return pki.Config{Dir: filepath.Join(h.dirs, name), Autosign: allowEvery, AllowRenewal: true, Shared: h.secrets}
}

func (h *house) open(t *testing.T, name string) *pki.Authority {
	t.Helper()
	return open(t, h.config(name), h.store)
}

// journal is what a directory's journal says of the CA, without notes of what is settled.
func (h *house) journal(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(h.dirs, name, "journal-*.jsonl"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%s has the journals %v", name, found)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(readFile(t, found[0]))) {
		if !strings.HasPrefix(line, `{"done"`) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// agree checks that the directories hold the same CA, with the same journal.
func (h *house) agree(t *testing.T, names ...string) {
	t.Helper()
	key, journal := string(readFile(t, filepath.Join(h.dirs, names[0], "ca.pem"))), h.journal(t, names[0])
	for _, name := range names[1:] {
		if string(readFile(t, filepath.Join(h.dirs, name, "ca.pem"))) != key {
			t.Errorf("%s has another CA than %s", name, names[0])
		}
		if h.journal(t, name) != journal {
			t.Errorf("the journal of %s is not that of %s", name, names[0])
		}
	}
}

// Any of several authorities signs and revokes, and all know it at once when they are asked, and within seconds when they are not.
func TestSeveralAuthoritiesAreOneCA(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b := h.open(t, "a"), h.open(t, "b")
	submit(t, a, pkitest.CSR{Name: "web1"})
	submit(t, b, pkitest.CSR{Name: "web2"})
	must(t, a.Refresh(t.Context()))
	h.agree(t, "a", "b")
	one, two := certificate(t, b, "web1"), certificate(t, a, "web2")
	must(t, b.Revoke(t.Context(), "web1"))
	must(t, a.Refresh(t.Context()))
	for name, ca := range map[string]*pki.Authority{"a": a, "b": b} {
		wantKind(t, ca.Revocations.CheckPeer(one), fault.Denied)
		must(t, ca.Revocations.CheckPeer(two))
		for cert, good := range map[string]bool{"web1": false, "web2": true} {
			c, err := ca.Certificate(t.Context(), fleet.Certname(cert))
			must(t, err)
			if out, ok := verified(t, ca, c.PEM); ok != good {
				t.Errorf("openssl says of %s by the list of %s: %s", cert, name, out)
			}
		}
	}
	h.agree(t, "a", "b")
	c := h.open(t, "c") // a late one
	wantKind(t, c.Revocations.CheckPeer(one), fault.Denied)
	submit(t, c, pkitest.CSR{Name: "web3"})
	must(t, a.Refresh(t.Context()))
	must(t, b.Refresh(t.Context()))
	h.agree(t, "a", "b", "c")
	again := h.open(t, "a")
	submit(t, again, pkitest.CSR{Name: "web4"})
}

// Requests that one of several let in are cleaned by any of them.
func TestRequestsThatWaitAtOthersAreCleaned(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var all []*pki.Authority
	for _, name := range []string{"a", "b"} {
		cfg := h.config(name)
		cfg.Autosign = pki.AutosignPolicy{}
		all = append(all, open(t, cfg, h.store))
	}
	submitFrom(t, all[0], "web1", "192.0.2.1")
	submitFrom(t, all[1], "web2", "192.0.2.2")
	submitFrom(t, all[0], "web3", "192.0.2.2")
	dropped, err := all[0].Requests.Clean(t.Context(), "192.0.2.2")
	must(t, err)
	if got := waiting(t, all[1]); dropped != 2 || got != "web1" {
		t.Errorf("dropped %d of an address, %q wait", dropped, got)
	}
	dropped, err = all[1].Requests.Clean(t.Context(), "")
	must(t, err)
	if got := waiting(t, all[0]); dropped != 1 || got != "" {
		t.Errorf("dropped %d, %q wait", dropped, got)
	}
}

// What one revokes the others refuse within five seconds, and at once when they get a hint; their lists say so, and whoever has a connection is told.
func TestOthersHearOfARevocation(t *testing.T) {
	t.Parallel()
	t.Run("without a hint", func(t *testing.T) {
		t.Parallel()
		othersHear(t, newHouse(t), func(*pki.Authority) {}, 3*time.Second)
	})
	t.Run("with one", func(t *testing.T) {
		t.Parallel()
		othersHear(t, newHouse(t), (*pki.Authority).Hint, 0)
	})
}

func othersHear(t *testing.T, h *house, hint func(*pki.Authority), within time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := h.open(t, "a"), h.open(t, "b")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		told := make(chan []*big.Int, 1)
		b.Revocations.OnRevoke(func(serials []*big.Int) { told <- serials })
		submit(t, a, pkitest.CSR{Name: "web1"})
		cert := certificate(t, a, "web1")
		<-time.After(17 * time.Second)
		revoked := time.Now()
		must(t, a.Revoke(t.Context(), "web1"))
		hint(b)
		if serials := <-told; len(serials) != 1 || serials[0].Cmp(cert.SerialNumber) != 0 {
			t.Errorf("it is told of %v", serials)
		}
		synctest.Wait()
		if took := time.Since(revoked); took > within {
			t.Errorf("the other one heard of it after %s", took)
		}
		wantKind(t, b.Revocations.CheckPeer(cert), fault.Denied)
		if got := list(t, b).RevokedCertificateEntries; len(got) != 1 {
			t.Errorf("the list of the other one: %v", got)
		}
		stop()
		must(t, <-done)
	})
}

// A server's names are reserved on all servers, and exchanging its certificate revokes only its own.
func TestServersOfOneCAHaveCertificatesOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b := h.open(t, "a"), h.open(t, "b")
	_, err := a.Server.Certificate(t.Context(), []string{"pup-a.test"})
	must(t, err)
	ofB, err := b.Server.Certificate(t.Context(), []string{"pup-b.test"})
	must(t, err)
	must(t, a.Refresh(t.Context()))
	_, err = a.Requests.Submit(t.Context(), "pup-b.test", pkitest.CSR{Name: "pup-b.test"}.PEM(t), "")
	wantKind(t, err, fault.Denied)
	fresh, err := a.Server.Rotate(t.Context(), []string{"pup-a.test"})
	must(t, err)
	must(t, a.Server.RevokeFormer(t.Context(), fresh.Leaf))
	if got := list(t, a).RevokedCertificateEntries; len(got) != 1 || got[0].SerialNumber.Cmp(ofB.Leaf.SerialNumber) == 0 {
		t.Errorf("revoked are %v", got)
	}
}

// A directory with another CA is refused, and so is one whose CA went its own way; both are told what to do.
func TestAStrangeCAIsNotShared(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.open(t, "a")
	submit(t, a, pkitest.CSR{Name: "web1"})
	own := h.config("own")
	own.Shared = nil
	open(t, own, pkitest.NewMemory())
	_, err := pki.Open(t.Context(), h.config("own"), h.store, quiet)
	wantKind(t, err, fault.Conflict)
	if !strings.Contains(err.Error(), "another CA than the one that the servers of this database share") {
		t.Errorf("it is told: %v", err)
	}
	b := h.open(t, "b")
	backup := h.store.Clone()
	submit(t, b, pkitest.CSR{Name: "web2"})
	_, err = pki.Open(t.Context(), h.config("b"), backup, quiet) // an older database
	wantKind(t, err, fault.Conflict)
	if !strings.Contains(err.Error(), "tutti ca adopt") || !strings.Contains(err.Error(), "move this server's directory") {
		t.Errorf("it is told: %v", err)
	}
	_, err = pki.Adopt(t.Context(), h.config("b"), backup, false, quiet)
	must(t, err)
	h.store = backup
	adopted := h.open(t, "b")
	if names := certificate(t, adopted, "web2").Subject.CommonName; names != "web2" {
		t.Errorf("after the adoption: %s", names)
	}
	_, err = pki.Open(t.Context(), h.config("a"), h.store, quiet)
	wantKind(t, err, fault.Conflict)
	must(t, os.Rename(filepath.Join(h.dirs, "a"), filepath.Join(h.dirs, "away")))
	h.open(t, "a")
	h.agree(t, "a", "b")
}

// lossy is a store whose answers to changes may be lost, or which may not hear of them.
type lossy struct {
	pki.Store
	deaf, mute atomic.Bool
}

var errLost = fault.Wrap(fault.Unavailable, errors.New("lost"), "the store does not answer")

func (l *lossy) ChangeCA(ctx context.Context, c pki.Change) error {
	if l.deaf.Load() {
		return errLost
	}
	err := l.Store.ChangeCA(ctx, c)
	if l.mute.Load() {
		return errLost
	}
	return err
}

// A change of which nobody was told is given up when others went on without it, and stands when the store has it.
func TestAChangeWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deaf, mute, restart bool
		stands              bool
	}{
		"not heard":                 {deaf: true},
		"not heard, then a restart": {deaf: true, restart: true},
		"not answered":              {mute: true, stands: true},
		"not answered, a restart":   {mute: true, restart: true, stands: true},
	} {
		for _, others := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, others went on %t", name, others), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				way := &lossy{Store: h.store}
				a, err := pki.Open(t.Context(), h.config("a"), way, quiet)
				must(t, err)
				b := h.open(t, "b")
				submit(t, a, pkitest.CSR{Name: "web1"})
				cert := certificate(t, a, "web1")
				way.deaf.Store(c.deaf)
				way.mute.Store(c.mute)
				wantKind(t, a.Revoke(t.Context(), "web1"), fault.Unavailable)
				way.deaf.Store(false)
				way.mute.Store(false)
				if others {
					submit(t, b, pkitest.CSR{Name: "web2"})
				}
				if c.restart {
					a = h.open(t, "a")
				}
				must(t, a.Refresh(t.Context()))
				must(t, b.Refresh(t.Context()))
				h.agree(t, "a", "b")
				stands := c.stands || !others // nobody came first: the journal's line is offered again
				for name, ca := range map[string]*pki.Authority{"a": a, "b": b} {
					if err := ca.Revocations.CheckPeer(cert); (err != nil) != stands {
						t.Errorf("%s says of the certificate: %v, want it revoked: %t", name, err, stands)
					}
				}
				must(t, a.Revoke(t.Context(), "web1"))
				must(t, b.Refresh(t.Context()))
				wantKind(t, b.Revocations.CheckPeer(cert), fault.Denied)
				h.agree(t, "a", "b")
			})
		}
	}
}

// A server that was alone, and was killed before the store heard of its last change, shares its whole journal.
func TestAChangeOfOneWhoWasAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	way, alone := &lossy{Store: h.store}, h.config("a")
	alone.Shared = nil
	a, err := pki.Open(t.Context(), alone, way, quiet)
	must(t, err)
	submit(t, a, pkitest.CSR{Name: "web1"})
	cert := certificate(t, a, "web1")
	way.deaf.Store(true)
	wantKind(t, a.Revoke(t.Context(), "web1"), fault.Unavailable)
	h.open(t, "a")
	b := h.open(t, "b")
	wantKind(t, b.Revocations.CheckPeer(cert), fault.Denied)
	h.agree(t, "a", "b")
}

// Whoever is alone again, and was not asked last, has what the others did: as a directory from a backup of one of several servers.
func TestOneOfSeveralGoesOnAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b := h.open(t, "a"), h.open(t, "b")
	submit(t, a, pkitest.CSR{Name: "web1"})
	cert := certificate(t, a, "web1")
	must(t, b.Revoke(t.Context(), "web1"))
	alone := h.config("a")
	alone.Shared = nil
	wantKind(t, open(t, alone, h.store).Revocations.CheckPeer(cert), fault.Denied)
	h.agree(t, "a", "b")
}

// A last change is given up only for others' changes of the same CA from the same place.
func TestALastChangeIsNotGivenUpForOtherRecords(t *testing.T) {
	t.Parallel()
	h, other := newHouse(t), newHouse(t)
	way := &lossy{Store: h.store}
	a, err := pki.Open(t.Context(), h.config("a"), way, quiet)
	must(t, err)
	submit(t, a, pkitest.CSR{Name: "web1"})
	way.deaf.Store(true)
	wantKind(t, a.Revoke(t.Context(), "web1"), fault.Unavailable)
	strange := other.open(t, "a")
	for i := range 5 {
		submit(t, strange, pkitest.CSR{Name: fmt.Sprint("web", i)})
	}
	before := h.journal(t, "a")
	_, err = pki.Open(t.Context(), h.config("a"), other.store, quiet)
	wantKind(t, err, fault.Conflict)
	if h.journal(t, "a") != before {
		t.Error("it was given up")
	}
}

// Many ask several authorities for the same names at once: each name has one certificate, a token signs once, and all journals agree.
func TestAuthoritiesInARace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var all []*pki.Authority
	names := []string{"a", "b", "c"}
	for _, name := range names {
		all = append(all, h.open(t, name))
	}
	var requests [12][]byte
	for i := range requests {
		requests[i] = pkitest.CSR{Name: fmt.Sprint("web", i)}.PEM(t)
	}
	var asking sync.WaitGroup
	for at, ca := range all {
		asking.Go(func() {
			for i := range requests {
				name := fleet.Certname(fmt.Sprint("web", i))
				if _, err := ca.Requests.Submit(t.Context(), name, requests[i], ""); err != nil && !fault.Is(err, fault.Conflict) { // another one revoked it
					t.Errorf("%s asks %s: %v", name, names[at], err)
				}
				if i%4 == at {
					if err := ca.Revoke(t.Context(), name); err != nil {
						t.Errorf("%s is revoked by %s: %v", name, names[at], err)
					}
				}
			}
		})
	}
	asking.Wait()
	history, err := h.store.History(t.Context())
	must(t, err)
	if len(history) != len(requests) {
		t.Errorf("%d certificates for %d names", len(history), len(requests))
	}
	for _, ca := range all {
		must(t, ca.Refresh(t.Context()))
		if got := len(list(t, ca).RevokedCertificateEntries); got != 9 {
			t.Errorf("a list has %d entries, want 9", got)
		}
	}
	h.agree(t, names...)
	var numbers []string
	for _, ca := range all {
		numbers = append(numbers, list(t, ca).Number.String())
	}
	if slices.Sort(numbers); len(slices.Compact(numbers)) != len(all) {
		t.Errorf("lists share numbers: %v", numbers)
	}
}

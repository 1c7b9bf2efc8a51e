package pki_test

import (
	"context"
	"crypto"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

func TestTheOldestOfTheAddressWithMostMakesRoom(t *testing.T) {
	t.Parallel()
	cfg, store := pki.Config{Dir: t.TempDir(), MaxWaiting: 5, MaxWaitingOfOne: 3}, pkitest.NewMemory()
	a := open(t, cfg, store)
	for _, c := range []struct{ name, from, want string }{
		{"a1", "192.0.2.1", "a1"},
		{"a2", "192.0.2.1", "a1 a2"},
		{"a3", "192.0.2.1", "a1 a2 a3"},
		{"a4", "192.0.2.1", "a2 a3 a4"}, // no more than three of one address
		{"b1", "::ffff:192.0.2.2", "a2 a3 a4 b1"},
		{"c1", "2001:db8::1", "a2 a3 a4 b1 c1"},
		{"c2", "2001:db8::ffff:2", "a3 a4 b1 c1 c2"}, // no more than five: one of those who have most
		{"d1", "192.0.2.4", "a4 b1 c1 c2 d1"},        // two have as many: the one that has waited longest
		{"a4", "192.0.2.9", "a4 b1 c1 c2 d1"},        // with another key: it is refused
		{"b1", "192.0.2.9", "a4 b1 c1 c2 d1"},
	} {
		_, err := a.Requests.Submit(t.Context(), fleet.Certname(c.name), pkitest.CSR{Name: c.name}.PEM(t), c.from)
		if err != nil && fault.Of(err) != fault.Conflict {
			t.Fatal(err)
		}
		if got := waiting(t, a); got != c.want {
			t.Errorf("after %s from %s wait %q, want %q", c.name, c.from, got, c.want)
		}
	}
	_, err := a.Requests.Sign(t.Context(), "b1", 0) // signed, deleted and cleaned ones leave room
	must(t, err)
	must(t, a.Requests.Delete(t.Context(), "d1"))
	_, err = a.Clean(t.Context(), "a4")
	must(t, err)
	a = open(t, cfg, store) // a restart counts again
	for _, name := range []fleet.Certname{"e1", "f1", "g1"} {
		submitFrom(t, a, name, string(name))
	}
	if got := waiting(t, a); got != "c1 c2 e1 f1 g1" {
		t.Errorf("at the end wait %q", got)
	}
	dropped, err := a.Requests.Clean(t.Context(), "2001:db8::7")
	must(t, err)
	if got := waiting(t, a); dropped != 2 || got != "e1 f1 g1" {
		t.Errorf("dropped %d of an IPv6 network, %q wait", dropped, got)
	}
	dropped, err = a.Requests.Clean(t.Context(), "")
	must(t, err)
	if got := waiting(t, a); dropped != 3 || got != "" {
		t.Errorf("dropped %d, %q wait", dropped, got)
	}
	certificate(t, a, "b1") // no certificate is touched
}

func TestRequestsExpire(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := open(t, pki.Config{Dir: dir, RequestTTL: time.Hour}, pkitest.NewMemory())
		submitFrom(t, a, "web1", "192.0.2.1")
		<-time.After(30 * time.Minute)
		submitFrom(t, a, "web2", "192.0.2.1")
		<-time.After(31 * time.Minute)
		must(t, a.Refresh(t.Context()))
		if got := waiting(t, a); got != "web2" {
			t.Errorf("%q wait", got)
		}
		submitFrom(t, a, "web1", "192.0.2.1") // it may come again, with another key, too
	})
}

// stuckStore keeps every request that is only left waiting from being stored.
type stuckStore struct {
	pki.Store
	entered chan<- struct{}
	free    <-chan struct{}
}

func (s stuckStore) ReplaceRequest(ctx context.Context, r pki.Request) error {
	if strings.HasPrefix(string(r.Certname), "flood") {
		select {
		case s.entered <- struct{}{}:
		default:
		}
		<-s.free
	}
	return s.Store.ReplaceRequest(ctx, r)
}

// A flood from ten addresses, none of whose requests gets anywhere: a token, a name on the
// list and a person's signature wait behind none of it.
func TestAFloodHoldsUpNobodyWhoIsSigned(t *testing.T) {
	t.Parallel()
	const addresses, each = 10, 40
	ctx := t.Context()
	entered, free := make(chan struct{}, addresses*each), make(chan struct{})
	store := stuckStore{pkitest.NewMemory(), entered, free}
	a := open(t, pki.Config{MaxWaiting: addresses * each / 2, Autosign: pki.AutosignPolicy{Names: []string{"listed"}}}, store)
	submitFrom(t, a, "byhand", "198.51.100.1")
	token, err := a.Requests.NewJoinToken(ctx, "", time.Hour)
	must(t, err)
	var flood sync.WaitGroup
	text := pkitest.CSR{Name: "flooded"}.PEM(t)
	for n := range addresses * each {
		flood.Go(func() {
			name := fmt.Sprintf("flood%d", n)
			_, _ = a.Requests.Submit(ctx, fleet.Certname(name), pkitest.CSR{Name: name}.PEM(t), fmt.Sprintf("192.0.2.%d", n%addresses))
			_, _ = a.Requests.Submit(ctx, "flooded", text, "192.0.2.1")
		})
	}
	<-entered
	if !submit(t, a, pkitest.CSR{Name: "listed"}) || !submit(t, a, pkitest.CSR{Name: "holder", Challenge: token}) {
		t.Error("not signed at once")
	}
	_, err = a.Requests.Sign(ctx, "byhand", 0)
	must(t, err)
	close(free)
	flood.Wait()
	heads, err := store.RequestHeads(ctx)
	must(t, err)
	if len(heads) != addresses*each/2 {
		t.Errorf("%d requests wait, want the limit", len(heads))
	}
}

// A stranger who was first with a name does not keep the holder of its token out.
func TestATokenGoesBeforeAStrangersRequest(t *testing.T) {
	t.Parallel()
	a := open(t, pki.Config{}, pkitest.NewMemory())
	submitFrom(t, a, "web1", "192.0.2.1")
	token, err := a.Requests.NewJoinToken(t.Context(), "web1", time.Hour)
	must(t, err)
	key := pkitest.NewKey(t)
	if !submit(t, a, pkitest.CSR{Name: "web1", Key: key, Challenge: token}) {
		t.Fatal("the token does not sign")
	}
	if public, ok := key.Public().(interface{ Equal(x crypto.PublicKey) bool }); ok && !public.Equal(certificate(t, a, "web1").PublicKey) {
		t.Error("the stranger's key was signed")
	}
}

package pkitest

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

func certificateRoundTrip(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	_, err := s.Certificate(ctx, "web1")
	wantKind(t, err, fault.NotFound)
	want := certificate("web1", 1)
	want.Serial.Lsh(want.Serial, 155)
	must(t, trySave(t, s, want))
	got, err := s.Certificate(ctx, "web1")
	must(t, err)
	wantSame(t, got, want)
}

func certificateEndsRequest(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.SaveRequest(ctx, request("web1", "one")))
	must(t, s.SaveRequest(ctx, request("web2", "two")))
	must(t, trySave(t, s, certificate("web1", 1)))
	_, err := s.Request(ctx, "web1")
	wantKind(t, err, fault.NotFound)
	_, err = s.Request(ctx, "web2")
	must(t, err)
}

func certificateReplaced(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, trySave(t, s, certificate("web1", 1)))
	must(t, trySave(t, s, certificate("web1", 2)))
	got, err := s.Certificate(ctx, "web1")
	must(t, err)
	wantSame(t, got, certificate("web1", 2))
	all, err := s.Certificates(ctx)
	must(t, err)
	wantSame(t, all, []pki.Certificate{certificate("web1", 2)})
}

func certificateOld(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.SaveRequest(ctx, request("web1", "one")))
	old := certificate("web1", 1)
	old.Current, old.RevokedAt, old.PEM = false, noon, nil
	must(t, trySave(t, s, old))
	nameless := certificate("", 2)
	nameless.Current, nameless.RevokedAt, nameless.PEM = false, noon, nil
	must(t, trySave(t, s, nameless))
	_, err := s.Certificate(ctx, "web1")
	wantKind(t, err, fault.NotFound)
	_, err = s.Request(ctx, "web1")
	must(t, err)
	revoked, err := s.Revoked(ctx)
	must(t, err)
	if diff := cmp.Diff([]pki.Certificate{old, nameless}, revoked, compare, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
}

func certificateSerialOnce(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.SaveRequest(ctx, request("web2", "two")))
	must(t, trySave(t, s, certificate("web1", 1)))
	wantKind(t, trySave(t, s, certificate("web2", 1)), fault.Conflict)
	_, err := s.Request(ctx, "web2") // a refused save leaves no trace
	must(t, err)
}

func certificatesByName(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	for i, name := range []fleet.Certname{"web2", "db1", "web10"} {
		must(t, trySave(t, s, certificate(name, int64(i+1))))
	}
	got, err := s.Certificates(ctx)
	must(t, err)
	wantSame(t, got, []pki.Certificate{certificate("db1", 2), certificate("web10", 3), certificate("web2", 1)})
}

func revokeOnce(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	none, err := s.Unrevoked(ctx, "web1")
	must(t, err)
	if len(none) != 0 {
		t.Errorf("an unknown name has %d certificates", len(none))
	}
	must(t, trySave(t, s, certificate("web1", 9)))
	must(t, trySave(t, s, certificate("web1", 10)))
	must(t, trySave(t, s, certificate("web2", 11)))
	old, current := certificate("web1", 9), certificate("web1", 10)
	old.Current = false
	good, err := s.Unrevoked(ctx, "web1")
	must(t, err)
	wantSame(t, good, []pki.Certificate{old, current})
	must(t, revoke(t, s, noon, 9, 10, 99)) // an unknown number changes nothing
	must(t, revoke(t, s, noon.Add(time.Hour), 10))
	old.RevokedAt, current.RevokedAt = noon, noon
	none, err = s.Unrevoked(ctx, "web1")
	must(t, err)
	if len(none) != 0 {
		t.Errorf("%d certificates are not revoked", len(none))
	}
	got, err := s.Certificate(ctx, "web1") // still shown, as revoked, at the first time
	must(t, err)
	wantSame(t, got, current)
	revoked, err := s.Revoked(ctx)
	must(t, err)
	wantSame(t, revoked, []pki.Certificate{old, current})
}

func changesInTurn(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	at, err := s.CAAnchor(ctx)
	must(t, err)
	wantSame(t, at, pki.Anchor{})
	one := pki.Anchor{Identity: "us", Seq: 1, Chain: "a"}
	two := pki.Anchor{Identity: "us", Seq: 2, Chain: "b"}
	first := pki.Change{After: one, At: noon, Issued: []pki.Certificate{certificate("web1", 1)}}
	must(t, s.ChangeCA(ctx, first))
	must(t, s.ChangeCA(ctx, first)) // again is fine
	for _, before := range []pki.Anchor{{}, two, {Identity: "them", Seq: 1, Chain: "a"}, {Identity: "us", Seq: 1, Chain: "x"}} {
		wrong := pki.Change{Before: before, After: pki.Anchor{Identity: "us", Seq: 9}, At: noon, Revoked: []*big.Int{big.NewInt(1)}}
		wantKind(t, s.ChangeCA(ctx, wrong), fault.Conflict)
	}
	must(t, s.ChangeCA(ctx, pki.Change{Before: one, After: two, At: noon, Revoked: []*big.Int{big.NewInt(1)}}))
	wantKind(t, s.ChangeCA(ctx, first), fault.Conflict)
	at, err = s.CAAnchor(ctx)
	must(t, err)
	wantSame(t, at, two)
}

func changeWhole(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, trySave(t, s, certificate("web1", 1)))
	before, err := s.CAAnchor(ctx)
	must(t, err)
	wantKind(t, trySave(t, s, certificate("web2", 2), certificate("web3", 1)), fault.Conflict)
	_, err = s.Certificate(ctx, "web2")
	wantKind(t, err, fault.NotFound)
	after, err := s.CAAnchor(ctx)
	must(t, err)
	wantSame(t, after, before)
}

func restated(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, trySave(t, s, certificate("web1", 1), certificate("web2", 2)))
	must(t, s.SaveRequest(ctx, request("web9", "one")))
	must(t, s.SaveToken(ctx, token("free", "")))
	to := pki.Anchor{Identity: "them", Seq: 77, Chain: "c"}
	gone, good := certificate("web3", 1), certificate("web4", 4)
	gone.Current, gone.RevokedAt = false, noon
	must(t, s.RestateCA(ctx, to, []pki.Certificate{gone, good}))
	all, err := s.History(ctx)
	must(t, err)
	wantSame(t, all, []pki.Certificate{gone, good})
	at, err := s.CAAnchor(ctx)
	must(t, err)
	wantSame(t, at, to)
	_, err = s.Request(ctx, "web9")
	must(t, err)
	must(t, s.DropTokens(ctx))
	_, err = s.Token(ctx, token("free", "").Hash)
	wantKind(t, err, fault.NotFound)
}

func revokedByNumber(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	for _, serial := range []int64{10, 9, 256, 1000, 20} {
		name := fleet.Certname("n" + big.NewInt(serial).String())
		must(t, trySave(t, s, certificate(name, serial)))
		if serial != 20 {
			must(t, revoke(t, s, noon, serial))
		}
	}
	revoked, err := s.Revoked(ctx)
	must(t, err)
	var got []int64
	for _, c := range revoked {
		got = append(got, c.Serial.Int64())
	}
	wantSame(t, got, []int64{9, 10, 256, 1000})
}

func serverCertificates(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	own := certificate("web1", 7)
	own.Current, own.Server = false, true
	must(t, s.SaveRequest(ctx, request("web1", "one")))
	must(t, trySave(t, s, own))
	must(t, trySave(t, s, certificate("web2", 8)))
	wantKind(t, trySave(t, s, certificate("web3", 7)), fault.Conflict) // its number is taken
	servers, err := s.ServerCertificates(ctx)
	must(t, err)
	wantSame(t, servers, []pki.Certificate{own})
	_, err = s.Certificate(ctx, "web1")
	wantKind(t, err, fault.NotFound)
	_, err = s.Request(ctx, "web1")
	must(t, err)
	good, err := s.Unrevoked(ctx, "web1")
	must(t, err)
	if len(good) != 0 {
		t.Errorf("a server's certificate goes with its name: %v", good)
	}
}

func endedOnes(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	good, revoked, over, again := certificate("good", 1), certificate("revoked", 2), certificate("over", 3), certificate("again", 4)
	revoked.RevokedAt, again.RevokedAt = noon, noon
	over.NotAfter = noon.Add(-time.Hour)
	must(t, trySave(t, s, good, revoked, over, again))
	must(t, trySave(t, s, certificate("again", 5)))
	ended, err := s.Ended(ctx, []fleet.Certname{"good", "revoked", "over", "again", "nobody"}, noon)
	must(t, err)
	wantSame(t, ended, map[fleet.Certname]pki.Ended{
		"revoked": {RevokedAt: noon, NotAfter: revoked.NotAfter}, "over": {NotAfter: over.NotAfter},
	})
	if text := ended["revoked"].Told("revoked"); ended["revoked"].State() != "revoked" || !strings.Contains(text, "tutti ca clean revoked") ||
		ended["over"].State() != "expired" {
		t.Errorf("people are told %q", text)
	}
}

func forget(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.SaveRequest(ctx, request("web1", "one")))
	must(t, forgotten(t, s, "web1"))
	_, err := s.Request(ctx, "web1")
	wantKind(t, err, fault.NotFound)

	must(t, trySave(t, s, certificate("web1", 1)))
	must(t, forgotten(t, s, "web1", "web7"))
	_, err = s.Certificate(ctx, "web1")
	wantKind(t, err, fault.NotFound)
	must(t, s.SaveRequest(ctx, request("web1", "two")))

	good, err := s.Unrevoked(ctx, "web1") // a forgotten one can still be revoked
	must(t, err)
	if len(good) != 1 || good[0].Serial.Int64() != 1 {
		t.Errorf("web1 has %v, want serial number 1", good)
	}
}

// Save stores certificates as a change of a CA's does.
func Save(t *testing.T, s pki.Store, certs ...pki.Certificate) {
	t.Helper()
	must(t, trySave(t, s, certs...))
}

func trySave(t *testing.T, s pki.Store, certs ...pki.Certificate) error {
	t.Helper()
	return apply(t, s, pki.Change{At: noon, Issued: certs})
}

func revoke(t *testing.T, s pki.Store, at time.Time, serials ...int64) error {
	t.Helper()
	c := pki.Change{At: at}
	for _, serial := range serials {
		c.Revoked = append(c.Revoked, big.NewInt(serial))
	}
	return apply(t, s, c)
}

func forgotten(t *testing.T, s pki.Store, names ...fleet.Certname) error {
	t.Helper()
	return apply(t, s, pki.Change{At: noon, Forgotten: names})
}

// apply puts a change behind what the store has.
func apply(t *testing.T, s pki.Store, c pki.Change) error {
	t.Helper()
	at, err := s.CAAnchor(t.Context())
	must(t, err)
	c.Before = at
	c.After = pki.Anchor{Identity: "suite", Seq: at.Seq + 1, Chain: at.Chain + "x"}
	return s.ChangeCA(t.Context(), c)
}

package pkitest

import (
	"context"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// RunStore checks that a store keeps every promise of the port. open returns an
// empty store each time.
func RunStore(t *testing.T, open func(t *testing.T) pki.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s pki.Store)
	}{
		{"request comes back as saved", requestRoundTrip},
		{"requests are listed by name", requestsByName},
		{"a name has one request", oneRequest},
		{"a name with a good certificate takes no request", requestAfterCertificate},
		{"a name with a revoked certificate takes a request", requestAfterRevocation},
		{"a request can be deleted once", requestDeleted},
		{"a request is replaced", requestReplaced},
		{"requests are dropped in the order in which they came", requestsDropped},
		{"list numbers rise", listNumbers},
		{"certificate comes back as saved", certificateRoundTrip},
		{"a certificate answers its request", certificateEndsRequest},
		{"a newer certificate becomes current", certificateReplaced},
		{"an old certificate touches nothing", certificateOld},
		{"a serial number is used once", certificateSerialOnce},
		{"current certificates are listed by name", certificatesByName},
		{"what is revoked stays revoked at the first time", revokeOnce},
		{"a change is applied once, and in its turn", changesInTurn},
		{"a change that fails leaves nothing", changeWhole},
		{"certificates can be restated", restated},
		{"lines of the journal are kept with their changes", journalKept},
		{"one holds the CA", holdOne},
		{"revoked ones are listed by number", revokedByNumber},
		{"names without a good certificate are known", endedOnes},
		{"a server's certificate is nobody's", serverCertificates},
		{"forget frees the name", forget},
		{"certificates that ended long ago are pruned", certificatesPruned},
		{"tokens that ended are pruned", tokensPruned},
		{"a token is spent once", tokenOnce},
		{"a token is for its name and time", tokenBounds},
		{"one of many spends a token", tokenRace},
		{"one of many requests a name", requestRace},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

var compare = cmp.Options{
	cmp.Comparer(func(a, b *big.Int) bool { return (a == nil) == (b == nil) && (a == nil || a.Cmp(b) == 0) }),
	cmpopts.EquateApproxTime(0),
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func request(name fleet.Certname, pem string) pki.Request {
	return pki.Request{RequestHead: pki.RequestHead{Certname: name, ReceivedAt: noon, From: "192.0.2.1"}, PEM: []byte(pem)}
}

func certificate(name fleet.Certname, serial int64) pki.Certificate {
	return pki.Certificate{
		Certname: name, Serial: big.NewInt(serial), PEM: []byte("pem of " + name), Current: true,
		NotBefore: noon.Add(-24 * time.Hour), NotAfter: noon.AddDate(5, 0, 0), IssuedAt: noon,
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Fatalf("error = %v, want kind %s", err, want)
	}
}

func wantSame[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func requestRoundTrip(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	_, err := s.Request(ctx, "web1")
	wantKind(t, err, fault.NotFound)
	must(t, s.SaveRequest(ctx, request("web1", "a\nb\x00")))
	got, err := s.Request(ctx, "web1")
	must(t, err)
	wantSame(t, got, request("web1", "a\nb\x00"))
	if got.ReceivedAt.Location() != time.UTC {
		t.Errorf("time is in %s, want UTC", got.ReceivedAt.Location())
	}
}

func requestsByName(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []fleet.Certname{"web2", "db1", "web10", "web-1"} {
		must(t, s.SaveRequest(ctx, request(name, "x")))
	}
	got, err := s.Requests(ctx)
	must(t, err)
	wantSame(t, got, []pki.Request{
		request("db1", "x"), request("web-1", "x"), request("web10", "x"), request("web2", "x"),
	})
}

func oneRequest(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.SaveRequest(ctx, request("web1", "one")))
	must(t, s.SaveRequest(ctx, request("web1", "one")))
	wantKind(t, s.SaveRequest(ctx, request("web1", "two")), fault.Conflict)
	got, err := s.Request(ctx, "web1")
	must(t, err)
	wantSame(t, got, request("web1", "one"))
}

func requestAfterCertificate(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, trySave(t, s, certificate("web1", 1)))
	wantKind(t, s.SaveRequest(ctx, request("web1", "one")), fault.Conflict)
	_, err := s.Request(ctx, "web1")
	wantKind(t, err, fault.NotFound)
	must(t, s.SaveRequest(ctx, request("web2", "one")))
}

func requestAfterRevocation(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, trySave(t, s, certificate("web1", 1)))
	must(t, revoke(t, s, noon, 1))
	must(t, s.SaveRequest(ctx, request("web1", "one")))
}

func requestDeleted(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.SaveRequest(ctx, request("web1", "one")))
	must(t, s.DeleteRequest(ctx, "web1"))
	wantKind(t, s.DeleteRequest(ctx, "web1"), fault.NotFound)
	must(t, s.SaveRequest(ctx, request("web1", "two")))
}

func listNumbers(t *testing.T, s pki.Store) {
	t.Helper()
	counter(t, s.NextCRLNumber, s.RaiseCRLNumber)
}

func requestReplaced(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	must(t, s.SaveRequest(ctx, request("web1", "one")))
	other := request("web1", "two")
	other.From, other.ReceivedAt = "198.51.100.1", noon.Add(time.Hour)
	must(t, s.ReplaceRequest(ctx, other))
	must(t, s.ReplaceRequest(ctx, request("web2", "three")))
	all, err := s.Requests(ctx)
	must(t, err)
	wantSame(t, all, []pki.Request{other, request("web2", "three")})
	must(t, trySave(t, s, certificate("web1", 1)))
	wantKind(t, s.ReplaceRequest(ctx, other), fault.Conflict)
}

func requestsDropped(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	var want []pki.RequestHead
	for i, name := range []fleet.Certname{"web3", "web1", "web2"} {
		r := request(name, "x")
		r.ReceivedAt = noon.Add(time.Duration(i) * time.Second)
		must(t, s.SaveRequest(ctx, r))
		want = append(want, r.RequestHead)
	}
	heads, err := s.RequestHeads(ctx)
	must(t, err)
	wantSame(t, heads, want)
	dropped, err := s.DropRequests(ctx, []fleet.Certname{"web3", "web9", "web2"})
	must(t, err)
	heads, err = s.RequestHeads(ctx)
	must(t, err)
	wantSame(t, heads, want[1:2])
	if dropped != 2 {
		t.Errorf("dropped %d, want 2", dropped)
	}
}

// counter checks that numbers rise, also when many ask, and after a raise
// beyond 64 bits.
func counter(t *testing.T, next func(context.Context) (*big.Int, error), raise func(context.Context, *big.Int) error) {
	t.Helper()
	ctx := t.Context()
	first, err := next(ctx)
	must(t, err)
	if first.Sign() <= 0 {
		t.Fatalf("first number is %s, want a positive one", first)
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	seen := map[string]bool{first.String(): true}
	for range 4 {
		wait.Go(func() {
			for range 5 {
				n, err := next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[n.String()] || n.Cmp(first) <= 0 {
					t.Errorf("number %s does not rise", n)
				}
				seen[n.String()] = true
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	high := new(big.Int).Lsh(big.NewInt(1), 150)
	must(t, raise(ctx, high))
	must(t, raise(ctx, big.NewInt(7))) // never lowers
	after, err := next(ctx)
	must(t, err)
	if after.Cmp(high) <= 0 {
		t.Errorf("number after a raise to %s is %s", high, after)
	}
}

func token(text string, name fleet.Certname) pki.Token {
	return pki.Token{Hash: fleet.DigestOf([]byte(text)), Certname: name, ExpiresAt: noon.Add(time.Hour)}
}

func tokenOnce(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	free := token("free", "")
	_, err := s.Token(ctx, free.Hash)
	wantKind(t, err, fault.NotFound)
	must(t, s.SaveToken(ctx, free))
	wantKind(t, s.SaveToken(ctx, free), fault.Conflict)
	read, err := s.Token(ctx, free.Hash)
	must(t, err)
	wantSame(t, read, free)
	must(t, s.SpendToken(ctx, free.Hash, "web1", noon))
	wantKind(t, s.SpendToken(ctx, free.Hash, "web1", noon), fault.NotFound)
}

func tokenBounds(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	bound, late := token("bound", "web1"), token("late", "")
	must(t, s.SaveToken(ctx, bound))
	must(t, s.SaveToken(ctx, late))
	wantKind(t, s.SpendToken(ctx, bound.Hash, "web2", noon), fault.NotFound)
	wantKind(t, s.SpendToken(ctx, late.Hash, "web1", late.ExpiresAt), fault.NotFound)
	wantKind(t, s.SpendToken(ctx, fleet.DigestOf([]byte("other")), "web1", noon), fault.NotFound)
	must(t, s.SpendToken(ctx, bound.Hash, "web1", noon.Add(time.Hour-time.Second))) // a wrong try costs nothing
}

func tokenRace(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	free := token("free", "")
	must(t, s.SaveToken(ctx, free))
	wantOne(t, func(int) error { return s.SpendToken(ctx, free.Hash, "web1", noon) }, fault.NotFound)
}

func requestRace(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	wantOne(t, func(i int) error {
		return s.SaveRequest(ctx, request("web1", big.NewInt(int64(i)).String()))
	}, fault.Conflict)
}

// wantOne runs try eight times at once: one succeeds, the others get loser.
func wantOne(t *testing.T, try func(i int) error, loser fault.Kind) {
	t.Helper()
	var won atomic.Int32
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			switch err := try(i); {
			case err == nil:
				won.Add(1)
			case fault.Of(err) != loser:
				t.Errorf("error = %v, want kind %s", err, loser)
			}
		})
	}
	wait.Wait()
	if won.Load() != 1 {
		t.Errorf("%d succeeded, want 1", won.Load())
	}
}

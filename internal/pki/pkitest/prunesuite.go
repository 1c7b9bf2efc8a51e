package pkitest

import (
	"math/big"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// What stands for a name, is a server's, or is known by its number alone stays, however old it is.
func certificatesPruned(t *testing.T, s pki.Store) {
	t.Helper()
	ctx, before := t.Context(), noon.AddDate(1, 0, 0)
	row := func(name fleet.Certname, serial int64, end time.Time) pki.Certificate {
		c := certificate(name, serial)
		c.NotAfter = end
		return c
	}
	late := before.Add(-time.Hour)
	must(t, trySave(t, s, row("web1", 1, late))) // the next one takes its place
	must(t, trySave(t, s, row("web1", 2, late)))
	must(t, trySave(t, s, row("web2", 3, before.Add(time.Hour)))) // has not ended
	must(t, trySave(t, s, row("web2", 4, before.Add(time.Hour))))
	server, imported := row("puppet", 5, late), row("web3", 6, time.Time{})
	server.Current, server.Server = false, true
	must(t, trySave(t, s, server))
	imported.Current, imported.PEM, imported.RevokedAt = false, nil, noon
	imported.NotBefore, imported.IssuedAt = time.Time{}, time.Time{}
	must(t, trySave(t, s, imported))
	if n, err := s.PruneCertificates(ctx, before); err != nil || n != 1 {
		t.Errorf("pruned %d, %v, want 1", n, err)
	}
	rows, err := s.History(ctx)
	must(t, err)
	var left []*big.Int
	for _, c := range rows {
		left = append(left, c.Serial)
	}
	wantSame(t, left, []*big.Int{big.NewInt(2), big.NewInt(3), big.NewInt(4), big.NewInt(5), big.NewInt(6)})
	if n, err := s.PruneCertificates(ctx, before); err != nil || n != 0 {
		t.Errorf("pruned once more: %d, %v", n, err)
	}
}

func tokensPruned(t *testing.T, s pki.Store) {
	t.Helper()
	ctx := t.Context()
	old, good := token("old", ""), token("good", "")
	good.ExpiresAt = old.ExpiresAt.Add(time.Minute)
	must(t, s.SaveToken(ctx, old))
	must(t, s.SaveToken(ctx, good))
	if n, err := s.PruneJoinTokens(ctx, good.ExpiresAt); err != nil || n != 1 {
		t.Errorf("pruned %d, %v, want 1", n, err)
	}
	_, err := s.Token(ctx, old.Hash)
	wantKind(t, err, fault.NotFound)
	_, err = s.Token(ctx, good.Hash)
	must(t, err)
}

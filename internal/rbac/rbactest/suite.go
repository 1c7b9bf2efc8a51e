package rbactest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// RunTokenStore checks a store. open returns an empty one for each case; it
// cleans up through t.
func RunTokenStore(t *testing.T, open func(t *testing.T) rbac.TokenStore) {
	t.Helper()
	t.Run("tokens are found by hash", func(t *testing.T) {
		t.Parallel()
		byHash(t, open(t))
	})
	t.Run("a label has one token", func(t *testing.T) {
		t.Parallel()
		byLabel(t, open(t))
	})
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func check(t *testing.T, s rbac.TokenStore, want rbac.Token) {
	t.Helper()
	got, err := s.AccessToken(t.Context(), want.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("token (-want +got):\n%s", diff)
	}
}

func save(t *testing.T, s rbac.TokenStore, tokens ...rbac.Token) {
	t.Helper()
	for _, token := range tokens {
		if err := s.SaveAccessToken(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
}

func byHash(t *testing.T, s rbac.TokenStore) {
	admin := rbac.Token{Hash: fleet.DigestOf([]byte("1")), Label: "admin", Admin: true, CreatedAt: start}
	short := rbac.Token{Hash: fleet.DigestOf([]byte("2")), Label: "ci", CreatedAt: start, ExpiresAt: start.Add(time.Hour)}
	save(t, s, admin, short)
	check(t, s, admin)
	check(t, s, short)
	if _, err := s.AccessToken(t.Context(), fleet.DigestOf([]byte("3"))); fault.Of(err) != fault.NotFound {
		t.Errorf("an unknown token: %v, want not_found", err)
	}
}

func byLabel(t *testing.T, s rbac.TokenStore) {
	before := rbac.Token{Hash: fleet.DigestOf([]byte("1")), Label: "admin", Admin: true, CreatedAt: start, ExpiresAt: start.Add(time.Hour)}
	after := rbac.Token{Hash: fleet.DigestOf([]byte("2")), Label: "admin", CreatedAt: start.Add(time.Minute)}
	save(t, s, before, after, after)
	check(t, s, after)
	if _, err := s.AccessToken(t.Context(), before.Hash); fault.Of(err) != fault.NotFound {
		t.Errorf("a replaced token: %v, want not_found", err)
	}
}

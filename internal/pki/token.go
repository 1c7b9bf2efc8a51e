package pki

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// tokenPrefix tells our one-time tokens from challenge passwords that an
// autosign program understands.
const tokenPrefix = "tutti-join-"

// NewJoinToken makes a one-time password that signs one request at once: that of
// name, or of any name if it is empty. Only its digest is kept. A node sends it as the
// challenge password of its request.
func (a *Authority) NewJoinToken(ctx context.Context, name fleet.Certname, ttl time.Duration) (string, error) {
	if ttl <= 0 {
		return "", fault.New(fault.Invalid, "the join token's life is %s, it must be positive", ttl)
	}
	text := tokenPrefix + strings.ToLower(rand.Text())
	token := Token{Hash: fleet.DigestOf([]byte(text)), Certname: name, ExpiresAt: now().Add(ttl)}
	if err := a.store.SaveToken(ctx, token); err != nil {
		return "", err
	}
	return text, nil
}

// spendToken tells whether the request carries a token of ours, and whether
// that was good; a good one is used up.
func (a *Authority) spendToken(ctx context.Context, r *csr) (carried, good bool, err error) {
	if !strings.HasPrefix(r.challenge, tokenPrefix) {
		return false, false, nil
	}
	err = a.store.SpendToken(ctx, fleet.DigestOf([]byte(r.challenge)), r.name, time.Now().UTC())
	if err != nil && fault.Of(err) == fault.NotFound {
		return true, false, nil
	}
	return true, err == nil, err
}

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
func (q *Requests) NewJoinToken(ctx context.Context, name fleet.Certname, ttl time.Duration) (string, error) {
	if ttl <= 0 {
		return "", fault.New(fault.Invalid, "the join token's life is %s, it must be positive", ttl)
	}
	text := tokenPrefix + strings.ToLower(rand.Text())
	token := Token{Hash: fleet.DigestOf([]byte(text)), Certname: name, ExpiresAt: now().Add(ttl)}
	if err := q.store.SaveToken(ctx, token); err != nil {
		return "", err
	}
	return text, nil
}

func carriesToken(r *csr) bool { return strings.HasPrefix(r.challenge, tokenPrefix) }

// tokenGood tells whether the request carries a token that could be spent. It only
// reads: made-up tokens must not keep good ones waiting.
func (q *Requests) tokenGood(ctx context.Context, r *csr) (bool, error) {
	if !carriesToken(r) {
		return false, nil
	}
	token, err := q.store.Token(ctx, fleet.DigestOf([]byte(r.challenge)))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && token.Good(r.name, time.Now().UTC()), err
}

// spendToken uses the request's token up; Denied if somebody was quicker.
func (q *Requests) spendToken(ctx context.Context, r *csr) error {
	err := q.store.SpendToken(ctx, fleet.DigestOf([]byte(r.challenge)), r.name, time.Now().UTC())
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Denied, "the join token of %s was used up a moment ago: make a new one", r.name)
	}
	return err
}

package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	fleetpkg "github.com/tutti-project/tutti/internal/fleet"
)

// stormNode is a node that submits its facts and asks what it may have, over and over.
type stormNode struct {
	name, role string
	identity   *tls.Config
	client     *http.Client
	random     *rand.Rand
	turns      bool // whether its dial is turned while it lives

	// The node's own, and nobody reads them before it has ended.
	number       int64 // of its newest submission
	dial, noise  int
	dials        int  // values that its dial had
	acknowledged bool // the newest submission was
	seen         int  // documents that it fetched and verified
	wrong        error
}

// stormPointer is what the server says that a node may have.
type stormPointer struct {
	Catalog fleetpkg.Digest
	Version fleetpkg.Digest
}

func newStormNode(name, role string, seed uint64, index int, identity *tls.Config) *stormNode {
	return &stormNode{
		name: name, role: role, identity: identity, random: rand.New(rand.NewPCG(seed, uint64(index)+100)), dials: 1,
		client: &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: identity, MaxIdleConns: 1}},
	}
}

// live is its life until ctx is done. Then it submits its facts a last time, if nobody acknowledged them.
func (n *stormNode) live(ctx context.Context, s *storm) {
	turnAt := n.random.IntN(4)
	for round := 0; ctx.Err() == nil; round++ {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(n.random.IntN(8000)) * time.Millisecond):
		}
		n.noise = n.random.IntN(1_000_000)
		if n.turns && round == turnAt {
			n.dial++
			n.dials++
		}
		n.acknowledged = false
		if n.submit(ctx, s.url) == nil {
			n.wrong = errors.Join(n.wrong, n.fetch(ctx, s.url))
		}
	}
}

// submit submits the facts as they are now until that is acknowledged.
func (n *stormNode) submit(ctx context.Context, url string) error {
	n.number++
	body, err := json.Marshal(map[string]any{
		"number": n.number, "timestamp": time.Now(), "environment": "production",
		"values": map[string]any{"role": n.role, "dial": n.dial, "noise": n.noise, "kernel": "Linux"},
	})
	if err != nil {
		return err
	}
	for {
		status, text, err := n.ask(ctx, http.MethodPut, url+"/node/v1/facts", body)
		switch {
		case status == http.StatusOK, status == http.StatusAccepted:
			n.acknowledged = true
			return nil
		case err == nil && status != http.StatusServiceUnavailable:
			return fmt.Errorf("facts of %s: %d %s", n.name, status, text)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		n.pause(ctx)
	}
}

// pointer asks what the node may have until it may have something.
func (n *stormNode) pointer(ctx context.Context, url string) (p stormPointer, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said := "no answer"
	for {
		status, text, err := n.ask(ctx, http.MethodGet, url+"/node/v1/catalog", nil)
		switch {
		case ctx.Err() != nil:
			return p, fmt.Errorf("what %s may have: %s: %w", n.name, said, ctx.Err())
		case err != nil:
			said = err.Error()
		case status != http.StatusOK:
			said = fmt.Sprintf("%d %s", status, text)
		default:
			return p, json.Unmarshal(text, &p)
		}
		n.pause(ctx)
	}
}

// fetch fetches, if the server is there, what the node may have, and compares it with its digest.
func (n *stormNode) fetch(ctx context.Context, url string) error {
	status, text, err := n.ask(ctx, http.MethodGet, url+"/node/v1/catalog", nil)
	var p stormPointer
	if err != nil || status != http.StatusOK {
		return nil //nolint:nilerr // the server is gone, or about to come
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	status, text, err = n.ask(ctx, http.MethodGet, url+"/node/v1/catalogs/"+string(p.Catalog), nil)
	if err != nil || status != http.StatusOK {
		return nil //nolint:nilerr // or there is a newer one
	}
	n.seen++
	if got := fleetpkg.DigestOf(text); got != p.Catalog {
		return fmt.Errorf("%s was given %s as %s", n.name, got, p.Catalog)
	}
	return nil
}

func (n *stormNode) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

func (n *stormNode) ask(ctx context.Context, method, url string, body []byte) (status int, text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := n.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

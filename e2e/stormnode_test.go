//go:build soak

package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	fleetpkg "github.com/tutti-project/tutti/internal/fleet"
)

// stormNode is what submits a node's facts, over and over. It is killed and begins again with what it kept.
type stormNode struct {
	name, role string
	identity   *tls.Config
	client     *http.Client
	random     *rand.Rand
	turns      bool // whether its dial is turned while it lives

	mu  sync.Mutex
	end context.CancelFunc // of the process that lives now

	// The node's own, and nobody reads them before it has ended.
	kept         []byte // the newest submission, as it is on disk
	number       int64  // of it
	lives        int
	dial, noise  int
	dials        int  // values that its dial had
	acknowledged bool // the newest submission was
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

// live is one process after the other until ctx is done.
func (n *stormNode) live(ctx context.Context, s *storm) {
	turnAt := n.random.IntN(4)
	for round := 0; ctx.Err() == nil; {
		process, end := context.WithCancel(ctx)
		n.mu.Lock()
		n.end = end
		n.mu.Unlock()
		n.lives++
		if !n.acknowledged {
			_ = n.send(process, s.url) // else the next process does
		}
		for ; process.Err() == nil; round++ {
			select {
			case <-process.Done():
			case <-time.After(time.Duration(n.random.IntN(8000)) * time.Millisecond):
			}
			n.noise = n.random.IntN(1_000_000)
			if n.turns && round == turnAt {
				n.dial++
				n.dials++
			}
			_ = n.submit(process, s.url) // the same
		}
		end()
	}
}

// kill ends the process; the next one begins at once.
func (n *stormNode) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.end != nil {
		n.end()
	}
	n.client.CloseIdleConnections()
}

// submit submits the facts as they are now until that is acknowledged.
func (n *stormNode) submit(ctx context.Context, url string) (err error) {
	n.number++
	n.acknowledged = false
	n.kept, err = json.Marshal(map[string]any{
		"number": n.number, "timestamp": time.Now(), "environment": "production",
		"values": map[string]any{"role": n.role, "dial": n.dial, "noise": n.noise, "kernel": "Linux"},
	})
	if err != nil {
		return err
	}
	return n.send(ctx, url)
}

// send sends what is kept until it is acknowledged.
func (n *stormNode) send(ctx context.Context, url string) error {
	for {
		status, text, err := n.ask(ctx, http.MethodPut, url+"/node/v1/facts", n.kept)
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

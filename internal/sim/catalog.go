package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	agentorders "github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Application is a catalog that a node applied.
type Application struct {
	Catalog string // digest of its document
	UUID    string
	Version string
	Report  string // transaction_uuid
	Noop    bool   // it changed nothing
	Settled bool   // there was nothing to change
	At      time.Time
	// What it said, if it says anything, as far as it came: a node that starts again ends its run without a word.
	Events      []pxp.RunEvent
	Interrupted bool
}

// Over says whether a run that says what it does has said that it ended, or was ended.
func (a Application) Over() bool {
	return a.Interrupted || len(a.Events) > 0 && a.Events[len(a.Events)-1].Kind == pxp.RunEnded
}

// shelf is what a node keeps of catalogs: it outlives agents.
type shelf struct {
	mu      sync.Mutex
	busy    bool // somebody fetches and applies
	again   bool // once more, when that is done
	now     bool // what comes is to be applied at once
	tag     string
	pointer pxp.CatalogPointer
	parts   []part   // of the document
	run     *run     // goes on
	orders  []order  // runs that somebody ordered, and that have not begun
	applied string   // catalog_uuid of what was applied last
	unsent  [][]byte // reports that no server took yet
}

// told is what a node does with a hint, and when it is connected.
func (n *node) told(ctx context.Context, a *agent, now bool) {
	if n.fleet.cfg.Catalogs == "" {
		return
	}
	s := &n.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil { // after settle nothing begins any more
		return
	}
	s.now = s.now || now
	if s.again = s.again || s.busy; s.busy {
		return
	}
	s.busy = true
	a.works.Go(func() { n.follow(ctx) })
}

// follow fetches and applies until there is nothing new; it tries again as agents do while the server is away.
func (n *node) follow(ctx context.Context) {
	const most = 15 * time.Second
	for pause := time.Second; ; {
		err := n.step(ctx)
		if err == nil {
			if n.shelf.rest() {
				return
			}
			pause = time.Second
			continue
		}
		n.fleet.cfg.Log.DebugContext(ctx, "simulated node has no catalog, will retry", "node", n.name, "err", err)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			n.shelf.leave()
			return
		case <-timer.C:
		}
		pause = min(2*pause, most)
	}
}

// rest ends the work, unless somebody told the node again meanwhile.
func (s *shelf) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pointer.UUID == "" {
		s.orders = nil // there is nothing to apply
	}
	again := s.again || len(s.orders) > 0
	s.again, s.busy = false, again
	return !again
}

// leave ends it because the agent ends.
func (s *shelf) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again, s.busy = false, false
}

// settle returns when nobody is about to begin who does not know that the agent ends.
func (s *shelf) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// step is one look for a catalog, and all that follows from it.
func (n *node) step(ctx context.Context) error {
	if !n.fleet.fetching.take(ctx) {
		return ctx.Err()
	}
	defer n.fleet.fetching.give()
	client := n.web()
	defer client.CloseIdleConnections()
	if err := n.fetch(ctx, client); err != nil {
		return err
	}
	if err := n.apply(ctx); err != nil {
		return err
	}
	return n.report(ctx, client)
}

// web is what a node asks with: one connection from its first question to its last, as an agent keeps it.
func (n *node) web() *http.Client {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) { return n.fleet.cfg.Dial(ctx, address) }
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: n.identity, DialContext: dial}}
}

// fetch gets the pointer, and the document when there is another one. It is held against its digest.
func (n *node) fetch(ctx context.Context, client *http.Client) error {
	s := &n.shelf
	s.mu.Lock()
	tag, have := s.tag, s.pointer.Catalog
	s.mu.Unlock()
	status, header, text, err := n.get(ctx, client, "/node/v1/catalog", tag)
	if err != nil || status == http.StatusNotModified || status == http.StatusNotFound {
		return err
	}
	pointer, err := pxp.ParseCatalogPointer(text)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("pointer: status %d: %w", status, err)
	}
	var parts []part
	if pointer.Catalog != have {
		status, _, document, err := n.get(ctx, client, "/node/v1/catalogs/"+pointer.Catalog, "")
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("document: status %d: %w", status, err)
		}
		if sum := sha256.Sum256(document); hex.EncodeToString(sum[:]) != pointer.Catalog {
			return fmt.Errorf("the document %s has another digest", pointer.Catalog)
		}
		catalog, err := catalog.Render(document, catalog.Stamp{UUID: pointer.UUID, Static: true})
		if err != nil {
			return err
		}
		if parts, err = n.partsOf(catalog); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pointer.Catalog != have {
		s.parts = parts
	}
	s.tag, s.pointer = header.Get("Etag"), pointer
	return nil
}

// maxDocumentBytes bounds an answer.
const maxDocumentBytes = 64 << 20

func (n *node) get(ctx context.Context, client *http.Client, path, tag string) (int, http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.fleet.cfg.Catalogs+path, http.NoBody)
	if err != nil {
		return 0, nil, nil, err
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxDocumentBytes))
	return response.StatusCode, response.Header, text, err
}

// apply applies what is kept, if it is to be and was not before, and returns when that is done.
func (n *node) apply(ctx context.Context) error {
	s := &n.shelf
	s.mu.Lock()
	p := s.pointer
	switch {
	case s.run != nil || p.UUID == "":
	case len(s.orders) > 0:
		ordered := s.orders[0]
		s.orders = s.orders[1:]
		n.begin(p, ordered)
	case p.UUID != s.applied && (s.now || n.fleet.cfg.ApplyAtOnce):
		n.begin(p, order{report: uuid.NewString()})
	}
	running := s.run
	s.mu.Unlock()
	if running == nil {
		return nil
	}
	select {
	case <-running.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin begins to apply p. It is called under the shelf's lock.
func (n *node) begin(p pxp.CatalogPointer, o order) {
	s := &n.shelf
	if !o.noop {
		s.now, s.applied = false, p.UUID
	}
	if o.ending == Strays {
		p.Catalog, p.UUID = "", uuid.NewString()
	}
	a := Application{Catalog: p.Catalog, UUID: p.UUID, Version: p.Version, Report: o.report, Noop: o.noop, Settled: o.ending == Settled, At: time.Now()}
	n.fleet.cfg.Recorder.apply(n.name, a)
	if !n.fleet.cfg.Events {
		s.unsent = append(s.unsent, reportOf(n.name, p, a))
		return
	}
	r := &run{Application: a, pointer: p, parts: s.parts, over: make(chan struct{})}
	s.run = r
	n.runs.Go(func() { n.play(r) })
}

// report sends the reports that wait, oldest first.
func (n *node) report(ctx context.Context, client *http.Client) error {
	s := &n.shelf
	for {
		s.mu.Lock()
		if len(s.unsent) == 0 {
			s.mu.Unlock()
			return nil
		}
		text, environment := s.unsent[0], s.pointer.Environment
		s.mu.Unlock()
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, n.fleet.cfg.Catalogs+"/puppet/v3/report/"+n.name+"?environment="+environment,
			bytes.NewReader(text))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("report: status %d", response.StatusCode)
		}
		s.mu.Lock()
		s.unsent = s.unsent[1:]
		s.mu.Unlock()
	}
}

// hints is the module by which a server tells of catalogs.
func (n *node) hints(ctx context.Context, a *agent) agentorders.Module {
	return agentorders.Catalog(func(c pxp.CatalogChange) { n.told(ctx, a, c.Apply == pxp.ApplyNow) })
}

// places bounds how many do something at the same time.
type places chan struct{}

func (p places) take(ctx context.Context) bool {
	select {
	case p <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p places) give() { <-p }

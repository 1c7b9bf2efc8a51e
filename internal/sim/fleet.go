package sim

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config says what a fleet is.
type Config struct {
	URLs  []string // of the servers, as wss://HOST:PORT
	Names []string // certnames, one for each node
	// Identity gets a node's certificate; see Enroller.
	Identity func(ctx context.Context, name string) (*tls.Config, error)
	// Dial opens a node's connection below TLS; TCP if it is nil.
	Dial     func(ctx context.Context, address string) (net.Conn, error)
	Recorder *Recorder // nil: a new one
	Faults   Faults
	Seed     uint64
	Log      *slog.Logger // nil: nothing is logged

	Facts       func(name string) map[string]any // what a node submits; Facts if it is nil
	Services    func(name string) []string       // of a node, all of which run; nil: the same few everywhere
	Catalogs    string                           // where nodes get their catalogs and send their reports, as https://HOST:PORT; empty: they do not
	ApplyAtOnce bool                             // each new catalog; else those only that the server says so of
	Fails       func(name string) bool           // whose ordered Puppet runs fail; nil: nobody's
	Ends        func(name string) Ending         // how those of the others end; nil: all change something
	CatalogPoll time.Duration                    // how often nodes ask for a catalog without a hint; 0: never
	Events      bool                             // applying takes a while, and what happens is streamed

	UserAgent      string        // tutti-agent/simulated if it is empty
	Enrolling      int           // certificates that are fetched at the same time; 8
	ConnectTimeout time.Duration // zero: as an agent has it; the next two likewise
	FirstPause     time.Duration
	LongestPause   time.Duration
}

func (c *Config) fill() {
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if c.Facts == nil {
		c.Facts = Facts
	}
	if c.Recorder == nil {
		c.Recorder = NewRecorder()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.UserAgent == "" {
		c.UserAgent = "tutti-agent/simulated"
	}
	if c.Enrolling <= 0 {
		c.Enrolling = 8
	}
}

// Fleet is simulated nodes.
type Fleet struct {
	cfg      Config
	nodes    []*node
	fetching places
}

// fetchers is how many nodes fetch catalogs and send reports at the same time.
const fetchers = 32

// New makes a fleet that has no certificates yet.
func New(c Config) *Fleet {
	c.fill()
	f := &Fleet{cfg: c, fetching: make(places, fetchers)}
	for i, name := range c.Names {
		f.nodes = append(f.nodes, newNode(f, i, name))
	}
	return f
}

// Names numbers certnames: sim-0001.DOMAIN and so on.
func Names(count int, domain string) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("sim-%0*d.%s", max(4, len(fmt.Sprint(count))), i+1, domain)
	}
	return names
}

// Enrol gets every node its certificate. It comes before Run.
func (f *Fleet) Enrol(ctx context.Context) error {
	return f.each(ctx, func(ctx context.Context, n *node) (err error) {
		n.identity, err = f.cfg.Identity(ctx, n.name)
		return err
	})
}

// SendFacts submits every node's facts to the server at url. It comes after Enrol.
func (f *Fleet) SendFacts(ctx context.Context, url string) error {
	return f.each(ctx, func(ctx context.Context, n *node) error {
		return SendFacts(ctx, url, n.name, n.identity, f.cfg.Facts(n.name))
	})
}

// SubmitFacts submits every node's facts to the server at url apart from a run, with the fact wave set to
// that number. Each wave has a higher one than the one before.
func (f *Fleet) SubmitFacts(ctx context.Context, url string, wave int64) error {
	return f.each(ctx, func(ctx context.Context, n *node) error {
		facts := Facts(n.name)
		facts["wave"] = wave
		return SubmitFacts(ctx, url, n.name, n.identity, wave, facts)
	})
}

func (f *Fleet) each(ctx context.Context, do func(context.Context, *node) error) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(f.cfg.Enrolling)
	for _, n := range f.nodes {
		work.Go(func() error { return do(ctx, n) })
	}
	return work.Wait()
}

// Run lets all nodes live until ctx is done.
func (f *Fleet) Run(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	for _, n := range f.nodes {
		work.Go(func() error { return n.run(ctx) })
	}
	return work.Wait()
}

// Recorder knows what the nodes executed.
func (f *Fleet) Recorder() *Recorder { return f.cfg.Recorder }

// Connected counts the nodes that are, by a connection made after since.
func (f *Fleet) Connected(since time.Time) int {
	count := 0
	for _, n := range f.nodes {
		n.mu.Lock()
		a := n.agent
		n.mu.Unlock()
		if a == nil {
			continue
		}
		if state := a.link.State(); state.Connected && state.Since.After(since) {
			count++
		}
	}
	return count
}

// Applying lists the nodes that apply a catalog now.
func (f *Fleet) Applying() (nodes []int) {
	for i, n := range f.nodes {
		n.shelf.mu.Lock()
		if n.shelf.run != nil {
			nodes = append(nodes, i)
		}
		n.shelf.mu.Unlock()
	}
	return nodes
}

// AwaitConnected returns when all nodes are connected at the same time, with connections
// made after since.
func (f *Fleet) AwaitConnected(ctx context.Context, since time.Time) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		count := f.Connected(since)
		if count == len(f.nodes) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d simulated nodes are connected: %w", count, len(f.nodes), ctx.Err())
		}
	}
}

// Do does a step's fault. Those of processes are not a fleet's business.
func (f *Fleet) Do(s Step) {
	switch s.Kind {
	case Cut:
		f.hit(s.Nodes, (*node).cut)
	case Crash:
		f.hit(s.Nodes, (*node).crash)
	case Reboot:
		f.hit(s.Nodes, (*node).reboot)
	case Storm:
		for _, n := range f.nodes {
			n.cut()
		}
	case KillServer, KillAgent, Quiet:
	}
}

func (f *Fleet) hit(victims []int, how func(*node)) {
	for _, i := range victims {
		how(f.nodes[i])
	}
}

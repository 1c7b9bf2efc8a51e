package job

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
)

// Settings sets a Service up. Start from DefaultSettings.
type Settings struct {
	Timeout     time.Duration // of a run whose job says nothing
	Poll        time.Duration // how often a node is asked about a run that goes on
	Resend      time.Duration // after how long an order that nobody acknowledged is sent again; it doubles up to Poll
	StopGrace   time.Duration // how long a node may take to stop a run
	Reconnect   time.Duration // how long after a start nodes may take to come back
	Regain      time.Duration // how long after its connection ended a node may take to come back, to another server; 0: it is away at once
	Tick        time.Duration // how often to look without a hint
	Batch       int           // rows in one transaction
	Questions   int           // a run is lost whose connected node answered none of so many questions,
	Silence     time.Duration // in at least this time
	Settle      time.Duration // how long after a connection took the place of another one its agent's ignorance of a run is doubted
	AnswerBytes int64         // of answers that are not stored yet; nodes wait while there are more
}

// DefaultSettings is what suits most servers.
func DefaultSettings() Settings {
	return Settings{
		Timeout: time.Hour, Poll: time.Minute, Resend: 10 * time.Second, StopGrace: 15 * time.Second, Reconnect: time.Minute,
		Tick: time.Second, Batch: 500, Questions: 5, Silence: 7 * time.Minute, Settle: time.Minute, AnswerBytes: 32 << 20,
	}
}

func (s Settings) check() error {
	for name, d := range map[string]time.Duration{
		"timeout": s.Timeout, "poll": s.Poll, "resend": s.Resend, "stop grace": s.StopGrace, "tick": s.Tick, "silence": s.Silence,
	} {
		if d <= 0 {
			return fault.New(fault.Invalid, "the %s of jobs must be above zero, not %s", name, d)
		}
	}
	if s.Reconnect < 0 || s.Regain < 0 || s.Settle < 0 || s.Questions < 1 || s.Batch < 1 || s.AnswerBytes < 1 {
		return fault.New(fault.Invalid, "jobs need times to reconnect and to settle that are not negative, "+
			"a batch of at least one row, at least one question and room for at least one byte of answers")
	}
	return nil
}

// Parts is what a Service works with.
type Parts struct {
	Store    Store
	Sender   Sender
	Resolver Resolver
	Graph    Graph
	Gate     Gate
	Sealer   Sealer
	Ends     Certificates
	Reports  Reports       // nil: only what agents say of Puppet runs counts
	NewID    func() string // a random UUID
	Now      func() time.Time
	Relay    *hint.Relay // to other servers; nil: there are none
	Log      *slog.Logger
}

// Service takes orders and answers questions about them. See the package comment.
type Service struct {
	Parts
	settings Settings
	changes  hint.Board    // of jobs
	wake     chan struct{} // something may be there to dispatch
	came     nodeSet       // nodes that connected
	gone     nodeSet       // nodes whose connection ended
	silence  silence
	others   others
	arrivals *arrivals
	figures  figures
	briefs   briefs
	glances  glances
}

// New checks settings. Run does the work.
func New(parts Parts, settings Settings) (*Service, error) {
	if err := settings.check(); err != nil {
		return nil, err
	}
	s := &Service{
		Parts: parts, settings: settings, wake: make(chan struct{}, 1),
		arrivals: newArrivals(settings.AnswerBytes),
	}
	s.changes.Join(parts.Relay, "job")
	s.others.nudge = parts.Relay.Join("jobs", func(string) { s.nudge() })
	s.others.heard = parts.Relay.Join("run answered", s.silence.heardAny)
	return s, nil
}

// others hints to other servers: one of them may be the one that dispatches.
type others struct {
	nudge func(string)     // there is something to dispatch
	heard func(run string) // the node of a run said something of it here
}

// Came hints that nodes have connected. It never blocks.
func (s *Service) Came(nodes ...fleet.Certname) {
	s.came.add(nodes)
	s.nudge()
}

// Went hints that the connections of nodes have ended. It never blocks.
func (s *Service) Went(nodes ...fleet.Certname) {
	s.gone.add(nodes)
	s.nudge()
}

// nudgeAll hints that there is something to dispatch, wherever that is done.
func (s *Service) nudgeAll() {
	s.nudge()
	s.others.nudge("")
}

// nudge hints here that there is something to dispatch.
func (s *Service) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // a hint is waiting already
	}
}

// maxHints is how many nodes are remembered that connected; of more the rows
// know: the next look finds them.
const maxHints = 200_000

// nodeSet is nodes that connected, or whose connection ended, and that were not looked at yet.
type nodeSet struct {
	mu    sync.Mutex
	nodes map[fleet.Certname]struct{}
}

func (h *nodeSet) add(nodes []fleet.Certname) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		h.nodes = map[fleet.Certname]struct{}{}
	}
	for _, node := range nodes {
		if len(h.nodes) < maxHints {
			h.nodes[node] = struct{}{}
		}
	}
}

// take is all of them, once.
func (h *nodeSet) take() []fleet.Certname {
	h.mu.Lock()
	defer h.mu.Unlock()
	nodes := make([]fleet.Certname, 0, len(h.nodes))
	for node := range h.nodes {
		nodes = append(nodes, node)
	}
	h.nodes = nil
	return nodes
}

// alone is a job without its bulk and its runs.
func alone(ctx context.Context, store Store, id int64) (Job, error) {
	j, _, err := store.Changes(ctx, id, math.MaxInt64, 1)
	return j, err
}

// Wait returns when a job has changed since the change with a number, or after
// about a second: what it waits for is a hint. NotFound.
func (s *Service) Wait(ctx context.Context, id, after int64) error {
	return s.changes.Wait(ctx, id, func() (bool, error) {
		j, err := alone(ctx, s.Store, id)
		return j.Change > after || j.Status.Final(), err
	})
}

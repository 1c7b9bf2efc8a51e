package event

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rate"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// The kinds of events of the life of a node's agent. The server itself adds them: they belong to no run.
const (
	Startup    = "startup"    // the agent's process began
	Connect    = "connect"    // the agent is connected
	Shutdown   = "shutdown"   // the agent said that its process ends
	Disconnect = "disconnect" // the agent is not connected any more
)

// The bounds of events of agents. What is beyond them is not listed; the node's next event says how many those were.
const (
	agentBurst    = 20              // of a node at once, and then one
	agentInterval = 3 * time.Minute // in this time
	fleetBurst    = 20_000          // of all nodes at once, and then one
	fleetInterval = 30 * time.Millisecond
	waitingAgents = 2 * fleetBurst // that wait to be stored
	storedAgents  = 4000           // that are stored together
	agentFlush    = time.Second
	agentMay      = 5 * time.Second // for the store to take them, also when the server stops
	maxAgentText  = 200
)

// agents gathers what happens to agents, to be stored together.
type agents struct {
	node, fleet *rate.Limiter

	mu       sync.Mutex
	waiting  []Event
	unlisted map[fleet.Certname]int
}

func newAgents() *agents {
	const nodes = 200_000 // that are remembered
	return &agents{node: rate.New(agentBurst, agentInterval, nodes), fleet: rate.New(fleetBurst, fleetInterval, 1), unlisted: map[fleet.Certname]int{}}
}

// Agent notes that something happened to the agent of a node. It never waits: it is stored soon, or, if a node or the fleet comes and goes too
// often, not at all.
func (s *Service) Agent(node fleet.Certname, kind, message string) {
	now, a := s.Now(), s.agents
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= waitingAgents || a.node.Take(string(node), now) > 0 || a.fleet.Take("", now) > 0 {
		a.unlisted[node]++
		s.figures.unlisted.Add(1)
		return
	}
	message = strings.ToValidUTF8(message[:min(len(message), maxAgentText)], "")
	a.waiting = append(a.waiting, Event{Node: node, RunEvent: pxp.RunEvent{Kind: kind, At: now, Message: message, Missing: a.unlisted[node]}})
	delete(a.unlisted, node)
}

// listing stores events of agents every second until ctx is done, and once more then.
func (s *Service) listing(ctx context.Context) error {
	tick := time.NewTicker(agentFlush)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		s.list(context.WithoutCancel(ctx))
	}
	return nil
}

// list stores what waits. What cannot be stored waits on.
func (s *Service) list(ctx context.Context) {
	for {
		s.agents.mu.Lock()
		some := s.agents.waiting[:min(len(s.agents.waiting), storedAgents)]
		s.agents.mu.Unlock()
		if len(some) == 0 {
			return
		}
		if err := s.add(ctx, some); err != nil {
			s.Log.WarnContext(ctx, "events of agents not stored, will retry", "events", len(some), "err", err)
			return
		}
		s.agents.mu.Lock()
		s.agents.waiting = s.agents.waiting[len(some):]
		s.agents.mu.Unlock()
		s.figures.stored.Add(int64(len(some)))
		s.wake(ctx)
	}
}

func (s *Service) add(ctx context.Context, some []Event) error {
	ctx, cancel := context.WithTimeout(ctx, agentMay)
	defer cancel()
	return s.Store.AddEvents(ctx, some, s.Now())
}

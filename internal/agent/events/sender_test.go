package events_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	agentevents "github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/eventtest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// server takes what a sender sends, and loses some of it.
type server struct {
	t      *testing.T
	store  *eventtest.Store
	sender *agentevents.Sender

	mu       sync.Mutex
	random   *rand.Rand
	lose     float64 // of messages, of answers, of connections
	messages int
	sent     int // events, also those sent again
}

func (s *server) send(m wire.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.random.Float64() < s.lose {
		go s.sender.Connected() // it comes back
		return fault.New(fault.Unavailable, "away")
	}
	batch, err := pxp.ParseRunEvents(m.Data)
	if err != nil || m.Type != wire.RunEvents {
		s.t.Errorf("a wrong message: %v", err)
		return nil
	}
	s.messages, s.sent = s.messages+1, s.sent+len(batch.Events)
	if s.random.Float64() < s.lose {
		return nil // lost on its way
	}
	taken, err := s.store.TakeEvents(context.Background(), []event.Batch{{Node: "n", Run: batch.Run, Events: batch.Events}}, time.Now())
	if err != nil {
		s.t.Error(err)
	}
	if s.random.Float64() >= s.lose {
		go s.sender.Taken(pxp.RunEventsTaken{Run: batch.Run, Last: taken[0].Last})
	}
	return nil
}

// start runs a sender until the test, or stop, ends it.
func (s *server) start(ctx context.Context, log *machine.Log) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	r := agentevents.New(agentevents.Config{Log: log, Send: s.send, Slog: slog.New(slog.DiscardHandler)})
	s.mu.Lock()
	s.sender = r
	s.mu.Unlock()
	var done sync.WaitGroup
	done.Go(func() { _ = r.Run(ctx) })
	return func() { cancel(); done.Wait() }
}

func newServer(t *testing.T, seed uint64, lose float64) *server {
	t.Helper()
	return &server{t: t, store: eventtest.NewStore(), random: rand.New(rand.NewPCG(seed, 1)), lose: lose}
}

// stored is the numbers of a run's events, as the server has them.
func (s *server) stored(run string) (ns []int, kinds []string, missing int) {
	rows, err := s.store.Events(context.Background(), event.Filter{Run: run, Limit: 1 << 20})
	if err != nil {
		s.t.Error(err)
	}
	for _, e := range rows {
		ns, kinds, missing = append(ns, e.N), append(kinds, e.Kind), missing+e.Missing
	}
	return ns, kinds, missing
}

func resource(n int) pxp.RunEvent { return eventtest.Resource(n, event.Success, "File", fmt.Sprint(n)) }

// wholly fails unless the server has each event of a run once, in order.
func (s *server) wholly(run string, count int) {
	s.t.Helper()
	ns, _, missing := s.stored(run)
	for i, n := range ns {
		if n != i+1 {
			s.t.Fatalf("run %s: number %d at place %d", run, n, i+1)
		}
	}
	if len(ns) != count || missing > 0 {
		s.t.Errorf("run %s: %d of %d events", run, len(ns), count)
	}
}

// Whatever is lost, and however often either side restarts: no event is missing in the end, and none comes twice.
func TestNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			s, log := newServer(t, seed, 0.2), machine.NewLog()
			stop := s.start(t.Context(), log)
			for n := 1; n < 300; n++ {
				for _, run := range []string{"a", "b"} {
					log.Write(run, false, resource(n))
				}
				if n%97 == 0 {
					stop()
					stop = s.start(t.Context(), log)
				}
				if n%10 == 0 {
					<-time.After(time.Duration(seed) * 10 * time.Millisecond)
				}
			}
			log.Write("a", true, eventtest.End(300))
			log.Write("b", true) // killed
			<-time.After(time.Hour)
			synctest.Wait()
			s.wholly("a", 300)
			s.wholly("b", 300)
			if _, kinds, _ := s.stored("b"); kinds[len(kinds)-1] != pxp.RunEnded {
				t.Errorf("a killed run has no end: %v", kinds)
			}
			if left, _ := log.Runs(); len(left) > 0 {
				t.Errorf("kept though stored: %v", left)
			}
			stop()
		})
	}
}

// What the log had to throw away is told.
func TestWhatIsMissingIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := newServer(t, 1, 0), machine.NewLog()
		stop := s.start(t.Context(), log)
		log.Write("r", false, resource(1), resource(2))
		synctest.Wait()
		stop()
		for n := 3; n <= 50; n++ {
			log.Write("r", false, resource(n))
		}
		log.Lose("r", 40)
		stop = s.start(t.Context(), log)
		log.Write("r", true, eventtest.End(51))
		<-time.After(time.Minute)
		ns, kinds, missing := s.stored("r")
		if missing != 38 || len(ns) != 2+1+10+1 || kinds[2] != pxp.EventsMissing || ns[2] != 3 || ns[3] != 41 {
			t.Errorf("%d missing, %v %v", missing, ns, kinds)
		}
		stop()
	})
}

// A server that forgot (its database is an older copy) gets again what is still there.
func TestServerThatForgot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := newServer(t, 1, 0), machine.NewLog()
		stop := s.start(t.Context(), log)
		for n := 1; n <= 20; n++ {
			log.Write("r", false, resource(n))
			synctest.Wait()
		}
		s.mu.Lock()
		s.store = eventtest.NewStore()
		s.mu.Unlock()
		s.sender.Connected()
		log.Write("r", true, resource(21), eventtest.End(22))
		<-time.After(time.Minute)
		_, kinds, missing := s.stored("r")
		if missing != 19 || len(kinds) != 4 { // all but the last were let go when they were acknowledged
			t.Errorf("%d missing, %v", missing, kinds)
		}
		stop()
	})
}

// The first event goes at once, those behind it together.
func TestGathering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := machine.NewLog()
		var sent []int
		var at []time.Duration
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		r := agentevents.New(agentevents.Config{Log: log, Slog: slog.New(slog.DiscardHandler), Send: func(m wire.Message) error {
			batch, err := pxp.ParseRunEvents(m.Data)
			sent, at = append(sent, len(batch.Events)), append(at, time.Since(start))
			return err
		}})
		var done sync.WaitGroup
		done.Go(func() { _ = r.Run(ctx) })
		for n := 1; n <= 11; n++ {
			log.Write("r", false, resource(n))
			synctest.Wait()
		}
		<-time.After(time.Second)
		synctest.Wait()
		if fmt.Sprint(sent) != "[1 10]" || at[0] != 0 || at[1] != 50*time.Millisecond {
			t.Errorf("sent %v at %v", sent, at)
		}
		cancel()
		done.Wait()
	})
}

// A run of 100 000 events is never in memory as a whole.
func TestWindowIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, bytes := machine.NewLog(), 0
		ctx, cancel := context.WithCancel(t.Context())
		r := agentevents.New(agentevents.Config{Log: log, Slog: slog.New(slog.DiscardHandler), WindowBytes: 64 << 10, Send: func(m wire.Message) error {
			bytes += len(m.Data)
			if len(m.Data) > 13<<10 {
				t.Errorf("a message of %d bytes", len(m.Data))
			}
			return nil
		}})
		events := make([]pxp.RunEvent, 2000)
		for i := range events {
			events[i] = resource(i + 1)
		}
		log.Write("r", false, events...)
		var done sync.WaitGroup
		done.Go(func() { _ = r.Run(ctx) })
		<-time.After(5 * time.Second)
		synctest.Wait()
		if most := 64<<10 + 200*600; bytes > most || bytes < 32<<10 {
			t.Errorf("%d bytes were sent without an answer", bytes)
		}
		cancel()
		done.Wait()
	})
}

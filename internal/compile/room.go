package compile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// strictSlices is for how many slices an environment keeps to its share whose compilations others had
// to wait for. So the next one who waits finds a worker at once.
const strictSlices = 10

// makeRoom stops a compilation, where nothing more can be started and somebody waits whose turn it is.
// One at a time: the next look finds out whether that was enough.
func (s *shift) makeRoom(ctx context.Context) {
	if s.Turns == nil || len(s.running) == 0 || len(next(s.situation(ctx))) > 0 {
		return
	}
	rules := fairness{most: s.cfg.Most, slice: s.cfg.Slice, timeout: s.cfg.Timeout}
	now, due := time.Now(), false
	var leases []lease
	var all []held
	for l, r := range s.running {
		if r.stopped {
			return // its worker is about to be free
		}
		h := held{environment: r.Environment, apart: r.Priority.Apart(), ran: now.Sub(r.began), turns: s.turns.of(r.ID)}
		leases, all, due = append(leases, l), append(all, h), due || h.ran >= rules.slice
	}
	if !due {
		return
	}
	lanes, err := s.Turns.Lanes(ctx, s.offer(pick{0, Previewing - 1}))
	if err != nil {
		s.report(ctx, "see who waits failed, will retry", err)
		return
	}
	at, share := rules.stop(all, lanes, now)
	if at < 0 {
		return
	}
	l, h := leases[at], all[at]
	switch {
	case h.apart:
	case share:
		s.strict[h.environment] = now.Add(strictSlices * rules.slice)
	default:
		s.last[h.environment] = now.Add(h.ran) // as long a turn for the others
	}
	if !share {
		s.turns.add(l.id)
	}
	r := s.running[l]
	r.stopped = true
	s.running[l] = r
	s.count.stopped.Add(1)
	s.Log.InfoContext(ctx, "compilation is stopped and put back: it had its turn, and others wait", "node", r.Node, "environment", r.Environment,
		"compilation", r.ID, "ran", h.ran)
	r.kill(errStopped)
}

// putBack gives c back that was stopped for others. It is no attempt: it was not the row's fault.
func (d *Dispatcher) putBack(ctx context.Context, c Compilation) {
	ctx, cancel := context.WithTimeout(ctx, putBackTime)
	defer cancel()
	err := d.Queue.Rest(ctx, c, time.Now(), "it had its turn while others waited; it is compiled again")
	if err != nil && fault.Of(err) != fault.Conflict { // of Conflict it has ended after all
		d.Log.ErrorContext(ctx, "put a compilation back failed, its lease will run out", "compilation", c.ID, "err", err)
	}
}

// putBackTime bounds giving a row back.
const putBackTime = 5 * time.Second

// slowLog says once of each environment that it is slowed, and that it is not any more.
type slowLog struct {
	mu    sync.Mutex
	known map[slowKey]Slowdown
}

type slowKey struct {
	environment fleet.Environment
	apart       bool
}

// look has a look when c may have changed something.
func (l *slowLog) look(ctx context.Context, turns Turns, c Compilation, log *slog.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := c.Err != nil && c.Err.Cause == CauseTimeout
	if turns == nil || !late && len(l.known) == 0 {
		return
	}
	list, err := turns.Slowdowns(ctx)
	if err != nil {
		return // it is only told later
	}
	before := l.known
	l.known = map[slowKey]Slowdown{}
	for _, s := range list {
		key := slowKey{s.Environment, s.Apart}
		l.known[key] = s
		if was, told := before[key]; !told || was.Version != s.Version {
			log.WarnContext(ctx, "environment is slowed: its compilations take too long again and again; one runs at a time, with pauses",
				"environment", s.Environment, "previews", s.Apart, "version", s.Version.Short(), "in_a_row", s.Timeouts)
		}
		delete(before, key)
	}
	for key := range before {
		log.InfoContext(ctx, "environment is not slowed any more", "environment", key.environment, "previews", key.apart)
	}
}

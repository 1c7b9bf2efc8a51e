package release

import (
	"context"
	"log/slog"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
)

// Config is what a service works with.
type Config struct {
	Store    Store
	Previews Previews
	Delivery Delivery
	Runs     Runs
	Resolver Resolver
	Gate     Gate
	// HasRole says whether somebody may approve for a role.
	HasRole func(ctx context.Context, actor fleet.Actor, role string) (bool, error)
	Poll    time.Duration // how often it looks without a hint; default 1 s
	Now     func() time.Time
	Relay   *hint.Relay // to other servers; nil: there are none
	Log     *slog.Logger
}

// Service makes releases and brings them to their end: its parts, each for those who need only that.
type Service struct {
	Records *Records
	Planner *Planner
	Control *Control
	Worker  *Worker
}

// NewService returns a service; its worker does the work.
func NewService(c Config) *Service {
	if c.Gate == nil {
		c.Gate = Open{}
	}
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	records := &Records{store: c.Store, now: c.Now, log: c.Log}
	to := recipients{previews: c.Previews, delivery: c.Delivery}
	worker := &Worker{
		records: records, gate: c.Gate, waves: &waves{records: records, recipients: to, runs: c.Runs, seen: map[int64]int64{}},
		poll: c.Poll, hint: make(chan struct{}, 1), asked: map[int64]time.Time{},
	}
	records.changes.Join(c.Relay, "release")
	worker.others = c.Relay.Join("releases", func(string) { worker.wake() })
	return &Service{
		Records: records,
		Planner: &Planner{
			records: records, recipients: to, previews: c.Previews, delivery: c.Delivery, resolver: c.Resolver, gate: c.Gate, wake: worker.Wake,
		},
		Control: &Control{records: records, hasRole: c.HasRole, wake: worker.Wake},
		Worker:  worker,
	}
}

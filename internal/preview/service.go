package preview

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
)

// Config sets a service up.
type Config struct {
	Store     Store
	Compiler  Compiler
	Bases     Bases
	Logs      Logs
	Resolver  Resolver
	Engines   Engines // nil: there is but one
	Comparing func() (Comparing, error)
	Reach     func(actor fleet.Actor) string // which nodes an actor may see, as a condition; nil: all
	MaxAtOnce int                            // previews that are worked on at the same time; default 2
	Poll      time.Duration                  // how often it looks without a hint; default 1 s
	Relay     *hint.Relay                    // to other servers; nil: there are none
	Log       *slog.Logger
}

// Service makes previews.
type Service struct {
	Config
	wake    chan struct{}
	changes hint.Board   // for those who follow a preview
	others  func(string) // hints to other servers

	mu    sync.Mutex
	live  map[int64]*work   // what is worked on here
	quiet map[int64]quieted // what noise hides of ready previews
}

// NewService returns a service; Run does the work.
func NewService(c Config) *Service {
	if c.MaxAtOnce == 0 {
		c.MaxAtOnce = 2
	}
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{Config: c, wake: make(chan struct{}, 1), live: map[int64]*work{}, quiet: map[int64]quieted{}}
	s.changes.Join(c.Relay, "preview")
	s.others = c.Relay.Join("previews", func(string) { s.wakeHere() })
	return s
}

// Order asks for a preview of a version whose files are stored.
type Order struct {
	Environment fleet.Environment
	New         bool // nothing was deployed to the environment
	Version     fleet.Digest
	Commit      string
	Description string
	Targets     api.JobTargets
	InWords     string // the targets, for people
	// Allowed says whether who asks may see what becomes of these nodes; nil: of all.
	Allowed func(ctx context.Context, nodes []fleet.Certname) error
}

// Create makes a preview of an order. Invalid if it means no node, or too many; NotFound if it means those of an environment that is not there.
func (s *Service) Create(ctx context.Context, actor fleet.Actor, o Order) (Preview, error) {
	if len(o.Description) > MaxDescription || !utf8.ValidString(o.Description) {
		return Preview{}, fault.New(fault.Invalid, "field description: it has %d bytes, at most %d of UTF-8 are allowed", len(o.Description), MaxDescription)
	}
	nodes, err := s.Resolver.Resolve(ctx, o.Environment, o.Targets)
	switch {
	case err != nil:
		return Preview{}, err
	case len(nodes) == 0 && o.New && !o.Targets.Any():
		return Preview{}, fault.New(fault.NotFound, "environment %[1]s is unknown: nothing was deployed to it, and no node is in it; "+
			"deploy to it (`tutti code deploy %[1]s DIR`), or name the nodes to preview for", o.Environment)
	case len(nodes) == 0:
		return Preview{}, fault.New(fault.Invalid, "field targets: no node is meant; see `tutti node list --environment %s`", o.Environment)
	case len(nodes) > MaxTargets:
		return Preview{}, fault.New(fault.Invalid, "field targets: %d nodes are meant, at most %d are allowed", len(nodes), MaxTargets)
	}
	if o.Allowed != nil {
		if err := o.Allowed(ctx, nodes); err != nil {
			return Preview{}, err
		}
	}
	shares := make([]Share, len(nodes))
	for i, node := range nodes {
		shares[i] = Share{Number: uint32(i), Node: node, State: Waiting}
	}
	reach := ""
	if s.Reach != nil {
		reach = s.Reach(actor)
	}
	p, err := s.Store.CreatePreview(ctx, Preview{
		Environment: o.Environment, Version: o.Version, Commit: o.Commit, Description: o.Description, Targets: o.InWords,
		Author: actor.Name, AuthorKind: actor.Kind, Reach: reach, State: Compiling, Counts: Count(shares), CreatedAt: time.Now(),
	}, shares)
	if err == nil {
		s.Wake()
	}
	return p, err
}

// Wake hints that a preview was made, or that a compilation has ended. It never blocks.
func (s *Service) Wake() {
	s.wakeHere()
	s.others("")
}

func (s *Service) wakeHere() {
	select {
	case s.wake <- struct{}{}:
	default: // a hint is waiting already
	}
}

// Preview is one preview; NotFound.
func (s *Service) Preview(ctx context.Context, id int64) (Preview, error) {
	return s.Store.Preview(ctx, id)
}

// Wait returns when more of a preview is known than of so many shares, or when it has ended, or after about a second: what it
// waits for is a hint. NotFound.
func (s *Service) Wait(ctx context.Context, id int64, after int) error {
	return s.changes.Wait(ctx, id, func() (bool, error) {
		p, err := s.Store.Preview(ctx, id)
		return p.State != Compiling || p.Counts.Known() > after, err
	})
}

// Previews is a page of previews, the newest first.
func (s *Service) Previews(ctx context.Context, page Page) ([]Preview, error) {
	return s.Store.Previews(ctx, page)
}

// Shares is a page of a preview's shares; NotFound.
func (s *Service) Shares(ctx context.Context, id int64, page SharePage) ([]Share, error) {
	if _, err := s.Store.Preview(ctx, id); err != nil {
		return nil, err
	}
	return s.Store.PreviewShares(ctx, id, page)
}

// Groups is the first groups of a preview: of one that compiles, as far as is known here.
func (s *Service) Groups(ctx context.Context, p Preview, page GroupPage) ([]api.ChangeGroup, error) {
	if p.State == Ready {
		return s.Store.PreviewGroups(ctx, p.ID, page)
	}
	w := s.working(p.ID)
	if w == nil {
		return nil, nil
	}
	so, err := w.so(page.From + page.Limit)
	if err != nil {
		return nil, err
	}
	return so.Groups[min(page.From, len(so.Groups)):], nil
}

// Members is the shares of the nodes that have one of some changes, a page of them. NotFound.
func (s *Service) Members(ctx context.Context, p Preview, keys []string, page SharePage) ([]Share, error) {
	var all []uint32
	for _, key := range keys {
		numbers, err := s.numbers(ctx, p, key)
		if err != nil {
			return nil, err
		}
		all = append(all, numbers...)
	}
	slices.Sort(all)
	var found []Share
	for _, number := range slices.Compact(all) {
		if number < page.From || len(found) == page.Limit {
			continue
		}
		share, err := s.Store.PreviewShares(ctx, p.ID, SharePage{From: number, Limit: 1})
		if err != nil {
			return nil, err
		}
		found = append(found, share...)
	}
	return found, nil
}

func (s *Service) numbers(ctx context.Context, p Preview, key string) ([]uint32, error) {
	if p.State == Ready {
		return s.Store.PreviewGroupNodes(ctx, p.ID, key)
	}
	if w := s.working(p.ID); w != nil {
		if numbers := w.members(key); len(numbers) > 0 {
			return numbers, nil
		}
	}
	return nil, &fault.Error{
		Kind: fault.NotFound, Detail: fmt.Sprintf("preview %d has no change %.80q (yet)", p.ID, key), Hint: fmt.Sprintf("`tutti preview show %d` lists them", p.ID),
	}
}

// Cancel ends a preview that compiles. What was wanted for it may still be compiled.
func (s *Service) Cancel(ctx context.Context, actor fleet.Actor, id int64) (Preview, error) {
	p, err := s.Store.Preview(ctx, id)
	if err != nil || p.State == Cancelled {
		return p, err
	}
	if p.State == Ready {
		return p, fault.New(fault.Conflict, "preview %d is ready: there is nothing to cancel", id)
	}
	p.State, p.Reason, p.EndedAt = Cancelled, "cancelled by "+actor.Name, time.Now()
	p, err = s.Store.CancelPreview(ctx, p)
	s.Wake()
	s.changes.Tell(id)
	return p, err
}

// Saying is a remark that somebody makes.
type Saying struct {
	Kind   RemarkKind
	Groups []string // keys; none: the whole preview
	All    bool     // of a ready preview: every group
	Text   string
}

// Say stores what somebody says of groups of a preview. Invalid, NotFound.
func (s *Service) Say(ctx context.Context, actor fleet.Actor, id int64, say Saying) ([]Remark, error) {
	p, err := s.Store.Preview(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := say.check(); err != nil {
		return nil, err
	}
	keys := slices.Compact(slices.Sorted(slices.Values(say.Groups)))
	for _, key := range keys {
		if _, err := s.numbers(ctx, p, key); err != nil {
			return nil, err
		}
	}
	if say.All {
		if keys, err = s.allKeys(ctx, p); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		keys = []string{""}
	}
	now, remarks := time.Now(), make([]Remark, len(keys))
	for i, key := range keys {
		remarks[i] = Remark{Group: key, Kind: say.Kind, Text: say.Text, Author: actor.Name, At: now}
	}
	return s.Store.AddRemarks(ctx, id, remarks)
}

func (say Saying) check() error {
	switch {
	case say.Kind != Acknowledged && say.Kind != Withdrawn && say.Kind != Comment:
		return fault.New(fault.Invalid, "field kind: %.40q is none of %s, %s and %s", say.Kind, Acknowledged, Withdrawn, Comment)
	case len(say.Groups) > MaxRemarkKeys:
		return fault.New(fault.Invalid, "field groups: it has %d entries, at most %d are allowed", len(say.Groups), MaxRemarkKeys)
	case len(say.Text) > MaxRemarkBytes || !utf8.ValidString(say.Text):
		return fault.New(fault.Invalid, "field text: it has %d bytes, at most %d of UTF-8 are allowed", len(say.Text), MaxRemarkBytes)
	case say.Kind == Comment && say.Text == "":
		return fault.New(fault.Invalid, "field text: a comment needs one")
	case say.All && len(say.Groups) > 0:
		return fault.New(fault.Invalid, "field groups: all of them are meant already")
	case say.Kind != Comment && !say.All && len(say.Groups) == 0:
		return fault.New(fault.Invalid, "field groups: name at least one, or all")
	}
	return nil
}

// allKeys is the key of every group of a ready preview.
func (s *Service) allKeys(ctx context.Context, p Preview) ([]string, error) {
	if p.State != Ready {
		return nil, fault.New(fault.Conflict, "preview %d is %s: all of its changes are known when it is ready", p.ID, p.State)
	}
	var keys []string
	for {
		groups, err := s.Store.PreviewGroups(ctx, p.ID, GroupPage{From: len(keys), Limit: 1000})
		if err != nil || len(groups) == 0 {
			return keys, err
		}
		for _, g := range groups {
			keys = append(keys, g.Key)
		}
	}
}

// Remarks is all that was said of a preview, in order.
func (s *Service) Remarks(ctx context.Context, id int64) ([]Remark, error) {
	return s.Store.Remarks(ctx, id)
}

func (s *Service) working(id int64) *work {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

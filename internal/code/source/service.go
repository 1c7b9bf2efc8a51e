package source

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Parts is what a Service works with.
type Parts struct {
	Store        Store
	Sealer       Sealer
	Repositories Repositories
	Modules      Modules
	Deployer     Deployer
	Blobs        cas.Store
	Dir          string // for work trees
	Log          *slog.Logger
}

// The bounds of what goes on at a time.
const (
	workers    = 2                // deploys
	looks      = 8                // looks at repositories
	deployTime = 30 * time.Minute // of one deploy
	lookTime   = 2 * time.Minute  // of one look
)

// Service deploys from sources.
type Service struct {
	Parts

	mu       sync.Mutex // also held while a row is written: rows change in the order in which things happened
	sources  map[string]*watched
	branches map[fleet.Environment]*Branch
	trees    map[string]string // of each source, the work tree of an earlier deploy that nobody uses
	last     int64             // number of a deploy
	changed  chan struct{}     // closed when anything changes

	looking  chan struct{} // has room for those who look
	checking sync.Map      // source's name -> *sync.Mutex: one checkout of a source at a time
}

// watched is a source and when it is looked at.
type watched struct {
	Source
	due     time.Time
	looking bool
	again   bool // it was asked for while somebody looked
}

// Open reads the sources.
func Open(ctx context.Context, parts Parts) (*Service, error) {
	s := &Service{Parts: parts, trees: map[string]string{}, changed: make(chan struct{}), looking: make(chan struct{}, looks)}
	return s, s.read(ctx)
}

// read reads the rows. What was queued or deploying is queued.
func (s *Service) read(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := s.Store.Sources(ctx)
	if err != nil {
		return err
	}
	list, err := s.Store.Branches(ctx)
	if err != nil {
		return err
	}
	s.sources, s.branches = map[string]*watched{}, map[fleet.Environment]*Branch{}
	for _, row := range rows {
		if row.Secrets, err = openSecrets(row.Sealed, s.Sealer); err != nil {
			row.Trouble = "its key and address cannot be read: they were sealed with another key; add the source again with --replace"
			s.Log.ErrorContext(ctx, "the secrets of a source cannot be read", "source", row.Name, "err", err)
		}
		s.sources[row.Name] = &watched{Source: row.Source, due: time.Now()} // a push may have come while nobody looked
	}
	for _, b := range list {
		if b.State == Deploying {
			b.State = Queued
		}
		s.last = max(s.last, b.ID, b.NextID)
		s.branches[b.Environment] = &b
	}
	s.tell()
	return nil
}

// readAgain is how soon rows that could not be read are read again.
const readAgain = time.Second

// Run looks at sources and deploys until ctx is done. One of all servers does at a time; it begins with the rows, which another one may have
// left. It may be called again when it has ended.
func (s *Service) Run(ctx context.Context) error {
	for err := s.read(ctx); err != nil && ctx.Err() == nil; err = s.read(ctx) {
		s.Log.ErrorContext(ctx, "sources could not be read, will retry", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(readAgain):
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error { s.work(ctx); return nil })
	}
	group.Go(func() error { s.poll(ctx, group); return nil })
	return group.Wait()
}

// poll looks at each source when it is due.
func (s *Service) poll(ctx context.Context, group *errgroup.Group) {
	for {
		due, next, changed := s.due(time.Now())
		for _, name := range due {
			group.Go(func() error { s.lookDue(ctx, name); return nil })
		}
		wait := time.NewTimer(next)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-changed:
		case <-wait.C:
		}
		wait.Stop()
	}
}

// maxPause is the longest time between two looks at what is due.
const maxPause = time.Minute

// due takes the sources that are to be looked at, and says when the next one is.
func (s *Service) due(now time.Time) (names []string, next time.Duration, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = maxPause
	for name, w := range s.sources {
		switch {
		case w.due.IsZero() || w.looking:
		case w.due.After(now):
			next = min(next, w.due.Sub(now))
		default:
			w.looking = true
			names = append(names, name)
		}
	}
	return names, next, s.changed
}

// lookDue looks at a source, and says when it is due again.
func (s *Service) lookDue(ctx context.Context, name string) {
	_, err := s.Look(ctx, name, false)
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
		s.Log.WarnContext(ctx, "a source could not be looked at, will retry", "source", name, "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.sources[name]
	if w == nil {
		return
	}
	w.due = time.Time{}
	switch {
	case w.again:
		w.due = time.Now()
	case w.Interval > 0:
		w.due = time.Now().Add(w.Interval)
	case err != nil:
		w.due = time.Now().Add(maxPause) // a webhook was believed: it does not come again
	}
	w.looking, w.again = false, false
	s.tell()
}

// tell wakes all who wait. The caller holds the lock.
func (s *Service) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Hint says that a source may have changed. It returns at once; what came meanwhile is one look.
func (s *Service) Hint(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.sources[name]
	if w == nil {
		return s.unknown(name)
	}
	if w.looking {
		w.again = true
	}
	w.due = time.Now()
	s.tell()
	return nil
}

func (s *Service) unknown(name string) error {
	return &fault.Error{
		Kind: fault.NotFound, Detail: "there is no source " + name, Hint: fault.DidYouMean(name, slices.Sorted(maps.Keys(s.sources))),
	}
}

// Sources lists the sources by name, with their secrets.
func (s *Service) Sources() []Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Source, 0, len(s.sources))
	for _, name := range slices.Sorted(maps.Keys(s.sources)) {
		list = append(list, s.sources[name].Source)
	}
	return list
}

// Source is one of them; NotFound.
func (s *Service) Source(name string) (Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.sources[name]
	if w == nil {
		return Source{}, s.unknown(name)
	}
	return w.Source, nil
}

// Branches lists what is known of the branches of a source, by environment; of all sources without a name.
func (s *Service) Branches(name string) []Branch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Branch
	for _, env := range slices.Sorted(maps.Keys(s.branches)) {
		if b := s.branches[env]; name == "" || b.Source == name {
			list = append(list, *b)
		}
	}
	return list
}

// Add keeps a source. replace says that there may be one of this name: its secrets stay unless others are given, and so does what is known
// of its branches. It is looked at soon, and environments of which other settings make another version are deployed again.
func (s *Service) Add(ctx context.Context, from Source, replace bool) (Source, error) {
	shown, err := s.Repositories.Check(from.Secrets.URL)
	if err != nil {
		return from, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.sources[from.Name]
	switch {
	case before != nil && !replace:
		return from, fault.New(fault.Conflict, "there is a source %s already, of %s; --replace changes it", from.Name, before.URL)
	case before == nil && len(s.sources) >= MaxSources:
		return from, fault.New(fault.Conflict, "there are %d sources, and no more are kept: remove one", len(s.sources))
	case before != nil:
		from.Secrets.Key = cmp.Or(from.Secrets.Key, before.Secrets.Key)
		from.Secrets.KnownHosts = cmp.Or(from.Secrets.KnownHosts, before.Secrets.KnownHosts)
		from.Secrets.Webhook = cmp.Or(from.Secrets.Webhook, before.Secrets.Webhook)
	}
	from.URL = shown
	if err := from.Check(); err != nil {
		return from, err
	}
	sealed, err := from.Secrets.seal(s.Sealer)
	if err != nil {
		return from, err
	}
	if err := s.Store.SaveSource(ctx, Row{from, sealed}); err != nil {
		return from, err
	}
	if before == nil {
		s.sources[from.Name] = &watched{Source: from, due: time.Now()}
		s.tell()
		return from, nil
	}
	other := from.Submodules != before.Submodules || from.NoModules != before.NoModules
	before.Source, before.due, before.again = from, time.Now(), before.looking
	s.tell()
	if other {
		err = s.deployAgain(ctx, from)
	}
	return from, err
}

// deployAgain asks for deploys of a source's environments, whose commits are no reason for it. The caller holds the lock.
func (s *Service) deployAgain(ctx context.Context, from Source) error {
	at := time.Now().UTC().Truncate(time.Microsecond)
	for _, known := range s.branches {
		b := *known
		env, wanted, err := from.Environment(b.Name)
		if err != nil || !wanted || env != b.Environment || b.Source != from.Name || !b.GoneAt.IsZero() {
			continue // the next look says what becomes of it
		}
		b.ask(s.number, "", at)
		if err := s.save(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// Remove forgets a source. Its environments stay as they are.
func (s *Service) Remove(ctx context.Context, name string) error {
	tree, err := s.remove(ctx, name)
	if tree != "" {
		_ = os.RemoveAll(tree) // what is left goes at the next start
	}
	return err
}

// remove returns the work tree that nobody uses any more.
func (s *Service) remove(ctx context.Context, name string) (tree string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sources[name] == nil {
		return "", s.unknown(name)
	}
	if err := s.Store.RemoveSource(ctx, name); err != nil {
		return "", err
	}
	delete(s.sources, name)
	maps.DeleteFunc(s.branches, func(_ fleet.Environment, b *Branch) bool { return b.Source == name })
	s.tell()
	tree = s.trees[name]
	delete(s.trees, name)
	return tree, s.Repositories.Forget(name)
}

// save keeps a branch's row. The caller holds the lock.
func (s *Service) save(ctx context.Context, b Branch) error {
	if err := s.Store.SaveBranch(ctx, b); err != nil {
		return err
	}
	s.branches[b.Environment] = &b
	s.tell()
	return nil
}

// number is a number that no deploy has. The caller holds the lock.
func (s *Service) number() int64 { s.last++; return s.last }

// Wait waits until deploys of environments have ended, by their numbers, and returns how they ended: each is complete or failed.
func (s *Service) Wait(ctx context.Context, deploys map[fleet.Environment]int64) ([]Branch, error) {
	for {
		s.mu.Lock()
		changed, ended := s.changed, true
		var list []Branch
		for _, env := range slices.Sorted(maps.Keys(deploys)) {
			b := s.branches[env]
			if b == nil {
				list = append(list, Branch{
					Environment: env, ID: deploys[env], State: Failed, Error: "its source was removed, or the environment was deleted, before the deploy ended",
				})
				continue
			}
			left, over := b.after(deploys[env])
			ended = ended && over
			list = append(list, left)
		}
		s.mu.Unlock()
		if ended {
			return list, nil
		}
		select {
		case <-ctx.Done():
			return list, fault.Wrap(fault.Unavailable, ctx.Err(), "the deploys go on, and nobody waits for them any more")
		case <-changed:
		}
	}
}

package source

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Looked is what a look at a source led to.
type Looked struct {
	Deploys []Branch // that were asked for
	Gone    []Branch // whose branch is not there any more; those that were purged are not among them
	Purged  []fleet.Environment
	Refused []string
}

// Look asks a source's repository for its branches and asks for deploys of those that changed. purge deletes the
// environments of deleted branches, whatever the source says.
func (s *Service) Look(ctx context.Context, name string, purge bool) (Looked, error) {
	from, err := s.Source(name)
	if err != nil {
		return Looked{}, err
	}
	select {
	case s.looking <- struct{}{}:
		defer func() { <-s.looking }()
	case <-ctx.Done():
		return Looked{}, ctx.Err()
	}
	heads, err := s.heads(ctx, from)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.sources[name]
	if w == nil {
		return Looked{}, s.unknown(name) // it was removed meanwhile
	}
	at := time.Now().UTC().Truncate(time.Microsecond)
	w.LookedAt = at
	if err != nil {
		w.Trouble = ErrorText(err)
		s.tell()
		return Looked{}, err
	}
	known := make(map[fleet.Environment]Branch, len(s.branches))
	for env, b := range s.branches {
		known[env] = *b
	}
	plan := w.Plan(heads, known)
	w.Trouble, w.Refused = "", plan.Refused
	looked := Looked{Refused: plan.Refused}
	for _, b := range plan.Deploy {
		b.ask(s.number, "", at)
		if err := s.save(ctx, b); err != nil {
			return looked, err
		}
		looked.Deploys = append(looked.Deploys, b)
	}
	for _, b := range plan.Gone {
		if err := s.gone(ctx, b, (purge || w.Purge) && plan.Matching > 0, at, &looked); err != nil {
			return looked, err
		}
	}
	s.tell()
	return looked, nil
}

func (s *Service) heads(ctx context.Context, from Source) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return s.Repositories.Open(from).Branches(ctx)
}

// gone notes that a branch is not there any more. The caller holds the lock.
func (s *Service) gone(ctx context.Context, b Branch, purge bool, at time.Time, looked *Looked) error {
	if purge && b.State != Deploying {
		err := s.Deployer.Remove(ctx, b.Environment)
		if err == nil || fault.Is(err, fault.NotFound) {
			if err := s.Store.RemoveBranch(ctx, b.Environment); err != nil {
				return err
			}
			delete(s.branches, b.Environment)
			looked.Purged = append(looked.Purged, b.Environment)
			s.Log.InfoContext(ctx, "the environment of a deleted branch was deleted", "environment", b.Environment, "source", b.Source)
			return nil
		}
		b.Error = "its branch was deleted, and the environment cannot be: " + ErrorText(err)
	}
	known := !b.GoneAt.IsZero()
	if !known {
		b.GoneAt = at
		s.Log.InfoContext(ctx, "a branch was deleted, and its environment stays", "environment", b.Environment, "source", b.Source)
	}
	looked.Gone = append(looked.Gone, b)
	if known && !purge {
		return nil
	}
	return s.save(ctx, b)
}

// Deploy asks for deploys of environments, whether or not their branches changed; of all without a name. Environments that no source
// has are a NotFound, and then nothing is asked for.
func (s *Service) Deploy(ctx context.Context, environments []fleet.Environment, by string) ([]Branch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, env := range environments {
		if s.branches[env] == nil {
			return nil, &fault.Error{
				Kind: fault.NotFound, Detail: fmt.Sprintf("the environment %s is no branch of a source", env),
				Hint: fmt.Sprintf("`tutti code source sync NAME` looks for its branch; `tutti code deploy %s DIR` deploys a directory", env),
			}
		}
	}
	at := time.Now().UTC().Truncate(time.Microsecond)
	asked := make([]Branch, 0, len(environments))
	for _, env := range environments {
		b := *s.branches[env]
		id := b.ask(s.number, by, at)
		if err := s.save(ctx, b); err != nil {
			return asked, err
		}
		b.ID = id
		asked = append(asked, b)
	}
	return asked, nil
}

// work deploys what is queued, the longest waiting first.
func (s *Service) work(ctx context.Context) {
	for {
		b, from, changed := s.take(ctx)
		if b == nil {
			look := time.NewTimer(maxPause) // a row that could not be written is tried again
			select {
			case <-ctx.Done():
			case <-changed:
			case <-look.C:
			}
			look.Stop()
			if ctx.Err() != nil {
				return
			}
			continue
		}
		if !s.deployOne(ctx, *b, from) {
			return
		}
	}
}

// deployOne deploys an environment; false says that the server stops. A work tree that is not kept goes when it is noted how the deploy ended: that
// takes as long as making it, and nobody has to wait for it.
func (s *Service) deployOne(ctx context.Context, b Branch, from Source) bool {
	dir, err := s.tree(from.Name)
	var ended Outcome
	defer func() {
		if ended.Err != nil || ctx.Err() != nil || !s.keep(from, dir) {
			_ = os.RemoveAll(dir)
		}
	}()
	if err != nil {
		ended = Outcome{Err: fault.Wrap(fault.Unavailable, err, "no directory could be made for the work tree"), Retry: true}
	} else {
		ended = s.deploy(ctx, b, from, dir)
	}
	if ctx.Err() != nil {
		return false // its row is queued when the server starts again
	}
	s.ended(ctx, b, ended)
	return true
}

// take makes the environment that is queued longest the one that is deployed.
func (s *Service) take(ctx context.Context) (taken *Branch, from Source, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.changed
	for _, b := range s.branches {
		if b.State == Queued && (taken == nil || cmp.Or(b.Queued.Compare(taken.Queued), cmp.Compare(b.ID, taken.ID)) < 0) {
			taken = b
		}
	}
	if taken == nil || ctx.Err() != nil {
		return nil, from, changed
	}
	b := *taken
	b.State = Deploying
	if err := s.save(ctx, b); err != nil {
		s.Log.ErrorContext(ctx, "a deploy could not begin, will retry", "environment", b.Environment, "err", err)
		return nil, from, changed
	}
	return &b, s.sources[b.Source].Source, changed
}

// deploy makes a version of a branch, and the version the environment's. dir is what tree returned.
func (s *Service) deploy(ctx context.Context, b Branch, from Source, dir string) (o Outcome) {
	ctx, cancel := context.WithTimeoutCause(ctx, deployTime, fault.New(fault.Unavailable, "the deploy took more than %s and was stopped", deployTime))
	defer cancel()
	defer func() {
		if o.Err != nil && context.Cause(ctx) != nil {
			o.Err = context.Cause(ctx)
		}
		o.Retry = o.Retry || fault.Is(o.Err, fault.Unavailable) || fault.Is(o.Err, fault.Internal)
	}()
	commit, err := s.checkout(ctx, from, b.Name, dir)
	if err != nil {
		return Outcome{Err: err, Retry: !fault.Is(err, fault.NotFound)} // it may be reached later
	}
	s.tries(ctx, b.Environment, commit)
	version, err := s.version(ctx, b, from, commit, dir)
	return Outcome{Commit: commit, Version: version.ID, Err: err}
}

func (s *Service) checkout(ctx context.Context, from Source, branch, dir string) (string, error) {
	one, _ := s.checking.LoadOrStore(from.Name, new(sync.Mutex))
	one.(*sync.Mutex).Lock() // whoever has it ends by time
	defer one.(*sync.Mutex).Unlock()
	return s.Repositories.Open(from).Checkout(ctx, branch, dir)
}

// tries notes which commit is being deployed: a look that finds it asks for nothing.
func (s *Service) tries(ctx context.Context, env fleet.Environment, commit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.branches[env]; now != nil && now.State == Deploying {
		b := *now
		b.Tried = commit
		if err := s.save(ctx, b); err != nil {
			s.Log.WarnContext(ctx, "the commit of a deploy could not be noted", "environment", env, "err", err)
		}
	}
}

func (s *Service) version(ctx context.Context, b Branch, from Source, commit, dir string) (code.Version, error) {
	if !from.NoModules {
		if err := s.Modules.Install(ctx, dir); err != nil {
			return code.Version{}, err
		}
	}
	bundle, err := code.Build(ctx, dir, code.BuildOptions{Enclosed: true})
	if err != nil {
		return code.Version{}, within(dir, err)
	}
	if err := modulesCame(from, bundle); err != nil {
		return code.Version{}, err
	}
	if !bundle.Manifest.IsControlRepository() {
		return code.Version{}, fault.New(fault.Invalid, "the branch has neither manifests, modules, environment.conf nor hiera.yaml: it is no control repository")
	}
	if _, err := bundle.Upload(ctx, s.Blobs); err != nil {
		return code.Version{}, err
	}
	actor := "source " + from.Name
	if b.By != "" {
		actor = b.By
	}
	return s.Deployer.Deploy(ctx, code.Deployment{
		Environment: b.Environment, Manifest: bundle.Manifest, Commit: commit, Origin: from.URL + "@" + b.Name, Actor: actor, At: time.Now(),
	})
}

// modulesCame refuses a tree without the modules that its Puppetfile names: what resolved it may have ended well, and have put them where nobody
// looks. The Puppetfile is read for it, not run.
func modulesCame(from Source, bundle *code.Bundle) error {
	if from.NoModules {
		return nil
	}
	missing, err := bundle.MissingModules()
	if err != nil || len(missing) == 0 {
		return err
	}
	names := strings.Join(missing[:min(len(missing), maxNamed)], ", ")
	if more := len(missing) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return &fault.Error{
		Kind: fault.Invalid, Detail: fmt.Sprintf("%s of the Puppetfile did not come into the repository: %s", fault.Count(len(missing), "module"), names),
		Hint: "install them below the repository (moduledir, install_path), or add the source again with --no-puppetfile and --replace",
	}
}

// maxNamed is how many missing modules are named.
const maxNamed = 10

// ended notes how a deploy ended.
func (s *Service) ended(ctx context.Context, b Branch, o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.branches[b.Environment]
	if now == nil {
		return // its source was removed
	}
	after := *now
	at := time.Now().UTC().Truncate(time.Microsecond)
	after.end(o, at)
	if fault.Is(o.Err, fault.NotFound) && after.GoneAt.IsZero() {
		after.GoneAt = at // the branch was deleted after somebody looked
	}
	if o.Err != nil {
		s.Log.WarnContext(ctx, "a deploy from git failed", "environment", b.Environment, "source", b.Source, "branch", b.Name, "commit", o.Commit, "err", o.Err)
	}
	if err := s.save(ctx, after); err != nil {
		s.Log.ErrorContext(ctx, "how a deploy ended could not be noted", "environment", b.Environment, "err", err)
		s.branches[b.Environment] = &after
		s.tell()
	}
}

// within says an error without the path of the work tree, which means nothing to anybody.
func within(dir string, err error) error {
	detail := fault.Detail(err)
	if !strings.Contains(detail, dir) {
		return err
	}
	if resolved, linked := filepath.EvalSymlinks(dir); linked == nil {
		detail = strings.ReplaceAll(detail, resolved+"/", "")
	}
	return fault.Wrap(fault.Of(err), err, "%s", strings.ReplaceAll(detail, dir+"/", ""))
}

// Environments asks a source's repository which environments its branches would be. Nothing is deployed.
func (s *Service) Environments(ctx context.Context, name string) ([]fleet.Environment, error) {
	from, err := s.Source(name)
	if err != nil {
		return nil, err
	}
	heads, err := s.heads(ctx, from)
	if err != nil {
		return nil, err
	}
	var list []fleet.Environment
	for branch := range heads {
		if env, wanted, err := from.Environment(branch); wanted && err == nil {
			list = append(list, env)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

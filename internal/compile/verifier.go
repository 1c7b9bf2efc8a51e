package compile

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// VerifierConfig sets a verifier up. Start from DefaultVerifier.
type VerifierConfig struct {
	Waiting      int           // most compilations that wait to be verified; more are dropped
	WaitingBytes int           // of their orders and answers
	Poll         time.Duration // how often to look whether catalogs of a deploy are there, and for room
	Patience     time.Duration // how long after a deploy its sample is looked for
}

// DefaultVerifier is what suits most servers.
func DefaultVerifier() VerifierConfig {
	return VerifierConfig{Waiting: 64, WaitingBytes: 64 << 20, Poll: 5 * time.Second, Patience: time.Hour}
}

// VerifierParts is what a verifier works with. The settings are asked for each time.
type VerifierParts struct {
	Plain       Plain
	Store       Verifications
	History     History
	Reuser      *Reuser // its orders, inventory, documents and stops
	Gate        Gate    // nil: the machine is always idle
	Share       func() float64
	AfterDeploy func() int // how many sets of classes are verified after a deploy
	// Alarm is told of each difference, when it is stored; nil: nobody is.
	Alarm func(ctx context.Context, v Verification)
	Log   *slog.Logger
}

// Verifier has samples of catalogs compiled by plain Puppet, one at a time, and compares. It never holds up a compilation:
// what waits is bounded, and dropped when it is too much.
type Verifier struct {
	VerifierParts
	cfg     VerifierConfig
	waiting chan second
	count   struct {
		outcomes [4]atomic.Uint64 // in the order of VerifyOutcomes
		dropped  atomic.Uint64
		bytes    atomic.Int64
	}

	mu      sync.Mutex
	deploys map[fleet.Environment]deployed
}

// second is a compilation that ended just now, with all that a second opinion on it needs.
type second struct {
	Compilation
	order   Order
	asked   []Question
	answers map[fleet.Digest]json.RawMessage
}

// deployed is a version whose sample is still to be verified.
type deployed struct {
	version fleet.Digest
	until   time.Time
	nodes   []fleet.Certname // nil: not chosen yet
}

// NewVerifier returns a verifier; Run does what nobody asks for.
func NewVerifier(parts VerifierParts, cfg VerifierConfig) *Verifier {
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	return &Verifier{VerifierParts: parts, cfg: cfg, waiting: make(chan second, cfg.Waiting), deploys: map[fleet.Environment]deployed{}}
}

// ended is told of each compilation that a compiler ended. It takes some, and never blocks.
func (v *Verifier) ended(s *second) {
	if v == nil || s == nil || rand.Float64() >= v.Share() { //nolint:gosec // only picks samples
		return
	}
	if v.count.bytes.Add(s.size()) > int64(v.cfg.WaitingBytes) {
		v.count.bytes.Add(-s.size())
		v.count.dropped.Add(1)
		return
	}
	select {
	case v.waiting <- *s:
	default:
		v.count.bytes.Add(-s.size())
		v.count.dropped.Add(1)
	}
}

func (s *second) size() (n int64) {
	for _, rows := range s.answers {
		n += int64(len(rows))
	}
	return n + int64(len(s.order.Facts)+len(s.order.Trusted)+len(s.order.Classes)+len(s.order.Parameters)+len(s.order.Data))
}

// Deployed hints that env uses version now: nodes that stand for sets of classes are verified when their catalogs are there. It
// never blocks.
func (v *Verifier) Deployed(env fleet.Environment, version fleet.Digest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.deploys[env].version != version {
		v.deploys[env] = deployed{version: version, until: time.Now().Add(v.cfg.Patience)}
	}
}

// Run verifies samples until ctx is done.
func (v *Verifier) Run(ctx context.Context) error {
	tick := time.NewTicker(v.cfg.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-v.waiting:
			if v.room(ctx, tick.C) {
				_, _ = v.report(ctx, s.Compilation, v.opinion(ctx, s), Sampled) // it logs what goes wrong
			}
			v.count.bytes.Add(-s.size())
		case <-tick.C:
			v.afterDeploys(ctx)
		}
	}
}

// room waits while the machine has more than enough to do; false when ctx is done.
func (v *Verifier) room(ctx context.Context, again <-chan time.Time) bool {
	for v.Gate != nil && v.Gate.Room(ctx) == Full {
		select {
		case <-ctx.Done():
			return false
		case <-again:
		}
	}
	return ctx.Err() == nil
}

// afterDeploys verifies one node whose catalog of a deployed version is there.
func (v *Verifier) afterDeploys(ctx context.Context) {
	for env, d := range v.pending(ctx) {
		for i, node := range d.nodes {
			if v.Gate != nil && v.Gate.Room(ctx) == Full || ctx.Err() != nil {
				return
			}
			s, err := v.made(ctx, node, env, d.version)
			if err != nil {
				continue // it is not there yet
			}
			_, _ = v.report(ctx, s.Compilation, v.again(ctx, s), AfterDeploy) // it logs what goes wrong
			d.nodes = slices.Delete(slices.Clone(d.nodes), i, i+1)
			v.put(env, d)
			return
		}
	}
}

// pending chooses the nodes of deploys that have none yet, and forgets what waited too long.
func (v *Verifier) pending(ctx context.Context) map[fleet.Environment]deployed {
	v.mu.Lock()
	found := maps.Clone(v.deploys)
	v.mu.Unlock()
	for env, d := range found {
		most := v.AfterDeploy()
		switch {
		case most <= 0 || time.Now().After(d.until):
			v.count.dropped.Add(uint64(len(d.nodes)))
			d.nodes = nil
			v.put(env, d)
			delete(found, env)
		case d.nodes == nil:
			nodes, err := v.Sample(ctx, env, most)
			if err != nil && ctx.Err() == nil {
				v.Log.WarnContext(ctx, "no catalogs are verified after a deploy, will retry", "environment", env, "err", err)
			}
			if d.nodes = nodes; len(nodes) > 0 { // else there are no catalogs yet
				v.put(env, d)
			}
			found[env] = d
		}
	}
	return found
}

// put notes what is left of a deploy, unless another one came; one without nodes is done.
func (v *Verifier) put(env fleet.Environment, d deployed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.deploys[env].version != d.version:
	case len(d.nodes) == 0:
		delete(v.deploys, env)
	default:
		v.deploys[env] = d
	}
}

// Sample is the nodes that stand for the n largest sets of classes in env.
func (v *Verifier) Sample(ctx context.Context, env fleet.Environment, n int) ([]fleet.Certname, error) {
	sets, err := v.Store.ClassSets(ctx, env)
	if err != nil {
		return nil, err
	}
	nodes := make([]fleet.Certname, min(n, len(sets)))
	for i := range nodes {
		nodes[i] = sets[i].Node
	}
	return nodes, nil
}

// Verify compares the catalog of a version that a node has, or why it has none, with what plain Puppet gives. NotFound if the
// version was never compiled for it.
func (v *Verifier) Verify(ctx context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest) (Verification, error) {
	s, err := v.made(ctx, node, env, version)
	if err != nil {
		return Verification{}, err
	}
	verdict := v.again(ctx, s)
	if ctx.Err() != nil {
		return Verification{}, ctx.Err()
	}
	return v.report(ctx, s.Compilation, verdict, ByHand)
}

// made finds what a version gave a node: the newest catalog, if it stands for the version, else one that was compiled of it, else its failure.
func (v *Verifier) made(ctx context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest) (second, error) {
	c, err := v.Reuser.Store.Newest(ctx, node, env)
	if err == nil && c.Version != version && c.unchangedSince() != version { // it would be used again if the node asked now
		verdict, failed := v.Reuser.Judge(ctx, Wish{Node: node, Environment: env, Version: version, Trusted: c.Trusted})
		if c, err = verdict.From, failed; err == nil && !verdict.Holds {
			err = fault.New(fault.NotFound, "%s", verdict.Why)
		}
	}
	if fault.Is(err, fault.NotFound) {
		c, err = v.Store.DoneOf(ctx, node, env, version)
	}
	if err == nil {
		c.Version = version
		return second{Compilation: c}, nil
	}
	if fault.Of(err) != fault.NotFound {
		return second{}, err
	}
	failed, lost := v.History.LastFailure(ctx, node, env, version)
	if fault.Of(lost) == fault.NotFound && lost != nil {
		return second{}, fault.New(fault.NotFound, "%s has no catalog of version %s in %s to verify: `tutti compile now %s` compiles the current version",
			node, version.Short(), env, node)
	}
	return second{Compilation: failed}, lost
}

// report counts and stores a verdict, and raises the alarm.
func (v *Verifier) report(ctx context.Context, c Compilation, verdict Verification, cause VerifyCause) (Verification, error) {
	if ctx.Err() != nil {
		return verdict, ctx.Err()
	}
	verdict.Node, verdict.Environment, verdict.Version, verdict.Catalog, verdict.Cause = c.Node, c.Environment, c.Version, c.Catalog, cause
	verdict.At = time.Now()
	if c.Inputs != nil {
		verdict.Inputs = c.Inputs.Digest()
	}
	for i, outcome := range VerifyOutcomes() {
		if outcome == verdict.Outcome {
			v.count.outcomes[i].Add(1)
		}
	}
	log := v.Log.With("node", c.Node, "environment", c.Environment, "version", c.Version.Short(), "catalog", c.Catalog.Short(), "cause", cause)
	if verdict.Outcome == Differs {
		v.stop(ctx, log, c, verdict)
	} else {
		log.InfoContext(ctx, "catalog verified by plain Puppet", "outcome", verdict.Outcome, "reason", verdict.Reason, "wall", verdict.Wall)
	}
	saved, err := v.Store.SaveVerification(ctx, verdict)
	if err != nil {
		log.ErrorContext(ctx, "how a catalog was verified could not be stored", "outcome", verdict.Outcome, "err", err)
		return verdict, err
	}
	if saved.Outcome == Differs && v.Alarm != nil {
		v.Alarm(ctx, saved)
	}
	return saved, nil
}

// stop says what differs, and that no catalog of the version is used again.
func (v *Verifier) stop(ctx context.Context, log *slog.Logger, c Compilation, verdict Verification) {
	places := make([]string, len(verdict.Differences))
	for i, d := range verdict.Differences {
		places[i] = d.String()
	}
	args := []any{"differs", places, "count", verdict.Count, "inputs", verdict.Inputs.Short(), "compilation", c.ID, "facts_seq", c.FactsSeq}
	if c.Inputs != nil {
		args = append(args, "values", len(c.Inputs.Values), "sources", c.Inputs.Sources.Count(), "asked", len(c.Inputs.Asked), "engine", c.Inputs.Engine)
	}
	log.ErrorContext(ctx, "a catalog is not what plain Puppet gives: no catalog of this version is used again", args...)
	err := v.Reuser.Store.StopReuse(ctx, ReuseStop{
		Environment: c.Environment, Version: c.Version, At: verdict.At, Reused: c.Catalog, Fresh: c.Catalog, Differs: places, Inputs: verdict.Inputs,
	})
	if err != nil {
		log.ErrorContext(ctx, "that the version's catalogs must not be used again could not be stored", "err", err)
	}
}

// VerifierStats counts since the start.
type VerifierStats struct {
	Outcomes map[VerifyOutcome]uint64
	Dropped  uint64 // samples for which there was no room, or no time
	Waiting  int
}

// Stats may be called at any time.
func (v *Verifier) Stats() VerifierStats {
	s := VerifierStats{Outcomes: map[VerifyOutcome]uint64{}, Dropped: v.count.dropped.Load(), Waiting: len(v.waiting)}
	for i, outcome := range VerifyOutcomes() {
		s.Outcomes[outcome] = v.count.outcomes[i].Load()
	}
	return s
}

package codecheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxTrials is how long compiling may take, for all nodes of a check together.
const maxTrials = 10 * time.Minute

// trialsAtOnce is how many nodes are compiled for at the same time; the compiler has a limit of its own.
const trialsAtOnce = 8

// namedAtOnce is how many nodes are asked for together; inventory.MaxNamed.
const namedAtOnce = 1000

// set is nodes with the same classes. One stands for all.
type set struct {
	node  fleet.Certname
	nodes int
}

// compile compiles for one node of each set of classes.
func (s *Service) compile(ctx context.Context, r *Report, base Report) error {
	most := s.cfg.Nodes()
	if most <= 0 {
		return nil
	}
	sets, err := s.sets(ctx, r.Environment, r.Version)
	if err != nil {
		return err
	}
	r.Sets = len(sets)
	sets = sets[:min(len(sets), most)]
	timed, cancel := context.WithTimeout(ctx, maxTrials)
	defer cancel()
	trials := make([]trial, len(sets))
	group, inner := errgroup.WithContext(timed)
	group.SetLimit(trialsAtOnce)
	for i, chosen := range sets {
		group.Go(func() (err error) {
			trials[i], err = s.try(inner, r, chosen)
			return err
		})
	}
	switch err := group.Wait(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		r.Findings = append(r.Findings, Finding{Level: Warning, Message: fmt.Sprintf("not all of %s could be compiled for within %s", fault.Count(len(sets), "node"), maxTrials)})
	case err != nil:
		return err
	}
	return s.conclude(ctx, r, base, trials)
}

// trial is what came of compiling for a node.
type trial struct {
	set
	failed   *compile.Error
	volatile []string
	done     bool
}

func (s *Service) try(ctx context.Context, r *Report, chosen set) (trial, error) {
	t := trial{set: chosen}
	order, _, err := s.Orders.Build(ctx, compile.Compilation{Node: chosen.node, Environment: r.Environment, Version: r.Version})
	var out compile.Outcome
	if err == nil {
		out, err = s.Compiler.Compile(ctx, order)
	}
	if failed, ok := errors.AsType[*compile.Error](err); ok {
		t.failed, t.done = failed, true
		return t, nil
	}
	if err != nil {
		detail := cmp.Or(fault.Detail(err), "the log says why")
		return t, fault.Wrap(fault.Unavailable, err, "the catalog of %s could not be compiled: %s", chosen.node, detail)
	}
	if t.done = true; out.Reads != nil {
		t.volatile = out.Reads.Volatile
	}
	return t, nil
}

// sets takes the nodes apart that a version may change: by classes, the largest sets first. Nodes of which no catalog is known are
// sets of their own, behind those.
func (s *Service) sets(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]set, error) {
	standings, err := s.Fleet.Standings(ctx, env)
	if err != nil {
		return nil, err
	}
	var nodes []fleet.Certname
	for _, st := range standings {
		if st.FactsSeq != 0 {
			nodes = append(nodes, st.Node)
		}
	}
	byClasses := map[fleet.Digest]int{}
	var sets []set
	for chunk := range slices.Chunk(nodes, namedAtOnce) {
		touched, err := s.Touched(ctx, env, version, chunk)
		if err != nil {
			return nil, err
		}
		classes, err := s.Fleet.ClassesOf(ctx, touched)
		if err != nil {
			return nil, err
		}
		for _, node := range touched {
			name := classes[node]
			if at, there := byClasses[name]; there && name != "" {
				sets[at].nodes++
				continue
			}
			byClasses[name] = len(sets)
			sets = append(sets, set{node, 1})
		}
	}
	slices.SortStableFunc(sets, func(a, b set) int { return cmp.Compare(b.nodes, a.nodes) })
	return sets, nil
}

// conclude makes findings of trials.
func (s *Service) conclude(ctx context.Context, r *Report, base Report, trials []trial) error {
	var failed []fleet.Certname
	for _, t := range trials {
		if t.done {
			r.Compiled++
		}
		if t.failed != nil {
			failed = append(failed, t.node)
		}
	}
	before, err := s.broken(ctx, failed)
	if err != nil {
		return err
	}
	notes := map[string]bool{}
	for _, t := range trials {
		if t.failed != nil {
			r.add(t, s.failure(t, before[t.node].Err, base))
		}
		for _, what := range t.volatile {
			if ttl := s.cfg.VolatileTTL(); ttl > 0 && !notes[what] && !r.says(what) {
				notes[what] = true
				r.add(t, volatileNote(what, ttl))
			}
		}
	}
	return nil
}

// says says whether the files of a report told of a call already, with its place, of which a compilation only knows the function: generate().
func (r *Report) says(what string) bool {
	call, _, found := strings.Cut(what, "() ")
	return found && slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == Note && strings.HasPrefix(f.Message, call+"(") })
}

func (s *Service) broken(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]compile.Compilation, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	return s.Fleet.Broken(ctx, nodes)
}

// failure is what a catalog that does not compile means.
func (s *Service) failure(t trial, before *compile.Error, base Report) Finding {
	f := Finding{Level: Mistake, File: t.failed.File, Line: t.failed.Line, Column: t.failed.Pos, Message: t.failed.Plain()}
	forced := slices.ContainsFunc(base.Findings, func(known Finding) bool { return known.Level == Mistake && sameWords(known.Message, f.Message) })
	switch {
	case t.failed.Cause == compile.CauseInput: // no fault of the code's
		f.Level = Warning
	case !forced && before != nil && before.File == t.failed.File && sameWords(before.Plain(), f.Message):
		f.Level, f.Message = Warning, f.Message+" (as with the version that it has)"
	}
	return f
}

func sameWords(a, b string) bool {
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}

// volatileNote names what a compilation could not be followed in, and where, if it says so: "runs a program in modules/x/lib/y.rb:3".
func volatileNote(what string, ttl time.Duration) Finding {
	f := Finding{Level: Note, Message: fmt.Sprintf("%s: a catalog that did so is used again for up to %s (volatile_ttl)", what, ttl)}
	if text, place, found := strings.Cut(what, " in "); found {
		if file, line, found := strings.Cut(place, ":"); found {
			if _, err := fmt.Sscanf(line, "%d", &f.Line); err == nil {
				f.File, f.Message = file, strings.Replace(f.Message, what, text, 1)
			}
		}
	}
	return f
}

// add adds a finding of a node to the same one of others.
func (r *Report) add(t trial, f Finding) {
	at := slices.IndexFunc(r.Findings, func(known Finding) bool {
		return known.Level == f.Level && known.File == f.File && known.Line == f.Line && known.Message == f.Message && len(known.Nodes) > 0
	})
	if at < 0 {
		at = len(r.Findings)
		r.Findings = append(r.Findings, f)
	}
	found := &r.Findings[at]
	found.Alike += t.nodes
	if len(found.Nodes) < maxNamed {
		found.Nodes = append(found.Nodes, t.node)
	}
}

// maxNamed is how many nodes a finding names.
const maxNamed = 5

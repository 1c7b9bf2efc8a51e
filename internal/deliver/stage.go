package deliver

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/parallel"
)

// Stager has catalogs compiled that nobody is given yet.
type Stager interface {
	// Stage says how far a node's catalog is, and has it compiled if need be. The same
	// ticket means the same compilation.
	Stage(ctx context.Context, w Wish) (Staged, error)
}

// Wish is a catalog that is to be staged.
type Wish struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Version     fleet.Digest
	Ticket      string
}

// Staged is how far a staged catalog is.
type Staged struct {
	Catalog *Catalog // nil: it is not there yet, or there is none
	Failure string   // why there is none
}

// Readiness is what can be released to a node.
type Readiness string

// The states of readiness.
const (
	Ready     Readiness = "ready"     // a catalog that is not what the node has
	Unchanged Readiness = "unchanged" // the node has it
	Compiling Readiness = "compiling" // it is not there yet
	Broken    Readiness = "failed"    // there is none
	Refused   Readiness = "refused"   // the node takes no releases
)

// Prepared is one node of a release.
type Prepared struct {
	Wish
	Standing Standing
	State    Readiness
	Catalog  *Catalog // when ready or unchanged
	Reason   string   // when failed or refused
}

// atOnce is how many nodes are prepared or released to at the same time: their writes
// share transactions.
const atOnce = 16

// Prepare says of each wish what can be released, in the same order, and has compiled
// what is missing.
func (s *Service) Prepare(ctx context.Context, stager Stager, wishes []Wish) ([]Prepared, error) {
	prepared := make([]Prepared, len(wishes))
	err := parallel.Each(len(wishes), atOnce, func(i int) (err error) {
		prepared[i], err = s.prepare(ctx, stager, wishes[i])
		return err
	})
	return prepared, err
}

func (s *Service) prepare(ctx context.Context, stager Stager, w Wish) (p Prepared, err error) {
	p.Wish = w
	if p.Standing, _, err = s.Standing(ctx, w.Node); err != nil {
		return p, err
	}
	probe := Order{Catalog: Catalog{Digest: "-", Environment: w.Environment, Version: w.Version}}
	if _, refused := Advance(p.Standing, probe, s.Now()); refused != nil {
		p.State, p.Reason = Refused, fault.Detail(refused)
		return p, nil
	}
	staged, err := stager.Stage(ctx, w)
	switch {
	case err != nil:
		return p, err
	case staged.Failure != "":
		p.State, p.Reason = Broken, staged.Failure
	case staged.Catalog == nil:
		p.State = Compiling
	case p.Standing.has(*staged.Catalog):
		p.State, p.Catalog = Unchanged, staged.Catalog
	default:
		p.State, p.Catalog = Ready, staged.Catalog
	}
	return p, nil
}

// Outcome is what became of a node's release.
type Outcome struct {
	Prepared
	Released   bool
	Generation int64 // that the node has then; zero: none
}

// ReleaseAll releases what is ready and says what became of each. A node that came to
// refuse it meanwhile is refused; only a store that does not answer ends it early.
func (s *Service) ReleaseAll(ctx context.Context, all []Prepared, o Order, apply Apply) ([]Outcome, error) {
	outcomes := make([]Outcome, len(all))
	err := parallel.Each(len(all), atOnce, func(i int) error {
		outcomes[i] = Outcome{Prepared: all[i], Generation: all[i].Standing.base()}
		if all[i].State != Ready {
			return nil
		}
		order := o
		order.Catalog = *all[i].Catalog
		g, done, err := s.Release(ctx, all[i].Node, order, apply)
		if fault.Is(err, fault.Conflict) {
			outcomes[i].State, outcomes[i].Reason = Refused, fault.Detail(err)
			return nil
		}
		if outcomes[i].Generation, outcomes[i].Released = g.Number, done; !done {
			outcomes[i].State = Unchanged
		}
		return err
	})
	return outcomes, err
}

// PlanDigest names what a release would give to whom.
func PlanDigest(all []Prepared) fleet.Digest {
	var lines []string
	for _, p := range all {
		if p.State == Ready {
			lines = append(lines, strings.Join([]string{string(p.Node), string(p.Environment), string(p.Version), string(p.Catalog.Digest)}, " ")+"\n")
		}
	}
	slices.Sort(lines)
	return fleet.DigestOf([]byte(strings.Join(lines, "")))
}

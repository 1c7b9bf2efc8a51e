package policy

import (
	"context"
	"iter"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Store keeps rules and freezes, and every version that they had. Every method is one transaction; all may be called
// concurrently.
type Store interface {
	// Policies is the newest version of each rule, by name, without those that are removed.
	Policies(ctx context.Context) ([]Rule, error)
	// PolicyHistory is every version of a rule, the newest first; NotFound if there never was one.
	PolicyHistory(ctx context.Context, name string) ([]Rule, error)
	// SavePolicy stores the next version of a rule, and gives it its number. One that is Removed keeps what the version
	// before said; NotFound if there is none, or it is removed already.
	SavePolicy(ctx context.Context, r Rule) (Rule, error)
	// Freezes, FreezeHistory and SaveFreeze are the same for freezes.
	Freezes(ctx context.Context) ([]Freeze, error)
	FreezeHistory(ctx context.Context, name string) ([]Freeze, error)
	SaveFreeze(ctx context.Context, f Freeze) (Freeze, error)
	// PruneRules forgets versions of rules and freezes from before a time, and counts them. Of each the newest keep stay, and
	// one at least, so that numbers go on.
	PruneRules(ctx context.Context, before time.Time, keep int) (int, error)
}

// Service keeps rules and judges by them.
type Service struct {
	Store  Store
	Budget time.Duration // for judging one subject; default 30 s
	// Changed hints that a rule or a freeze did. It must not block. Nil: nobody listens.
	Changed func()
}

// told is what was saved, and tells of it.
func told[V any](s *Service, saved V, err error) (V, error) {
	if err == nil && s.Changed != nil {
		s.Changed()
	}
	return saved, err
}

// SetPolicy makes a new version of a rule. Invalid.
func (s *Service) SetPolicy(ctx context.Context, actor fleet.Actor, name string, d Definition) (Rule, error) {
	r := Rule{Name: name, Stamp: fleet.Stamp{Author: actor.Name, At: time.Now()}, Definition: d}
	if err := r.Check(); err != nil {
		return Rule{}, err
	}
	rules, err := s.Store.Policies(ctx)
	if err != nil {
		return Rule{}, err
	}
	if len(rules) >= MaxRules {
		return Rule{}, fault.New(fault.Conflict, "there are %d policies already, at most %d are allowed; remove some", len(rules), MaxRules)
	}
	saved, err := s.Store.SavePolicy(ctx, r)
	return told(s, saved, err)
}

// RemovePolicy ends a rule. NotFound.
func (s *Service) RemovePolicy(ctx context.Context, actor fleet.Actor, name string) (Rule, error) {
	saved, err := s.Store.SavePolicy(ctx, Rule{Name: name, Stamp: fleet.Stamp{Author: actor.Name, At: time.Now(), Removed: true}})
	return told(s, saved, err)
}

// SetFreeze makes a new version of a freeze. Invalid.
func (s *Service) SetFreeze(ctx context.Context, actor fleet.Actor, name string, f Freezing) (Freeze, error) {
	freeze := Freeze{Name: name, Stamp: fleet.Stamp{Author: actor.Name, At: time.Now()}, Freezing: f}
	if err := freeze.Check(); err != nil {
		return Freeze{}, err
	}
	freezes, err := s.Store.Freezes(ctx)
	if err != nil {
		return Freeze{}, err
	}
	if len(freezes) >= MaxFreezes {
		return Freeze{}, fault.New(fault.Conflict, "there are %d freezes already, at most %d are allowed; remove some", len(freezes), MaxFreezes)
	}
	saved, err := s.Store.SaveFreeze(ctx, freeze)
	return told(s, saved, err)
}

// RemoveFreeze ends a freeze. NotFound.
func (s *Service) RemoveFreeze(ctx context.Context, actor fleet.Actor, name string) (Freeze, error) {
	saved, err := s.Store.SaveFreeze(ctx, Freeze{Name: name, Stamp: fleet.Stamp{Author: actor.Name, At: time.Now(), Removed: true}})
	return told(s, saved, err)
}

// Policies is every rule that holds, by name.
func (s *Service) Policies(ctx context.Context) ([]Rule, error) { return s.Store.Policies(ctx) }

// PolicyHistory is every version of a rule, the newest first; NotFound.
func (s *Service) PolicyHistory(ctx context.Context, name string) ([]Rule, error) {
	return s.Store.PolicyHistory(ctx, name)
}

// Freezes is every freeze that is set, by name.
func (s *Service) Freezes(ctx context.Context) ([]Freeze, error) { return s.Store.Freezes(ctx) }

// FreezeHistory is every version of a freeze, the newest first; NotFound.
func (s *Service) FreezeHistory(ctx context.Context, name string) ([]Freeze, error) {
	return s.Store.FreezeHistory(ctx, name)
}

// Judge asks every rule and freeze about a subject.
func (s *Service) Judge(ctx context.Context, subject Subject, changes iter.Seq2[Change, error]) (Verdict, error) {
	rules, err := s.Store.Policies(ctx)
	if err != nil {
		return Verdict{}, err
	}
	return s.JudgeBy(ctx, rules, subject, changes)
}

// JudgeBy asks some rules, which need not be stored, and every freeze.
func (s *Service) JudgeBy(ctx context.Context, rules []Rule, subject Subject, changes iter.Seq2[Change, error]) (Verdict, error) {
	freezes, err := s.Store.Freezes(ctx)
	if err != nil {
		return Verdict{}, err
	}
	compiled := make([]Compiled, len(rules))
	for i, r := range rules {
		if compiled[i], err = Compile(r); err != nil { // of an older version of Tutti
			compiled[i].program, compiled[i].broken = nil, fault.Detail(err)
		}
	}
	budget := s.Budget
	if budget == 0 {
		budget = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	return Judge(ctx, compiled, freezes, subject, changes)
}

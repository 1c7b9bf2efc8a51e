package policy

import (
	"context"
	"iter"
	"math/bits"
	"strings"
	"time"

	"github.com/expr-lang/expr/vm"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Subject is what is about to be done.
type Subject struct {
	Environment fleet.Environment
	At          time.Time
	Nodes       int   // that it is done to
	Waves       []int // nodes of each
	Preview     Totals
}

// Totals is what a preview counts.
type Totals struct {
	Nodes   int // all
	Changed int
	Same    int
	Failed  int // the code does not compile for them
	Unseen  int // the preview cannot see all that may change
}

// Change is one change, and the nodes of the subject that have it.
type Change struct {
	Key          string
	Kind         string // added, removed, changed, node, edge, error, lost-all or lost-most
	Type         string
	Title        string
	Parameters   []string
	Exported     bool
	OrderOnly    bool
	Acknowledged bool
	File         string
	Message      string
	Nodes        []uint32 // numbers of nodes, rising
}

// Verdict is what rules and freezes say.
type Verdict struct {
	Findings []Finding // in the order of the rules
	Losses   []Finding // what catalogs lose, whatever rules say of it: their Rule is the kind of the change
	Frozen   *Frozen   // nil: something may begin now
}

// Finding is what one rule found.
type Finding struct {
	Rule      string
	Version   int
	Effect    Effect
	Role      string
	AuthorMay bool
	Message   string
	Nodes     int      // that have one of the changes; of a rule that looks at no change, all
	Changes   []string // keys of the changes, the first maxKeys; none: it is not about one
	Found     int      // how many changes
	Broken    string   // the rule could not be judged: why
}

const (
	maxKeys = 100
	losses  = "lost-" // how kinds of changes begin that say what a catalog loses
	// maxSeen is how much of a text an expression sees, in bytes: changes have texts of people.
	maxSeen = 4000
)

// Judge asks rules and freezes about a subject. A rule that looks at changes is asked about each that touches a node,
// every other one once.
func Judge(ctx context.Context, rules []Compiled, freezes []Freeze, s Subject, changes iter.Seq2[Change, error]) (Verdict, error) {
	v := Verdict{Frozen: FrozenAt(freezes, s.Environment, s.At)}
	asked := make([]*asking, 0, len(rules))
	for _, r := range rules {
		if in(r.Environments, s.Environment) {
			asked = append(asked, &asking{rule: r, scope: scopeOf(r, s)})
		}
	}
	for change, err := range changes {
		if err != nil {
			return Verdict{}, err
		}
		if len(change.Nodes) == 0 {
			continue
		}
		if ctx.Err() != nil {
			return Verdict{}, fault.Wrap(fault.Unavailable, ctx.Err(), "judging takes too long; are there rules with costly patterns?")
		}
		if strings.HasPrefix(change.Kind, losses) {
			v.Losses = append(v.Losses, Finding{
				Rule: change.Kind, Effect: Warn, Message: change.Title, Nodes: len(change.Nodes), Changes: []string{change.Key}, Found: 1,
			})
		}
		for _, a := range asked {
			if a.rule.each {
				a.about(change)
			}
		}
	}
	for _, a := range asked {
		if !a.rule.each {
			a.whole = a.holds()
		}
		if a.found > 0 || a.whole {
			v.Findings = append(v.Findings, a.finding(s))
		}
	}
	return v, nil
}

// asking is one rule while it is asked.
type asking struct {
	rule    Compiled
	scope   scope
	machine vm.VM
	whole   bool
	found   int
	keys    []string
	nodes   []uint64 // a bit for each number
	broken  string
}

// about asks about a change.
func (a *asking) about(c Change) {
	a.scope.Change = seenChange{
		Kind: c.Kind, Type: cut(c.Type), Title: cut(c.Title), Parameters: c.Parameters, Nodes: len(c.Nodes), Exported: c.Exported,
		OrderOnly: c.OrderOnly, Acknowledged: c.Acknowledged, File: cut(c.File), Message: cut(c.Message),
	}
	if !a.holds() {
		return
	}
	a.found++
	if len(a.keys) < maxKeys {
		a.keys = append(a.keys, c.Key)
	}
	for _, n := range c.Nodes {
		for int(n/64) >= len(a.nodes) {
			a.nodes = append(a.nodes, make([]uint64, max(len(a.nodes), 16))...)
		}
		a.nodes[n/64] |= 1 << (n % 64)
	}
}

// holds evaluates the expression; one that fails holds.
func (a *asking) holds() bool {
	if a.rule.program == nil {
		a.broken = a.rule.broken
		return true
	}
	result, err := a.machine.Run(a.rule.program, a.scope)
	if err != nil {
		a.broken, _, _ = strings.Cut(err.Error(), "\n")
		return true
	}
	yes, is := result.(bool)
	return yes || !is
}

func (a *asking) finding(s Subject) Finding {
	f := Finding{
		Rule: a.rule.Name, Version: a.rule.Version, Effect: a.rule.Effect, Role: a.rule.Role, AuthorMay: a.rule.AuthorMay, Message: a.rule.Message,
		Nodes: ones(a.nodes), Changes: a.keys, Found: a.found, Broken: a.broken,
	}
	if a.whole {
		f.Nodes = s.Nodes
	}
	return f
}

func scopeOf(r Compiled, s Subject) scope {
	at := s.At.UTC()
	if r.where != nil {
		at = at.In(r.where)
	}
	return scope{
		Environment: string(s.Environment), Release: seenRelease{s.Nodes, s.Waves},
		Preview: seenPreview(s.Preview),
		Time:    seenTime{strings.ToLower(at.Format("Mon")), at.Format(time.DateOnly), at.Hour(), at.Minute()},
	}
}

// ones counts bits.
func ones(words []uint64) (n int) {
	for _, word := range words {
		n += bits.OnesCount64(word)
	}
	return n
}

func cut(text string) string { return text[:min(len(text), maxSeen)] }

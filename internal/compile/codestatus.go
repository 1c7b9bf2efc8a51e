package compile

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
)

// CodeStatus is how the nodes of an environment stand to a version of its code.
type CodeStatus struct {
	Nodes     int // active ones whose environment it is
	Current   int // whose catalog stands for the version
	Held      int // whose newest catalog the brake keeps from them
	Waiting   int // whose catalog is wanted or being compiled
	Failed    int // which have no catalog of it because it does not compile: they keep their last good one
	Unknown   int // of which no facts are known, or nothing was tried yet
	NoCatalog int // of the failed, those that never had one
	Errors    []CodeError

	NoFacts []fleet.Certname // of the unknown, those that sent no facts, by name
	Untried []fleet.Certname // of the unknown, the others
	Of      []fleet.Certname // those whose newest catalog, held or given, stands for the version, by name

	Verified map[VerifyOutcome]int // how many catalogs of the version were verified, by outcome; set where it is shown
	Wrong    []fleet.Certname      // some nodes whose catalogs are not what plain Puppet gives
}

// CodeError is a mistake and how many nodes it hits.
type CodeError struct {
	Error
	Nodes    int
	Examples []fleet.Certname // some of them, by name
}

// maxExamples is how many nodes an error names.
const maxExamples = 5

// Status says how nodes stand to a version. It compares as a deploy does; it may be
// called beside Run.
func (w *Wanter) Status(ctx context.Context, env fleet.Environment, version fleet.Digest) (CodeStatus, error) {
	standings, err := w.Standings.Standings(ctx, env)
	if err != nil {
		return CodeStatus{}, err
	}
	apart := &Wanter{WanterParts: w.WanterParts, cfg: w.cfg, prints: newFootprints(w.Readings)}
	plan, err := apart.Touched(ctx, env, version, standings)
	if err != nil {
		return CodeStatus{}, err
	}
	waiting, err := w.Standings.Waiting(ctx, env, version)
	if err != nil {
		return CodeStatus{}, err
	}
	failures, err := w.Standings.Failures(ctx, env, version)
	if err != nil {
		return CodeStatus{}, err
	}
	s := CodeStatus{Nodes: len(standings), Errors: errorsOf(failures)}
	for _, t := range plan.Stands {
		s.Of = append(s.Of, t.Node)
		if t.Held && t.Plain.Compilation == 0 {
			s.Held++
		} else {
			s.Current++
		}
	}
	for _, t := range plan.Touched {
		_, waits := slices.BinarySearch(waiting, t.Node)
		_, failed := slices.BinarySearchFunc(failures, t.Node, func(c Compilation, n fleet.Certname) int { return cmp.Compare(c.Node, n) })
		switch {
		case waits:
			s.Waiting++
		case failed:
			s.Failed++
			if t.Plain.Compilation == 0 {
				s.NoCatalog++
			}
		default:
			s.Untried = append(s.Untried, t.Node)
		}
	}
	for _, t := range standings {
		if _, known := slices.BinarySearch(s.Of, t.Node); !known && t.FactsSeq == 0 {
			s.NoFacts = append(s.NoFacts, t.Node)
		}
	}
	s.Unknown = len(s.NoFacts) + len(s.Untried)
	return s, nil
}

// ofAnyNode says NODE where Puppet's messages name the node: "… on node web-1", "Could not find class x for web-1".
func ofAnyNode(message, node string) string {
	for _, before := range []string{"node ", "for "} {
		var said strings.Builder
		rest := message
		for {
			i := strings.Index(rest, before+node)
			if i < 0 {
				break
			}
			after := rest[i+len(before)+len(node):]
			said.WriteString(rest[:i+len(before)])
			if after == "" || strings.ContainsRune(" \n,;:)'\"", rune(after[0])) || after[0] == '.' && strings.TrimLeft(after, ".") == "" {
				said.WriteString("NODE")
			} else {
				said.WriteString(node) // a longer word that begins like the node's name
			}
			rest = after
		}
		said.WriteString(rest)
		message = said.String()
	}
	return message
}

// errorsOf groups failures by what is wrong where, those that hit most nodes first.
// Where messages tell on which node, they say NODE.
func errorsOf(failures []Compilation) []CodeError {
	type key struct {
		cause               Cause
		message, file, from string
		line, pos           int
	}
	found := map[key]*CodeError{}
	var list []*CodeError
	for _, c := range failures {
		if c.Err == nil {
			continue
		}
		e := *c.Err
		e.Message, e.Logs = ofAnyNode(e.Message, string(c.Node)), nil
		at := key{e.Cause, e.Message, e.File, e.From, e.Line, e.Pos}
		if found[at] == nil {
			found[at] = &CodeError{Error: e}
			list = append(list, found[at])
		}
		found[at].Nodes++
		if len(found[at].Examples) < maxExamples {
			found[at].Examples = append(found[at].Examples, c.Node)
		}
	}
	slices.SortStableFunc(list, func(a, b *CodeError) int { return cmp.Compare(b.Nodes, a.Nodes) })
	errors := make([]CodeError, len(list))
	for i, e := range list {
		errors[i] = *e
	}
	return errors
}

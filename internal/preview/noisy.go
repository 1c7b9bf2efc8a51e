package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// NoiseRules is every rule that holds now, by name.
func (s *Service) NoiseRules(ctx context.Context) ([]NoiseRule, error) {
	return s.Store.NoiseRules(ctx)
}

// NoiseHistory is every version of a rule, the newest first; NotFound.
func (s *Service) NoiseHistory(ctx context.Context, name string) ([]NoiseRule, error) {
	return s.Store.NoiseHistory(ctx, name)
}

// SetNoise makes a new version of a rule. Invalid.
func (s *Service) SetNoise(ctx context.Context, actor fleet.Actor, name string, n Noise) (NoiseRule, error) {
	if err := n.check(name); err != nil {
		return NoiseRule{}, err
	}
	if n.Nodes != "" {
		if _, err := s.Resolver.Resolve(ctx, "", api.JobTargets{Query: n.Nodes}); err != nil {
			return NoiseRule{}, err
		}
	}
	rules, err := s.Store.NoiseRules(ctx)
	if err != nil {
		return NoiseRule{}, err
	}
	if len(rules) >= MaxNoiseRules {
		return NoiseRule{}, fault.New(fault.Conflict, "there are %d noise rules already, at most %d are allowed; remove some", len(rules), MaxNoiseRules)
	}
	return s.Store.SaveNoise(ctx, NoiseRule{Name: name, Stamp: fleet.Stamp{Author: actor.Name, At: time.Now()}, Noise: n})
}

// RemoveNoise ends a rule: it hides nothing any more. NotFound.
func (s *Service) RemoveNoise(ctx context.Context, actor fleet.Actor, name string) (NoiseRule, error) {
	return s.Store.SaveNoise(ctx, NoiseRule{Name: name, Stamp: fleet.Stamp{Author: actor.Name, At: time.Now(), Removed: true}})
}

// SuggestNoise looks through what people acknowledged in an environment; see Suggest.
func (s *Service) SuggestNoise(ctx context.Context, env fleet.Environment, least int) ([]Suggestion, error) {
	rules, err := s.Store.NoiseRules(ctx)
	if err != nil {
		return nil, err
	}
	acks, err := s.Store.Acknowledgements(ctx, env, MaxAcknowledgements)
	if err != nil {
		return nil, err
	}
	return Suggest(env, acks, rules, least), nil
}

// quietFor is how long it is believed what noise hides of a ready preview: nodes may come to fit a rule's query.
const quietFor = 5 * time.Minute

// maxQuiet is how many previews it is kept of.
const maxQuiet = 2000

type quieted struct {
	quiet Quiet
	rules string // the versions that it holds for
	at    time.Time
}

// Quiet says what noise hides of a preview: of one that compiles, of its first changes.
func (s *Service) Quiet(ctx context.Context, p Preview) (Quiet, error) {
	rules, err := s.Store.NoiseRules(ctx)
	if err != nil {
		return Quiet{}, err
	}
	if len(rules) == 0 { // then only an engine makes noise
		if across, err := s.anyAcross(ctx, p); err != nil || !across {
			return Quiet{}, err
		}
	}
	var name strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&name, "%s %d\n", r.Name, r.Version)
	}
	s.mu.Lock()
	known, there := s.quiet[p.ID]
	s.mu.Unlock()
	if there && p.State == Ready && known.rules == name.String() && time.Since(known.at) < quietFor {
		return known.quiet, nil
	}
	groups, err := s.withNodes(ctx, p)
	if err != nil {
		return Quiet{}, err
	}
	inside, err := s.inside(ctx, p, rules)
	if err != nil {
		return Quiet{}, err
	}
	quiet := sift(p.Environment, rules, inside, groups)
	if p.State != Ready {
		quiet.Nodes, quiet.Form = nil, nil
		return quiet, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.quiet) >= maxQuiet {
		clear(s.quiet)
	}
	s.quiet[p.ID] = quieted{quiet, name.String(), time.Now()}
	return quiet, nil
}

// QuietOn says for changes of one node of a preview which rule hides each; empty: none does. A query of a rule holds
// here when the node is one of those that it answers with.
func (s *Service) QuietOn(ctx context.Context, p Preview, node fleet.Certname, changes []api.ChangeGroup) ([]string, error) {
	rules, err := s.Store.NoiseRules(ctx)
	if err != nil {
		return nil, err
	}
	by := make([]string, len(changes))
	for _, r := range rules {
		if r.Nodes != "" {
			nodes, err := s.Resolver.Resolve(ctx, p.Environment, api.JobTargets{Query: r.Nodes})
			if err != nil {
				return nil, fmt.Errorf("nodes of the noise rule %s: %w", r.Name, err)
			}
			if _, there := slices.BinarySearch(nodes, node); !there {
				continue
			}
		}
		for i, change := range changes {
			if by[i] == "" && r.covers(p.Environment, change) {
				by[i] = r.Name
			}
		}
	}
	return by, nil
}

// maxLive is how many changes of a preview that compiles are looked at.
const maxLive = 1000

// withNodes is the groups of a preview with their nodes.
func (s *Service) withNodes(ctx context.Context, p Preview) (all []Group, err error) {
	if p.State == Ready {
		err = s.EachGroup(ctx, p.ID, func(g Group) error {
			all = append(all, g)
			return nil
		})
		return all, err
	}
	w := s.working(p.ID)
	if w == nil {
		return nil, nil
	}
	so, err := w.so(maxLive)
	for _, change := range so.Groups {
		all = append(all, Group{Change: change, Nodes: w.members(change.Key)})
	}
	return all, err
}

// EachGroup hands over the groups of a ready preview with their nodes, in their order.
func (s *Service) EachGroup(ctx context.Context, id int64, each func(Group) error) error {
	const atOnce = 500
	for from := 0; ; from += atOnce {
		groups, err := s.Store.WholeGroups(ctx, id, GroupPage{From: from, Limit: atOnce})
		if err != nil {
			return err
		}
		for _, g := range groups {
			if err := each(g); err != nil {
				return err
			}
		}
		if len(groups) < atOnce {
			return nil
		}
	}
}

// EachShare hands over the shares of a preview, by number.
func (s *Service) EachShare(ctx context.Context, id int64, each func(Share) error) error {
	for from := uint32(0); ; {
		shares, err := s.Store.PreviewShares(ctx, id, SharePage{From: from, Limit: pageShares})
		if err != nil {
			return err
		}
		for _, share := range shares {
			if err := each(share); err != nil {
				return err
			}
			from = share.Number + 1
		}
		if len(shares) < pageShares {
			return nil
		}
	}
}

// inside is for each rule with a query the preview's nodes that it answers with, by number.
func (s *Service) inside(ctx context.Context, p Preview, rules []NoiseRule) (map[string]map[uint32]bool, error) {
	named := map[string]map[fleet.Certname]bool{}
	for _, r := range rules {
		if r.Nodes == "" {
			continue
		}
		nodes, err := s.Resolver.Resolve(ctx, p.Environment, api.JobTargets{Query: r.Nodes})
		if err != nil {
			return nil, fmt.Errorf("nodes of the noise rule %s: %w", r.Name, err)
		}
		named[r.Name] = make(map[fleet.Certname]bool, len(nodes))
		for _, node := range nodes {
			named[r.Name][node] = true
		}
	}
	if len(named) == 0 {
		return nil, nil //nolint:nilnil // nobody asks
	}
	inside := make(map[string]map[uint32]bool, len(named))
	for name := range named {
		inside[name] = map[uint32]bool{}
	}
	return inside, s.EachShare(ctx, p.ID, func(share Share) error {
		for name, nodes := range named {
			if nodes[share.Node] {
				inside[name][share.Number] = true
			}
		}
		return nil
	})
}

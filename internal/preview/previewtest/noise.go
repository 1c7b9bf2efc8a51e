package previewtest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// NoiseRules implements preview.NoiseStore.
func (s *Store) NoiseRules(context.Context) (rules []preview.NoiseRule, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.noise)) {
		if versions := s.noise[name]; !versions[len(versions)-1].Removed {
			rules = append(rules, versions[len(versions)-1])
		}
	}
	return rules, nil
}

// NoiseHistory implements preview.NoiseStore.
func (s *Store) NoiseHistory(_ context.Context, name string) ([]preview.NoiseRule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.noise[name]) == 0 {
		return nil, fault.New(fault.NotFound, "there is no noise rule %.80q", name)
	}
	versions := slices.Clone(s.noise[name])
	slices.Reverse(versions)
	return versions, nil
}

// SaveNoise implements preview.NoiseStore.
func (s *Store) SaveNoise(_ context.Context, r preview.NoiseRule) (preview.NoiseRule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.noise[r.Name]
	if r.Removed {
		if len(before) == 0 || before[len(before)-1].Removed {
			return preview.NoiseRule{}, fault.New(fault.NotFound, "there is no noise rule %.80q", r.Name)
		}
		r.Noise = before[len(before)-1].Noise
	}
	r.Version = len(before) + 1
	s.noise[r.Name] = append(before, r)
	return r, nil
}

// WholeGroups implements preview.Store.
func (s *Store) WholeGroups(_ context.Context, id int64, page preview.GroupPage) (found []preview.Group, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.previews[id]; k != nil {
		from := min(page.From, len(k.groups))
		found = slices.Clone(k.groups[from:min(from+page.Limit, len(k.groups))])
	}
	return found, nil
}

// Acknowledgements implements preview.Store.
func (s *Store) Acknowledgements(_ context.Context, env fleet.Environment, limit int) (acks []preview.Acknowledgement, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(s.previews), func(a, b int64) int { return cmp.Compare(b, a) }) {
		k := s.previews[id]
		if k.preview.Environment != env {
			continue
		}
		by := map[string]string{}
		for _, r := range k.remarks {
			switch r.Kind {
			case preview.Acknowledged:
				by[r.Group] = r.Author
			case preview.Withdrawn:
				delete(by, r.Group)
			case preview.Comment:
			}
		}
		for _, g := range k.groups {
			if author := by[g.Change.Key]; author != "" && len(acks) < limit {
				acks = append(acks, preview.Acknowledgement{Preview: id, Author: author, Change: g.Change})
			}
		}
	}
	return acks, nil
}

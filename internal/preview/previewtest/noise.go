package previewtest

import (
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// NoiseRules implements preview.NoiseStore.
func (s *Store) NoiseRules(context.Context) ([]preview.NoiseRule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noise.Current(), nil
}

// NoiseHistory implements preview.NoiseStore.
func (s *Store) NoiseHistory(_ context.Context, name string) ([]preview.NoiseRule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noise.History(name)
}

// SaveNoise implements preview.NoiseStore.
func (s *Store) SaveNoise(_ context.Context, r preview.NoiseRule) (preview.NoiseRule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noise.Save(r, func(to *preview.NoiseRule, from preview.NoiseRule) { to.Noise = from.Noise })
}

// WholeGroups implements preview.Store.
func (s *Store) WholeGroups(_ context.Context, id int64, page preview.GroupPage) (found []preview.Group, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.previews.Get(id); k != nil {
		from := min(page.From, len(k.groups))
		found = slices.Clone(k.groups[from:min(from+page.Limit, len(k.groups))])
	}
	return found, nil
}

// Acknowledgements implements preview.Store.
func (s *Store) Acknowledgements(_ context.Context, env fleet.Environment, limit int) (acks []preview.Acknowledgement, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Backward(s.previews.All()) {
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
				acks = append(acks, preview.Acknowledgement{Preview: k.preview.ID, Author: author, Change: g.Change})
			}
		}
	}
	return acks, nil
}

// PruneNoise implements preview.NoiseStore.
func (s *Store) PruneNoise(_ context.Context, before time.Time, keep int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noise.Prune(before, keep), nil
}

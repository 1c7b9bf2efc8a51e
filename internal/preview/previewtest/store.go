// Package previewtest has what tests of previews need: a Store in memory, the conformance suite of
// stores, and a compiler and catalogs that a test decides.
//
// All of it may be used concurrently.
package previewtest

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/store/memory"
)

// Store is preview.Store in memory.
type Store struct {
	mu       sync.Mutex
	previews *memory.Rows[kept]
	remarks  int64
	noise    *memory.Versions[preview.NoiseRule]
}

type kept struct {
	preview preview.Preview
	shares  []preview.Share
	groups  []preview.Group
	remarks []preview.Remark
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		previews: memory.NewRows[kept]("preview"),
		noise:    memory.NewVersions("noise rule", func(r *preview.NoiseRule) (string, *fleet.Stamp) { return r.Name, &r.Stamp }),
	}
}

var _ preview.Store = (*Store)(nil)

func (k *kept) copy() preview.Preview {
	p := k.preview
	p.Counts, p.Unseen = maps.Clone(p.Counts), slices.Clone(p.Unseen)
	return p
}

// compiling is a preview that must compile.
func (s *Store) compiling(id int64) (*kept, error) {
	k, err := s.previews.Find(id)
	if err == nil && k.preview.State != preview.Compiling {
		err = fault.New(fault.Conflict, "preview %d is %s", id, k.preview.State)
	}
	return k, err
}

// CreatePreview implements preview.Store.
func (s *Store) CreatePreview(_ context.Context, p preview.Preview, shares []preview.Share) (preview.Preview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.previews.Add(func(id int64) *kept {
		p.ID = id
		return &kept{preview: p, shares: slices.Clone(shares)}
	})
	return k.copy(), nil
}

// Preview implements preview.Store.
func (s *Store) Preview(_ context.Context, id int64) (preview.Preview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.previews.Find(id)
	if err != nil {
		return preview.Preview{}, err
	}
	return k.copy(), nil
}

// Previews implements preview.Store.
func (s *Store) Previews(_ context.Context, page preview.Page) ([]preview.Preview, error) {
	return memory.Newest(s.all(), page, func(p preview.Preview) (int64, fleet.Environment, preview.State) { return p.ID, p.Environment, p.State }), nil
}

// OpenPreviews implements preview.Store.
func (s *Store) OpenPreviews(context.Context) ([]preview.Preview, error) {
	return slices.DeleteFunc(s.all(), func(p preview.Preview) bool { return p.State != preview.Compiling }), nil
}

func (s *Store) all() (all []preview.Preview) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.previews.All() {
		all = append(all, k.copy())
	}
	return all
}

// PreviewShares implements preview.Store.
func (s *Store) PreviewShares(_ context.Context, id int64, page preview.SharePage) (found []preview.Share, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.previews.Get(id)
	if k == nil {
		return nil, nil
	}
	for _, share := range k.shares {
		fits := share.Number >= page.From && (page.Node == "" || share.Node == page.Node) &&
			(page.NotBy == "" || share.BaseEngine != "" && share.BaseEngine != page.NotBy) &&
			(len(page.States) == 0 || slices.Contains(page.States, share.State))
		if fits && len(found) < page.Limit {
			found = append(found, share)
		}
	}
	return found, nil
}

// SavePreviewShares implements preview.Store.
func (s *Store) SavePreviewShares(_ context.Context, id int64, shares []preview.Share) (preview.Preview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.compiling(id)
	if err != nil {
		return preview.Preview{}, err
	}
	for _, share := range shares {
		if !k.shares[share.Number].State.Final() {
			k.shares[share.Number] = share
		}
	}
	k.preview.Counts = preview.Count(k.shares)
	return k.copy(), nil
}

// FinishPreview implements preview.Store.
func (s *Store) FinishPreview(_ context.Context, p preview.Preview, groups iter.Seq2[preview.Group, error]) (preview.Preview, error) {
	var all []preview.Group
	for g, err := range groups {
		if err != nil {
			return preview.Preview{}, err
		}
		all = append(all, g)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.compiling(p.ID)
	if err != nil {
		return preview.Preview{}, err
	}
	if n := k.preview.Counts[preview.Waiting]; n > 0 {
		return preview.Preview{}, fault.New(fault.Conflict, "%d shares of preview %d wait", n, p.ID)
	}
	k.preview.State, k.preview.Unseen, k.preview.EndedAt = preview.Ready, slices.Clone(p.Unseen), p.EndedAt
	k.groups = all
	return k.copy(), nil
}

// Groups is groups as FinishPreview takes them.
func Groups(groups ...preview.Group) iter.Seq2[preview.Group, error] {
	return func(yield func(preview.Group, error) bool) {
		for _, g := range groups {
			if !yield(g, nil) {
				return
			}
		}
	}
}

// CancelPreview implements preview.Store.
func (s *Store) CancelPreview(_ context.Context, p preview.Preview) (preview.Preview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.previews.Find(p.ID)
	if err != nil {
		return preview.Preview{}, err
	}
	if k.preview.State == preview.Compiling {
		k.preview.State, k.preview.Reason, k.preview.EndedAt = preview.Cancelled, p.Reason, p.EndedAt
	}
	return k.copy(), nil
}

// PreviewGroups implements preview.Store.
func (s *Store) PreviewGroups(_ context.Context, id int64, page preview.GroupPage) (found []api.ChangeGroup, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.previews.Get(id); k != nil {
		for i, g := range k.groups {
			if i >= page.From && len(found) < page.Limit {
				found = append(found, g.Change)
			}
		}
	}
	return found, nil
}

// PreviewGroupNodes implements preview.Store.
func (s *Store) PreviewGroupNodes(_ context.Context, id int64, key string) ([]uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.previews.Get(id); k != nil {
		for _, g := range k.groups {
			if g.Change.Key == key {
				return slices.Clone(g.Nodes), nil
			}
		}
	}
	return nil, fault.New(fault.NotFound, "preview %d has no change %s", id, key)
}

// AddRemarks implements preview.Store.
func (s *Store) AddRemarks(_ context.Context, id int64, remarks []preview.Remark) ([]preview.Remark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.previews.Find(id)
	if err != nil {
		return nil, err
	}
	added := slices.Clone(remarks)
	for i := range added {
		s.remarks++
		added[i].ID = s.remarks
	}
	k.remarks = append(k.remarks, added...)
	return slices.Clone(added), nil
}

// Remarks implements preview.Store.
func (s *Store) Remarks(_ context.Context, id int64) ([]preview.Remark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.previews.Get(id); k != nil {
		return slices.SortedFunc(slices.Values(k.remarks), func(a, b preview.Remark) int { return cmp.Compare(a.ID, b.ID) }), nil
	}
	return nil, nil
}

// PrunePreviews implements preview.Store.
func (s *Store) PrunePreviews(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.previews.Delete(func(k *kept) bool { return k.preview.State != preview.Compiling && k.preview.EndedAt.Before(before) }), nil
}

// PreviewDigests implements preview.Store.
func (s *Store) PreviewDigests(context.Context) ([]fleet.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[fleet.Digest]bool{}
	for _, k := range s.previews.All() {
		for _, share := range k.shares {
			for _, d := range []fleet.Digest{share.Fresh, share.Base} {
				if d != "" {
					all[d] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

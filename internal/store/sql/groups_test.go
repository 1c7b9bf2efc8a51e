package sql

import (
	"context"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/classify/classifytest"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		classifytest.RunStore(t, func(t *testing.T) classify.Store {
			t.Helper()
			return open(t).Groups
		})
	})
}

// A row that a hand, or an older version, left unusable takes only its own group
// out, and can be mended or deleted.
func TestDamagedGroups(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		changes := []classify.Change{{Kind: classify.Create, Group: classifytest.Sample(1)}, {Kind: classify.Create, Group: classifytest.Sample(2)}}
		if _, err := s.Groups.ChangeGroups(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		for i, document := range []string{`{"rule":["~","name","("]}`, `{`} {
			damage(t, s, changes[i].Group.ID, document)
		}
		groups, _, err := s.Groups.Groups(t.Context())
		if err != nil || len(groups) != 3 {
			t.Fatalf("got %d groups, %v", len(groups), err)
		}
		for i, want := range []string{"", "its rule cannot be read", "it cannot be read"} {
			if !strings.HasPrefix(groups[i].Defect, want) || want == "" && groups[i].Defect != "" {
				t.Errorf("group %s: %q, want %q", groups[i].Name, groups[i].Defect, want)
			}
		}
		changes[0].Kind, changes[1].Kind = classify.Update, classify.Delete
		if _, err := s.Groups.ChangeGroups(t.Context(), changes); err != nil {
			t.Error(err)
		}
		if groups, _, _ = s.Groups.Groups(t.Context()); len(groups) != 2 || groups[1].Defect != "" {
			t.Errorf("after mending: %+v", groups)
		}
	})
}

func damage(t *testing.T, s *Store, id classify.ID, document string) {
	t.Helper()
	err := s.write(t.Context(), func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE groups SET document = $1 WHERE id = $2", []byte(document), id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

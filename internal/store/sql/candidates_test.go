package sql

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Of many nodes is wanted what is wanted of one, and read what they have.
func TestManyNodesAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		setFacts(t, s, "a.example", 7)
		setFacts(t, s, "b.example", 9)
		for node, received := range map[fleet.Certname]bool{"b.example": false, "c.example": true} {
			err := s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
				Certname: node, Environment: "production", Version: "v1",
				Digest: fleet.DigestOf([]byte(node)), Received: received,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Reusables.Holdings(t.Context(), []fleet.Certname{"a.example", "b.example", "c.example", "d.example"})
		want := map[fleet.Certname]compile.Holding{"a.example": {FactsSeq: 7}, "b.example": {
			FactsSeq: 9,
			Catalog:  fleet.DigestOf([]byte("b.example")), Environment: "production", Version: "v1",
		}, "c.example": {}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("what nodes have: %v (-want +got):\n%s", err, diff)
		}

		ask := func(node fleet.Certname) compile.Want {
			return compile.Want{Node: node, Environment: "production", Version: "v", FactsSeq: 7, Priority: compile.Previewing, At: time.Now(), Staged: true}
		}
		first, err := s.Queue.Want(t.Context(), ask("b.example"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := s.Queue.WantAll(t.Context(), []compile.Want{ask("a.example"), ask("b.example")})
		if err != nil || len(rows) != 2 || rows[0].Node != "a.example" || rows[0].State != compile.Wanted || !rows[0].Staged || rows[1].ID != first.ID {
			t.Errorf("wanted %+v, %v; the second was %d already", rows, err, first.ID)
		}
		if none, err := s.Queue.WantAll(t.Context(), nil); err != nil || len(none) != 0 {
			t.Errorf("nothing is wanted: %v, %v", none, err)
		}
	})
}

package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// sameRows compares the rows of a node's facts with its document.
func sameRows(t interface {
	Helper()
	Errorf(string, ...any)
	Context() context.Context
}, s *Store, f inventory.FactSet,
) {
	t.Helper()
	leaves, err := facts.Flatten(f.Values)
	if err != nil {
		t.Errorf("%v", err)
	}
	want := map[string]facts.Leaf{}
	for _, leaf := range leaves {
		want[leaf.Path] = leaf
	}
	rows, err := collect(t.Context(), s.reads, func(row scanner) (l facts.Leaf, err error) {
		err = row.Scan(&l.Path, &l.Kind, &l.Text)
		return l, err
	}, `SELECT p.path, f.kind, f.value FROM nodes n JOIN facts f ON f.node_id = n.id JOIN fact_paths p ON p.id = f.path_id WHERE n.certname = $1`, f.Certname)
	if err != nil {
		t.Errorf("%v", err)
	}
	got := map[string]facts.Leaf{}
	for _, leaf := range rows {
		got[leaf.Path] = leaf
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows differ from the document (-document +rows):\n%s", diff)
	}
}

func TestFactRowsFollowTheDocument(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		rapid.Check(t, func(t *rapid.T) {
			node := fleet.Certname(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"))
			values := []byte(drawObject(t, 3))
			stored, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Values: values})
			if err != nil {
				t.Fatal(err)
			}
			sameRows(t, s, stored)
		})
	})
}

// drawObject draws a JSON object with few keys, so that draws overlap.
func drawObject(t *rapid.T, depth int) string {
	var members []string
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c.d", `e\"`}), 0, 3, rapid.ID).Draw(t, "keys") {
		members = append(members, `"`+key+`":`+drawValue(t, depth-1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func drawValue(t *rapid.T, depth int) string {
	kinds := []string{"null", "true", "1", "1.5", `"x"`, `"1"`, "object", "array"}
	if depth == 0 {
		kinds = kinds[:6]
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "object":
		return drawObject(t, depth)
	case "array":
		var list []string
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, drawValue(t, depth-1))
		}
		return "[" + strings.Join(list, ",") + "]"
	default:
		return kind
	}
}

func TestTidyKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		c := inventory.Catalog{Certname: "a", Digest: "1", CompiledAt: time.Now(), Resources: []inventory.Resource{
			{Type: "File", Title: "/a", Parameters: []byte(`{"ensure":"file"}`)}, {Type: "File", Title: "/b", Parameters: []byte(`{"ensure":"absent"}`)},
		}}
		if err := s.Catalogs.SaveCatalog(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c.Digest, c.Resources = "2", c.Resources[1:]
		if err := s.Catalogs.SaveCatalog(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := s.tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := one[int](s.reads.row(t.Context(), "SELECT COUNT(*) FROM resource_parameters")); err != nil || n != 1 {
			t.Errorf("%d parameters are left, %v; want 1", n, err)
		}
	})
}

// A path of facts is there as long as some node has it, and comes back when one has it again.
func TestFactPathsThatNobodyHasAreForgotten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		save := func(node fleet.Certname, values string) {
			t.Helper()
			if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{
				Certname: node, Environment: "production",
				Values: []byte(values), ReceivedAt: time.Now(),
			}); err != nil {
				t.Fatal(err)
			}
		}
		prune := func(want int, left ...string) {
			t.Helper()
			n, err := s.Facts.PruneFactPaths(t.Context())
			if err != nil || n != want {
				t.Errorf("%d paths were pruned, %v; want %d", n, err, want)
			}
			paths, err := collect(t.Context(), s.reads, one[string], "SELECT path FROM fact_paths ORDER BY path")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(left, paths); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		}
		save("a", `{"kept":1,"shared":"x","gone":true}`)
		save("b", `{"shared":"y"}`)
		prune(0, "gone", "kept", "shared")
		save("a", `{"kept":1}`)
		prune(1, "kept", "shared")
		save("b", `{}`)
		prune(1, "kept")
		save("b", `{"gone":"again","shared":2}`)
		prune(0, "gone", "kept", "shared")
		leaves, err := s.Facts.FactLeaves(t.Context(), []fleet.Certname{"b"}, []string{"gone", "shared"})
		if err != nil || len(leaves["b"]) != 2 {
			t.Errorf("b has %+v, %v; want both facts", leaves, err)
		}
	})
}

// Who writes a fact while its path is pruned has the fact afterwards, with a path.
func TestFactPathsArePrunedBesideWriters(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		const rounds = 40
		var writers errgroup.Group
		for _, node := range []fleet.Certname{"a", "b", "c"} {
			writers.Go(func() error {
				for i := range 2*rounds + 1 {
					values := `{"name":"x"}`
					if i%2 == 0 {
						values = fmt.Sprintf(`{"name":"x","comes":%d,"and":{"goes":"%d"}}`, i, i)
					}
					if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{
						Certname: node, Environment: "production",
						Values: []byte(values), ReceivedAt: time.Now(),
					}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for range rounds {
			if _, err := s.Facts.PruneFactPaths(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := writers.Wait(); err != nil {
			t.Fatal(err)
		}
		orphans, err := one[int](s.reads.row(t.Context(), "SELECT COUNT(*) FROM facts f WHERE NOT EXISTS (SELECT 1 FROM fact_paths p WHERE p.id = f.path_id)"))
		if err != nil || orphans != 0 {
			t.Errorf("%d facts have no path, %v", orphans, err)
		}
		leaves, err := s.Facts.FactLeaves(t.Context(), []fleet.Certname{"a", "b", "c"}, []string{"comes", "and.goes"})
		for _, node := range []fleet.Certname{"a", "b", "c"} {
			if err != nil || len(leaves[node]) != 2 {
				t.Errorf("%s has %+v, %v; want two facts", node, leaves[node], err)
			}
		}
	})
}

func TestPathsThatSomeNodeHas(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		want := func(want map[string]bool) {
			t.Helper()
			got, err := s.Facts.HavePaths(t.Context(), []string{
				facts.PathText("os", "family"), facts.PathText("list", int64(0)), facts.PathText("gone"), facts.PathText("never"), facts.PathText("os"),
			})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
		want(nil) // of no node are facts known
		for _, set := range []struct {
			node   fleet.Certname
			values string
		}{{"a", `{"os":{"family":"Debian"},"list":["x"],"gone":1}`}, {"b", `{"os":{"family":"x"}}`}, {"a", `{"list":["x"]}`}} {
			if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{
				Certname: set.node, Environment: "production", Values: []byte(set.values), ReceivedAt: time.Now(),
			}); err != nil {
				t.Fatal(err)
			}
		}
		want(map[string]bool{facts.PathText("os", "family"): true, facts.PathText("list", int64(0)): true})
	})
}

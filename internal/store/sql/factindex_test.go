package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// indexedFleet is what some nodes have as their facts, kept beside the records.
type indexedFleet struct {
	nodes map[string]map[string]any
	clock time.Time
}

// saveFacts saves facts of a node, whatever is known of it.
func saveFacts(ctx context.Context, s *Store, node string, values map[string]any, at time.Time) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	_, _, err = s.Facts.SaveFacts(ctx, inventory.FactSet{
		Certname: fleet.Certname(node), Environment: "production", Timestamp: at, ReceivedAt: at, Values: text, Origin: inventory.Origin{ProducedAt: at},
	})
	return err
}

// whoHas asks for the nodes that have a text at a path.
func whoHas(t *testing.T, s *Store, path, text string) []string {
	t.Helper()
	value, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := askAll(t, s, checked(t, fmt.Sprintf("inventory[certname] { %s = %s }", path, value)))
	var names []string
	for _, row := range rows {
		names = append(names, row["certname"].(string))
	}
	slices.Sort(names)
	return names
}

// has is the same, of what was saved.
func (f *indexedFleet) has(path []string, text string) []string {
	var names []string
	for _, node := range slices.Sorted(maps.Keys(f.nodes)) {
		var value any = f.nodes[node]
		for _, step := range path {
			inside, _ := value.(map[string]any)
			value = inside[step]
		}
		if value == any(text) {
			names = append(names, node)
		}
	}
	return names
}

// indexedTexts are what the index has of a path, and what the facts say that it should have.
func indexedTexts(t *testing.T, s *Store) (got, want []string) {
	t.Helper()
	read := func(text string) []string {
		rows, err := collect(t.Context(), s.reads, one[string], text)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	got = read("SELECT path_id || ' ' || node_id || ' ' || value FROM indexed_facts ORDER BY path_id, node_id")
	want = read(`SELECT f.path_id || ' ' || f.node_id || ' ' || substr(f.value, 1, 64) FROM facts f JOIN indexed_paths p ON p.path_id = f.path_id
		WHERE f.kind = 4 ORDER BY f.path_id, f.node_id`)
	return got, want
}

func indexedPaths(t *testing.T, s *Store) []string {
	t.Helper()
	have, err := s.Queries.index.indexed(t.Context(), s.reads)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, p := range have {
		paths = append(paths, p.path)
	}
	slices.Sort(paths)
	return paths
}

// Whatever becomes of facts, those who ask by the index get what those got who looked at each node.
func TestTheIndexOfFactsIsAsTheFactsAre(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 63)
	texts := []string{"web", "db", "", "true", "7", long, long + "a", long + "ab", long + "b"}
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			f := indexedFleet{nodes: map[string]map[string]any{}, clock: fleetStart}
			node := func() string { return fmt.Sprintf("n%d-%d.example.test", round, rapid.IntRange(0, 4).Draw(r, "node")) }
			value := func() any {
				return rapid.OneOf(rapid.Map(rapid.SampledFrom(texts), func(s string) any { return s }),
					rapid.SampledFrom([]any{true, 7.0, nil, map[string]any{"in": "web"}, []any{"web"}})).Draw(r, "value")
			}
			check := func() {
				text, path := rapid.SampledFrom(texts).Draw(r, "text"), rapid.SampledFrom([]string{"role", "os.name"}).Draw(r, "path")
				got := slices.DeleteFunc(whoHas(t, s, "facts."+path, text), func(n string) bool { return !strings.HasPrefix(n, fmt.Sprintf("n%d-", round)) })
				if diff := cmp.Diff(f.has(strings.Split(path, "."), text), got, cmpopts.EquateEmpty()); diff != "" {
					r.Fatalf("who has %s = %q (-saved +asked), indexed are %v:\n%s", path, text, indexedPaths(t, s), diff)
				}
				if got, want := indexedTexts(t, s); !slices.Equal(got, want) {
					r.Fatalf("the index and the facts differ (-facts +index):\n%s", cmp.Diff(want, got))
				}
			}
			acts := map[string]func(){
				"save": func() {
					name := node()
					values := map[string]any{"uptime": fmt.Sprint(f.clock.Unix())}
					if rapid.Bool().Draw(r, "role") {
						values["role"] = value()
					}
					if rapid.Bool().Draw(r, "os") {
						values["os"] = map[string]any{"name": value()}
					}
					f.clock = f.clock.Add(time.Second)
					if err := saveFacts(t.Context(), s, name, values, f.clock); err != nil {
						r.Fatal(err)
					}
					f.nodes[name] = values
				},
				"purge": func() {
					name := node()
					if f.nodes[name] == nil {
						return
					}
					if err := s.Nodes.PurgeNode(t.Context(), fleet.Certname(name)); err != nil {
						r.Fatal(err)
					}
					delete(f.nodes, name)
				},
				"index": func() {
					if err := s.Queries.index.index(t.Context(), rapid.SampledFrom([]string{"role", "os.name", "uptime"}).Draw(r, "path")); err != nil {
						r.Fatal(err)
					}
				},
				"forget": func() {
					id := rapid.SampledFrom([]string{"min", "max"}).Draw(r, "which")
					for _, text := range []string{
						"DELETE FROM indexed_facts WHERE path_id = (SELECT " + id + "(path_id) FROM indexed_paths)",
						"DELETE FROM indexed_paths WHERE path_id = (SELECT " + id + "(path_id) FROM indexed_paths)",
					} {
						if err := s.write(t.Context(), func(ctx context.Context, q querier) error { _, err := q.exec(ctx, text); return err }); err != nil {
							r.Fatal(err)
						}
					}
				},
			}
			for range rapid.IntRange(1, 16).Draw(r, "acts") {
				acts[rapid.SampledFrom([]string{"save", "save", "save", "purge", "index", "forget"}).Draw(r, "act")]()
				check()
			}
		})
	})
}

// A path is indexed while facts are written: what is written before, beside it and after it is found.
func TestFactsAreIndexedWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		const writers, rounds = 4, 12
		var writing, indexing sync.WaitGroup
		written := make(chan struct{})
		for w := range writers {
			writing.Go(func() {
				for i := range rounds {
					node := fmt.Sprintf("n%d-%d.example.test", w, i%3)
					values := map[string]any{fmt.Sprintf("role%d", i%4): fmt.Sprint("web", i), "seen": fmt.Sprint(i)}
					if err := saveFacts(t.Context(), s, node, values, fleetStart.Add(time.Duration(i)*time.Second)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		indexing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-written:
					return
				default:
				}
				if err := s.Queries.index.index(t.Context(), []string{"role0", "role1", "role2", "role3", "seen"}[i%5]); err != nil {
					t.Error(err)
				}
			}
		})
		writing.Wait()
		close(written)
		indexing.Wait()
		got, want := indexedTexts(t, s)
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("%d texts; the index and the facts differ (-facts +index):\n%s", len(want), diff)
		}
	})
}

// Who indexes a path waits for facts that are being written: they would be in no copy, and no trigger knew of the path.
func TestIndexingWaitsForFactsThatAreBeingWritten(t *testing.T) {
	t.Parallel()
	s := openTest(t, places["postgres"](t))
	if err := saveFacts(t.Context(), s, "n.example.test", map[string]any{"role": "web"}, fleetStart); err != nil {
		t.Fatal(err)
	}
	indexed := make(chan error, 1)
	err := s.write(t.Context(), func(ctx context.Context, q querier) error {
		if err := s.Facts.usePaths(ctx, q); err != nil {
			return err
		}
		if _, err := q.exec(ctx, "UPDATE facts SET value = 'db'"); err != nil {
			return err
		}
		go func() { indexed <- s.Queries.index.index(context.WithoutCancel(ctx), "role") }()
		for len(indexed) == 0 {
			waits, err := one[bool](s.reads.row(ctx, `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`))
			if err != nil || waits {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, <-indexed); err != nil {
		t.Fatal(err)
	}
	if got, want := indexedTexts(t, s); len(want) != 1 || !slices.Equal(got, want) {
		t.Errorf("the index has %v, the facts %v", got, want)
	}
}

// Paths that are asked for often are indexed, while there is room, and give way when nobody asked for them in a month.
func TestWhatIsAskedForOftenIsIndexed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		values := map[string]any{}
		for i := range maxIndexedPaths + 2 {
			values[fmt.Sprintf("f%02d", i)] = "x"
		}
		if err := saveFacts(t.Context(), s, "n.example.test", values, fleetStart); err != nil {
			t.Fatal(err)
		}
		now := fleetStart
		s.Queries.index.clock = func() time.Time { return now }
		ask := func(path string, times int) {
			t.Helper()
			for range times {
				if got := whoHas(t, s, "facts."+path, "x"); len(got) != 1 {
					t.Fatalf("%v have %s", got, path)
				}
			}
		}
		ask("f00", indexAfter-1)
		whoHas(t, s, "facts.nobody.has.it", "x")
		if got := indexedPaths(t, s); len(got) != 0 {
			t.Errorf("%v is indexed already", got)
		}
		for i := range maxIndexedPaths + 1 {
			ask(fmt.Sprintf("f%02d", i), indexAfter)
		}
		have := indexedPaths(t, s)
		if len(have) != maxIndexedPaths || slices.Contains(have, "f64") {
			t.Errorf("indexed are %v", have)
		}
		now = now.Add(indexIdle - time.Hour)
		for i := range maxIndexedPaths {
			if i != 7 {
				ask(fmt.Sprintf("f%02d", i), 1)
			}
		}
		now = now.Add(2 * time.Hour)
		ask("f65", indexAfter)
		if have = indexedPaths(t, s); len(have) != maxIndexedPaths || slices.Contains(have, "f07") || !slices.Contains(have, "f65") {
			t.Errorf("after a month indexed are %v", have)
		}
		if got, want := indexedTexts(t, s); len(want) != maxIndexedPaths || !slices.Equal(got, want) {
			t.Errorf("the index has %v, not %v", got, want)
		}
	})
}

// What a program of the version before writes comes to the index, too, though that program knows nothing of it.
func TestOlderProgramsKeepTheIndex(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		if err := saveFacts(t.Context(), s, "n.example.test", map[string]any{"role": "web"}, fleetStart); err != nil {
			t.Fatal(err)
		}
		if err := s.Queries.index.index(t.Context(), "role"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct{ text, has string }{
			{"UPDATE facts SET value = 'db'", "db"},
			{`INSERT INTO facts (node_id, path_id, kind, value) SELECT node_id, path_id, 4, 'mail' FROM facts WHERE 1 = 1
				ON CONFLICT (node_id, path_id) DO UPDATE SET value = excluded.value`, "mail"},
			{"UPDATE facts SET kind = 1, value = 'true'", ""},
			{"UPDATE facts SET kind = 4, value = 'web'", "web"},
			{"DELETE FROM facts", ""},
		} {
			if err := s.write(t.Context(), func(ctx context.Context, q querier) error { _, err := q.exec(ctx, step.text); return err }); err != nil {
				t.Fatal(err)
			}
			found, err := collect(t.Context(), s.reads, one[string], "SELECT value FROM indexed_facts")
			if err != nil || strings.Join(found, " ") != step.has {
				t.Errorf("after %s the index has %v, %v", step.text, found, err)
			}
		}
	})
}

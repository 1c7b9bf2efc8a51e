package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

func checked(tb testing.TB, text string) pql.Checked {
	tb.Helper()
	read := pql.Parse
	if strings.HasPrefix(text, "[") {
		read = func(text string) (*pql.Query, error) { return pql.ParseAST(text, "") }
	}
	q, err := read(text)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	c, err := pql.Check(q)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return c
}

func askAll(tb testing.TB, s *Store, q pql.Checked) ([]map[string]any, int64) {
	tb.Helper()
	rows := []map[string]any{}
	var total int64
	err := s.Queries.Ask(tb.Context(), inventory.Question{Query: q, Counted: func(n int64) { total = n }}, func(row json.RawMessage) error {
		var m map[string]any
		if err := json.Unmarshal(row, &m); err != nil {
			tb.Errorf("%s: %s: %v", q.Query(), row, err)
		}
		rows = append(rows, m)
		return nil
	})
	if err != nil {
		tb.Errorf("%s: %v", q.Query(), err)
	}
	return rows, total
}

// queries are those of the file, one a line; # begins a comment.
func queries(tb testing.TB) []string {
	tb.Helper()
	text, err := os.ReadFile("testdata/queries.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// indexAll indexes every path that there is.
func indexAll(t *testing.T, s *Store) {
	t.Helper()
	paths, err := collect(t.Context(), s.reads, one[string], "SELECT path FROM fact_paths")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := s.Queries.index.index(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	if have := indexedPaths(t, s); len(have) != len(paths) || len(have) > maxIndexedPaths {
		t.Fatalf("%d of %d paths are indexed", len(have), len(paths))
	}
}

// TestQueriesGiveWhatTheOracleGives asks both databases and a naive evaluator the
// same, before and after facts are indexed. Without an order, rows are compared as a set.
func TestQueriesGiveWhatTheOracleGives(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		o := queryFleet(t, s)
		for _, indexed := range []bool{false, true} {
			if indexed {
				indexAll(t, s)
			}
			for _, text := range queries(t) {
				q := checked(t, text)
				want := o.answer(q.Query())
				got, total := askAll(t, s, q)
				compareRows(t, text, q.Query(), want, got)
				whole := *q.Query()
				whole.Limit, whole.Offset = nil, nil
				if all := len(o.answer(&whole)); total != int64(all) {
					t.Errorf("%s: total %d, want %d", text, total, all)
				}
			}
		}
	})
}

// TestGoneNodes asks for rows of nodes that are deactivated or expired.
func TestGoneNodes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		queryFleet(t, s)
		for _, c := range []struct {
			text string
			gone bool
			want int
		}{
			{`nodes[count()]{}`, false, 12},
			{`nodes[count()]{}`, true, 14},
			{`nodes[count()]{node_state = "active"}`, true, 12},
			{`nodes[count()]{deactivated is not null}`, false, 0},
			{`nodes[count()]{deactivated is not null}`, true, 1},
			{`nodes[count()]{facts{node_state = "inactive"}}`, false, 2},
		} {
			var row struct{ Count int }
			err := s.Queries.Ask(t.Context(), inventory.Question{Query: checked(t, c.text), Gone: c.gone},
				func(text json.RawMessage) error { return json.Unmarshal(text, &row) })
			if err != nil || row.Count != c.want {
				t.Errorf("%s, gone %v: %d, %v", c.text, c.gone, row.Count, err)
			}
		}
	})
}

func compareRows(t *testing.T, text string, q *pql.Query, want, got []map[string]any) {
	t.Helper()
	a, b := lines(t, want), lines(t, got)
	if len(q.OrderBy) == 0 {
		slices.Sort(a)
		slices.Sort(b)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s (-oracle +store):\n%s", text, diff)
	}
}

// lines writes rows comparably. What the oracle does not know (a resource's number,
// expanded documents) is left out.
func lines(t *testing.T, rows []map[string]any) []string {
	t.Helper()
	out := make([]string, len(rows))
	for i, row := range rows {
		plain := map[string]any{}
		for key, v := range row {
			if !slices.Contains([]string{"resource", "resources", "edges", "metrics", "logs", "resource_events"}, key) {
				plain[key] = plainValue(v)
			}
		}
		text, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(text)
	}
	return out
}

func TestExpandedFields(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		queryFleet(t, s)
		rows, _ := askAll(t, s, checked(t, `catalogs[resources, edges] { certname = "web-0.example.test" }`))
		resources := rows[0]["resources"].(map[string]any)
		list := resources["data"].([]any)
		if resources["href"] != "/pdb/query/v4/catalogs/web-0.example.test/resources" || len(list) != 4 {
			t.Errorf("resources: %v", resources)
		}
		if first := list[0].(map[string]any); first["title"] != "Main" || first["exported"] != false || first["file"] != nil {
			t.Errorf("first resource: %v", first)
		}
		edges := rows[0]["edges"].(map[string]any)["data"].([]any)
		if got := edges[0].(map[string]any); got["source_type"] != "Class" || got["target_title"] != "/etc/a[0]" {
			t.Errorf("first edge: %v", got)
		}
		rows, _ = askAll(t, s, checked(t, `reports[metrics, logs, resource_events] { certname = "db-1.example.test" }`))
		metrics := rows[0]["metrics"].(map[string]any)["data"].([]any)
		if diff := cmp.Diff(map[string]any{"category": "time", "name": "total", "value": 1.5}, metrics[0]); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		events := rows[0]["resource_events"].(map[string]any)["data"].([]any)
		if got := events[0].(map[string]any); len(events) != 3 || got["containing_class"] != "Role::Web" || got["old_value"] != "0600" {
			t.Errorf("events: %v", events)
		}
	})
}

func TestEventCounts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		queryFleet(t, s)
		two := int64(2)
		for want, q := range map[string]inventory.EventQuestion{
			`[{"failures":1,"noops":0,"skips":1,"subject":{"title":"db-1.example.test"},"subject_type":"certname","successes":1},{"failures":1,"noops":0,"skips":1,"subject":{"title":"db-10.example.test"},"subject_type":"certname","successes":1}]`: {
				SummarizeBy: []string{"certname"}, Events: checked(t, `events { certname ~ "^db" }`), Limit: &two,
			},
			`[{"failures":0,"noops":0,"skips":1,"subject":{"title":"/bin/x","type":"Exec"},"subject_type":"resource","successes":0},{"failures":1,"noops":0,"skips":0,"subject":{"title":"/etc/a","type":"File"},"subject_type":"resource","successes":1}]`: {
				SummarizeBy: []string{"resource"}, Events: checked(t, `events { certname = "db-1.example.test" }`),
			},
			`[{"failures":1,"noops":0,"skips":1,"successes":1,"summarize_by":"certname","total":1},{"failures":1,"noops":0,"skips":1,"successes":1,"summarize_by":"containing_class","total":2}]`: {
				SummarizeBy: []string{"certname", "containing_class"}, Aggregate: true, Events: checked(t, `events { certname = "db-1.example.test" }`),
			},
			`[{"failures":0,"noops":0,"skips":0,"successes":0,"summarize_by":"resource","total":0}]`: {
				SummarizeBy: []string{"resource"}, Aggregate: true, Events: checked(t, `events { certname = "nobody" }`),
			},
		} {
			var rows []json.RawMessage
			err := s.Queries.AskEvents(t.Context(), q, func(row json.RawMessage) error {
				rows = append(rows, slices.Clone(row))
				return nil
			})
			got, _ := json.Marshal(rows)
			if err != nil || string(got) != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		}
	})
}

// Events of the fleet are summed up as they are when each is looked at.
func TestEventCountsAreThoseOfTheOracle(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		o := queryFleet(t, s)
		statuses := map[string]string{"failure": "failures", "success": "successes", "noop": "noops", "skipped": "skips"}
		all := checked(t, "events { }")
		for by, field := range map[string]string{"certname": "certname", "containing_class": "containing_class", "resource": "resource_title"} {
			want := map[string]map[string]float64{}
			for _, row := range o.answer(all.Query()) {
				title := fmt.Sprint(row[field])
				if want[title] == nil {
					want[title] = map[string]float64{"failures": 0, "successes": 0, "noops": 0, "skips": 0}
				}
				want[title][statuses[row["status"].(string)]]++
			}
			got := map[string]map[string]float64{}
			err := s.Queries.AskEvents(t.Context(), inventory.EventQuestion{SummarizeBy: []string{by}, Events: all}, func(text json.RawMessage) error {
				var row map[string]any
				err := json.Unmarshal(text, &row)
				sums := map[string]float64{}
				for _, name := range statuses {
					sums[name], _ = row[name].(float64)
				}
				got[fmt.Sprint(row["subject"].(map[string]any)["title"])] = sums
				return err
			})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("by %s: %v (-oracle +store):\n%s", by, err, diff)
			}
		}
	})
}

func TestAQueryHasBounds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		queryFleet(t, s)
		nothing := func(json.RawMessage) error { return nil }
		err := s.Queries.Ask(t.Context(), inventory.Question{Query: checked(t, "nodes {}"), MaxRows: 3}, nothing)
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), "more than 3 rows") {
			t.Errorf("too many rows: %v", err)
		}
		enough := errors.New("enough")
		err = s.Queries.Ask(t.Context(), inventory.Question{Query: checked(t, "nodes {}")}, func(json.RawMessage) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("the asker's error: %v", err)
		}
	})
}

// Askers that are slow take turns and leave the other readers alone.
func TestQueriesLeaveReadersToOthers(t *testing.T) {
	t.Parallel()
	s := engines["sqlite"](t)
	queryFleet(t, s)
	started, release := make(chan struct{}, maxQueries), make(chan struct{})
	done := make(chan error, maxQueries)
	for range maxQueries {
		go func() {
			first := true
			done <- s.Queries.Ask(t.Context(), inventory.Question{Query: checked(t, "facts {}")}, func(json.RawMessage) error {
				if first {
					first = false
					started <- struct{}{}
					<-release
				}
				return nil
			})
		}()
	}
	for range maxQueries {
		<-started
	}
	if _, err := s.Facts.Facts(t.Context(), "web-0.example.test"); err != nil {
		t.Errorf("an agent's question: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := s.Queries.Ask(ctx, inventory.Question{Query: checked(t, "nodes {}")}, func(json.RawMessage) error { return nil })
	if fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) == 0 {
		t.Errorf("one query too many: %v", err)
	}
	close(release)
	for range maxQueries {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

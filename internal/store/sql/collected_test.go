package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// exportedRows makes nodes with 60 resources each, of which the first two are
// exported: a Notify, and a File like 30 others.
func exportedRows(tb testing.TB, s *Store, nodes int) {
	tb.Helper()
	const each, batch = 60, 250
	for from := 1; from <= nodes; from += batch {
		var names, catalogs, rows [][]any
		hash := []byte("hash")
		for n := from; n < from+batch && n <= nodes; n++ {
			names = append(names, []any{int64(n), fmt.Sprintf("n%05d.example", n), "production", int64(1)})
			catalogs = append(catalogs, []any{int64(n), "production", "d", "v", "u", "t", int64(1), int64(n), int64(1)})
			for r := range each {
				kind := []string{"File", "Service"}[r%2]
				if r == 1 {
					kind = "Notify"
				}
				rows = append(rows, []any{int64(n), kind, fmt.Sprintf("n%d r%d", n, r), bit(r < 2), "/site.pp", int64(r), `["a","web"]`, hash})
			}
		}
		err := s.write(tb.Context(), func(ctx context.Context, q querier) error {
			node := []column{{"id", ints}, {"certname", texts}, {"environment", texts}, {"created_at", ints}}
			catalog := []column{
				{"node_id", ints},
				{"environment", texts},
				{"digest", texts},
				{"version", texts},
				{"uuid", texts},
				{"transaction_uuid", texts},
				{"compiled_at", ints},
				{"compilation", ints},
				{"seq", ints},
			}
			if err := s.dialect.insert(ctx, q, "nodes", node, "", names); err != nil {
				return err
			}
			if err := s.dialect.insert(ctx, q, "catalogs", catalog, "", catalogs); err != nil {
				return err
			}
			parameters := [][]any{{hash, `{"mode":"0644","content":"` + strings.Repeat("x", 200) + `"}`}}
			if err := s.dialect.insert(ctx, q, "resource_parameters", parameterRow, "ON CONFLICT (hash) DO NOTHING", parameters); err != nil {
				return err
			}
			return s.dialect.insert(ctx, q, "resources", resourceRow, "", rows)
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	if s.dialect.postgres {
		if err := s.write(tb.Context(), func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, "ANALYZE")
			return err
		}); err != nil {
			tb.Fatal(err)
		}
	}
}

// collecting is what a compile asks for a collector.
const collecting = `["from","resources",["extract",["certname","type","title","parameters"],["and",["=","type","%s"],["=","exported",true],
	["=","node_state","active"],["not",["=","certname","n00001.example"]]%s]],["order_by",["certname","title"]]]`

// A collector reads what is exported, not all resources of its type.
func TestCollectingUsesItsIndex(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		exportedRows(t, s, 500)
		for _, filter := range []string{"", `,["=","tag","web"]`, `,["or",["=","title","x"],["=",["parameter","mode"],"0644"]]`} {
			q := checked(t, fmt.Sprintf(collecting, "File", filter))
			if plan := explainPlan(t, s, q.Query()); !strings.Contains(plan, "resources_exported") {
				t.Errorf("filter %s: the plan does not use the index:\n%s", filter, plan)
			}
			want := 499
			if rows, _ := askAll(t, s, q); len(rows) != want || rows[0]["certname"] != "n00002.example" {
				t.Errorf("filter %s: %d rows, want %d", filter, len(rows), want)
			}
		}
	})
}

// explainPlan is the database's plan for a query.
func explainPlan(tb testing.TB, s *Store, q *pql.Query) string {
	tb.Helper()
	t := &query.Translation{Words: query.Words{Postgres: s.dialect.postgres}}
	st := t.Statement(q)
	lines, err := collect(tb.Context(), s.reads, func(row scanner) (line string, err error) {
		if s.dialect.postgres {
			return line, row.Scan(&line)
		}
		var a, b, c any
		return line, row.Scan(&a, &b, &c, &line)
	}, map[bool]string{true: "EXPLAIN ", false: "EXPLAIN QUERY PLAN "}[s.dialect.postgres]+st.Text, t.Args...)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// BenchmarkCollect asks as a collector among 5 000 nodes: of which each exports one
// resource of the type, and half of all resources have that type.
func BenchmarkCollect(b *testing.B) {
	bothEngines(b, func(b *testing.B, s *Store) {
		b.Helper()
		exportedRows(b, s, 5000)
		for name, filter := range map[string]string{"all": "", "one": `,["=","title","n77 r0"]`, "tag": `,["=","tag","absent"]`} {
			q := checked(b, fmt.Sprintf(collecting, "File", filter))
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					askAll(b, s, q)
				}
			})
		}
	})
}

// While every place of other askers is taken, a compilation gets its answer.
func TestOtherAskersDoNotHoldUpCompilations(t *testing.T) {
	t.Parallel()
	s := engines["sqlite"](t)
	for range maxQueries {
		s.Queries.asking <- struct{}{}
	}
	q := checked(t, "nodes{}")
	if err := s.Queries.Ask(t.Context(), inventory.Question{Query: q, Compiling: true}, func(json.RawMessage) error { return nil }); err != nil {
		t.Errorf("a compilation asks: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Queries.Ask(ctx, inventory.Question{Query: q}, func(json.RawMessage) error { return nil }); fault.Of(err) != fault.Unavailable {
		t.Errorf("another asks: %v, want Unavailable", err)
	}
}

package sql

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// prunedPaths is how many fact paths are pruned with one look at all facts.
const prunedPaths = 5000

// factPathLock is held by transactions that use fact paths, and alone by those that remove some.
const factPathLock = "hashtextextended('tutti fact paths', 4)"

// usePaths keeps fact paths from being removed, and indexed, until the transaction ends. SQLite has one writer anyway.
func (s *base) usePaths(ctx context.Context, q querier) error {
	if !s.dialect.postgres {
		return nil
	}
	_, err := q.exec(ctx, "SELECT pg_advisory_xact_lock_shared("+factPathLock+")")
	return err
}

// holdPaths waits until nobody uses fact paths, and keeps others from it until the transaction ends. What is remembered of
// them is forgotten.
func (s *Facts) holdPaths(ctx context.Context, q querier) error {
	if err := s.awaitFacts(ctx, q); err != nil {
		return err
	}
	s.paths.forget()
	return nil
}

// awaitFacts waits until nobody writes facts, and keeps others from it until the transaction ends.
func (s *base) awaitFacts(ctx context.Context, q querier) error {
	if !s.dialect.postgres {
		return nil
	}
	_, err := q.exec(ctx, "SELECT pg_advisory_xact_lock("+factPathLock+")")
	return err
}

// PruneFactPaths forgets paths of facts that no node has, and counts them.
//
// Facts have no index by path, so they are read for many paths at once, while nobody waits. What is written meanwhile is
// noticed by the kinds of a path: they are forgotten first, with what is remembered in memory, so that whoever writes a
// fact of such a path records a kind of it again; and a path with a kind is not removed.
func (s *Facts) PruneFactPaths(ctx context.Context) (int, error) {
	if err := s.findWitnesses(ctx); err != nil {
		return 0, err
	}
	for pruned := 0; ; {
		n, more, err := s.pruneFactPaths(ctx)
		pruned += n
		if err != nil || !more {
			return pruned, explain(err, "prune fact paths")
		}
	}
}

func (s *Facts) pruneFactPaths(ctx context.Context) (pruned int, more bool, err error) {
	ids, err := collect(ctx, s.reads, one[int64], `SELECT p.id FROM fact_paths p WHERE NOT EXISTS (
		SELECT 1 FROM fact_kinds k WHERE k.path_id = p.id AND `+query.Witnessed+`) ORDER BY p.id LIMIT $1`, prunedPaths)
	if err != nil || len(ids) == 0 {
		return 0, false, err
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return 0, false, err
	}
	list := "(SELECT CAST(value AS BIGINT) FROM " + s.words().Elements("$1") + " l)"
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		if err := s.holdPaths(ctx, q); err != nil {
			return err
		}
		_, err := q.exec(ctx, "DELETE FROM fact_kinds WHERE path_id IN "+list, string(text))
		return err
	})
	if err != nil {
		return 0, false, err
	}
	used, err := collect(ctx, s.reads, func(row scanner) ([]any, error) {
		var path, kind, node int64
		err := row.Scan(&path, &kind, &node)
		return []any{path, kind, node}, err
	}, "SELECT f.path_id, f.kind, min(f.node_id) FROM facts f WHERE f.path_id IN "+list+" GROUP BY f.path_id, f.kind", string(text))
	if err != nil {
		return 0, false, err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		if err := s.holdPaths(ctx, q); err != nil {
			return err
		}
		if err := s.dialect.insert(ctx, q, "fact_kinds", kindRow, "ON CONFLICT (path_id, kind) DO NOTHING", used); err != nil {
			return err
		}
		count, err := q.exec(ctx, "DELETE FROM fact_paths WHERE id IN "+list+
			" AND NOT EXISTS (SELECT 1 FROM fact_kinds k WHERE k.path_id = fact_paths.id)", string(text))
		if err != nil {
			return err
		}
		pruned = int(count)
		_, err = q.exec(ctx, "DELETE FROM indexed_paths WHERE path_id NOT IN (SELECT id FROM fact_paths)")
		return err
	})
	return pruned, len(ids) == prunedPaths, err
}

// HavePaths implements groupcheck.Facts.
func (s *Facts) HavePaths(ctx context.Context, paths []string) (map[string]bool, error) {
	list, err := json.Marshal(append([]string{}, paths...))
	if err != nil {
		return nil, err
	}
	some, err := one[bool](s.reads.row(ctx, "SELECT EXISTS (SELECT 1 FROM facts)"))
	if err != nil || !some {
		return nil, explain(err, "look whether there are facts")
	}
	found, err := collect(ctx, s.reads, one[string], `SELECT p.path FROM fact_paths p WHERE p.path IN (SELECT value FROM `+s.words().Elements("$1")+` l)
		AND EXISTS (SELECT 1 FROM fact_kinds k WHERE k.path_id = p.id
			AND (`+query.Witnessed+` OR (k.path_id, k.kind) IN (SELECT o.path_id, o.kind FROM (`+query.Elsewhere+`) o)))`, string(list))
	have := make(map[string]bool, len(found))
	for _, path := range found {
		have[path] = true
	}
	return have, explain(err, "read fact paths")
}

package sql

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

var collectedRow = []column{{"node_id", ints}, {"type", texts}, {"title", texts}, {"exporter", texts}}

// putCollected makes collected all that a node's catalog holds of other nodes. It
// runs in the write that has locked the catalog's row, so nobody else writes them.
// Rows are compared, because what is collected may change where the catalog does
// not, and mostly neither does.
func (s *Catalogs) putCollected(ctx context.Context, q querier, node int64, collected []inventory.Collected) error {
	before, err := s.collectedRows(ctx, q, node)
	if err != nil {
		return err
	}
	kept := make(map[resourceName]fleet.Certname, len(before))
	for _, c := range before {
		kept[resourceName{c.Type, c.Title}] = c.Exporter
	}
	var rows [][]any
	for _, c := range collected {
		name := resourceName{query.Clean(c.Type), query.Clean(c.Title)}
		if exporter, ok := kept[name]; !ok || exporter != c.Exporter {
			rows = append(rows, []any{node, name.kind, name.title, string(c.Exporter)})
		}
		delete(kept, name)
	}
	for name := range kept {
		if _, err := q.exec(ctx, "DELETE FROM collected WHERE node_id = $1 AND type = $2 AND title = $3", node, name.kind, name.title); err != nil {
			return err
		}
	}
	return s.dialect.insert(ctx, q, "collected", collectedRow,
		"ON CONFLICT (node_id, type, title) DO UPDATE SET exporter = excluded.exporter", rows)
}

// collectedRows lists what a node collected, by type and title.
func (s *Catalogs) collectedRows(ctx context.Context, q querier, node int64) ([]inventory.Collected, error) {
	return collect(ctx, q, func(row scanner) (c inventory.Collected, err error) {
		err = row.Scan(&c.Type, &c.Title, &c.Exporter)
		return c, err
	}, "SELECT type, title, exporter FROM collected WHERE node_id = $1 ORDER BY type, title", node)
}

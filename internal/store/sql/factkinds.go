package sql

import (
	"context"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// The kinds of value that a path has anywhere are kept with one node each that
// bears witness. A kind is removed with its path only: where its witness has changed since, the
// question for paths looks for another one.

var kindRow = []column{{"path_id", ints}, {"kind", ints}, {"node_id", ints}}

// putKinds records the kinds of the changes at these positions, and adds them to
// what is to be remembered after the commit.
func (s *Facts) putKinds(ctx context.Context, q querier, node int64, changes []facts.Change, ids []int64, unseen []int, fresh map[string]knownPath) error {
	rows := make([][]any, 0, len(unseen))
	for _, i := range unseen {
		rows = append(rows, []any{ids[i], int64(changes[i].Kind), node})
		fresh[changes[i].Path] = knownPath{ids[i], fresh[changes[i].Path].kinds | kindBit(changes[i].Kind)}
	}
	return s.dialect.insert(ctx, q, "fact_kinds", kindRow, "ON CONFLICT (path_id, kind) DO NOTHING", rows)
}

// findWitnesses names a new witness for each kind that lost its own.
func (s *Facts) findWitnesses(ctx context.Context) error {
	lost, err := one[bool](s.reads.row(ctx, "SELECT EXISTS (SELECT 1 FROM fact_kinds k WHERE NOT "+query.Witnessed+")"))
	if err != nil || !lost {
		return explain(err, "look for fact kinds")
	}
	found, err := collect(ctx, s.reads, func(row scanner) (k [3]int64, err error) {
		err = row.Scan(&k[0], &k[1], &k[2])
		return k, err
	}, query.Elsewhere)
	if err != nil {
		return explain(err, "look for fact kinds")
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		for _, k := range found {
			if _, err := q.exec(ctx, "UPDATE fact_kinds SET node_id = $1 WHERE path_id = $2 AND kind = $3", k[2], k[0], k[1]); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "save fact kinds")
}

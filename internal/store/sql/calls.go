package sql

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Calls is calls of actions that only read.
type Calls struct{ *base }

// SaveCall implements history.Store.
func (s *Calls) SaveCall(ctx context.Context, c history.Call) (id int64, err error) {
	counts, err := json.Marshal(c.Counts)
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) (err error) {
		id, err = one[int64](q.row(ctx, `INSERT INTO calls (actor, actor_kind, module, action, input, targets, nodes, counts, began_at, ended_at, left_early)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id`,
			c.Actor, c.ActorKind, c.Module, c.Action, query.Clean(c.Input), query.Clean(c.Targets), c.Nodes, string(counts),
			micros(c.Began), micros(c.Ended), bit(c.Left)))
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, "DELETE FROM calls WHERE id <= $1", id-history.MaxCalls)
		return err
	})
	return id, explain(err, "record a call of %s %s", c.Module, c.Action)
}

const selectCalls = "SELECT id, actor, actor_kind, module, action, input, targets, nodes, counts, began_at, ended_at, left_early FROM calls"

func scanCall(row scanner) (c history.Call, err error) {
	var counts string
	var left int
	err = row.Scan(&c.ID, &c.Actor, &c.ActorKind, &c.Module, &c.Action, &c.Input, &c.Targets, &c.Nodes, &counts, at(&c.Began), at(&c.Ended), &left)
	if err == nil {
		err = json.Unmarshal([]byte(counts), &c.Counts)
	}
	c.Left = left != 0
	return c, err
}

// Calls implements history.Store.
func (s *Calls) Calls(ctx context.Context, p history.Page) ([]history.Call, error) {
	list, err := collect(ctx, s.reads, scanCall, selectCalls+` WHERE ($1 = 0 OR id < $1) AND ($2 = '' OR actor = $2) AND ($3 = '' OR module = $3)
		ORDER BY id DESC LIMIT $4`, p.Before, p.Actor, p.Module, p.Limit)
	return list, explain(err, "list calls")
}

// Call implements history.Store.
func (s *Calls) Call(ctx context.Context, id int64) (history.Call, error) {
	c, err := scanCall(s.reads.row(ctx, selectCalls+" WHERE id = $1", id))
	return c, explain(missing(err, "there is no record of a call c%d", id), "read a call")
}

// PruneCalls implements history.Store.
func (s *Calls) PruneCalls(ctx context.Context, before time.Time) (int, error) {
	return s.prune(ctx, "calls", "DELETE FROM calls WHERE ended_at < $1", micros(before))
}

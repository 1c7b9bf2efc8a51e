package sql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// FactQueue is facts that came apart from runs and are not applied yet.
type FactQueue struct{ *base }

const queuedFactsColumns = "certname, environment, digest, number, node_at, accepted_at, document, arrangement"

func (s *FactQueue) scanSet(row scanner) (set factqueue.Set, err error) {
	var packed []byte
	err = row.Scan(&set.Node, &set.Environment, &set.Digest, &set.Number, at(&set.Timestamp), at(&set.AcceptedAt), &packed, &set.Arrangement)
	if err == nil {
		set.Values, err = s.packer.unpack(packed)
	}
	return set, err
}

// EnqueueFacts implements factqueue.Store.
func (s *FactQueue) EnqueueFacts(ctx context.Context, set factqueue.Set) (grown factqueue.Load, err error) {
	packed := s.packer.pack(set.Values)
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		got, err := s.enqueue(ctx, q, set, packed)
		grown = got
		return err
	})
	return grown, explain(err, "queue the facts of %s", set.Node)
}

func (s *FactQueue) enqueue(ctx context.Context, q querier, set factqueue.Set, packed []byte) (grown factqueue.Load, err error) {
	var number, produced int64
	err = q.row(ctx, "SELECT f.number, f.produced_at FROM nodes n JOIN factsets f ON f.node_id = n.id WHERE n.certname = $1", set.Node).Scan(&number, &produced)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return grown, err
	}
	var waiting, accepted, bytes int64
	err = q.row(ctx, "SELECT number, accepted_at, bytes FROM fact_intake WHERE certname = $1"+s.dialect.forUpdate, set.Node).Scan(&waiting, &accepted, &bytes)
	fresh := errors.Is(err, sql.ErrNoRows)
	if err != nil && !fresh {
		return grown, err
	}
	if newest := max(number, waiting); set.Number < newest {
		return grown,
			fault.New(fault.Conflict, "a newer submission than number %d was accepted: number %d; send all facts with PUT and a number above that", set.Number, newest)
	} else if set.Number == newest {
		return grown, nil
	}
	when := max(micros(set.AcceptedAt), produced+1, accepted+1)
	// Of two that insert at the same time the one with the higher number stays.
	count, err := q.exec(ctx, `INSERT INTO fact_intake (`+queuedFactsColumns+`, bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (certname) DO UPDATE SET environment = excluded.environment, digest = excluded.digest, number = excluded.number, node_at = excluded.node_at,
		accepted_at = excluded.accepted_at, document = excluded.document, arrangement = excluded.arrangement, bytes = excluded.bytes
		WHERE fact_intake.number < excluded.number`,
		set.Node, set.Environment, set.Digest, set.Number, micros(set.Timestamp), when, packed, set.Arrangement, len(packed))
	if err != nil || count == 0 {
		return grown, err
	}
	grown = factqueue.Load{Bytes: int64(len(packed)) - bytes}
	if fresh {
		grown.Sets = 1
	}
	return grown, nil
}

// QueuedFacts implements factqueue.Store.
func (s *FactQueue) QueuedFacts(ctx context.Context, node fleet.Certname) (factqueue.Set, error) {
	set, err := s.scanSet(s.reads.row(ctx, "SELECT "+queuedFactsColumns+" FROM fact_intake WHERE certname = $1", node))
	return set, explain(missing(err, "no facts of %s are queued", node), "read the queued facts of %s", node)
}

// DueFacts implements factqueue.Store.
func (s *FactQueue) DueFacts(ctx context.Context, n int) ([]factqueue.Set, error) {
	sets, err := collect(ctx, s.reads, s.scanSet, "SELECT "+queuedFactsColumns+" FROM fact_intake ORDER BY accepted_at, certname LIMIT $1", n)
	return sets, explain(err, "read queued facts")
}

// DequeueFacts implements factqueue.Store.
func (s *FactQueue) DequeueFacts(ctx context.Context, sets []factqueue.Set) (gone factqueue.Load, err error) {
	if len(sets) == 0 {
		return gone, nil
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		var removed factqueue.Load
		for _, set := range sets {
			bytes, err := collect(ctx, q, one[int64], "DELETE FROM fact_intake WHERE certname = $1 AND number = $2 RETURNING bytes", set.Node, set.Number)
			if err != nil {
				return err
			}
			for _, n := range bytes {
				removed.Sets++
				removed.Bytes += n
			}
		}
		gone = removed
		return nil
	})
	return gone, explain(err, "remove queued facts")
}

// QueuedLoad implements factqueue.Store.
func (s *FactQueue) QueuedLoad(ctx context.Context) (load factqueue.Load, err error) {
	err = s.reads.row(ctx, "SELECT COUNT(*), COALESCE(CAST(SUM(bytes) AS BIGINT), 0), COALESCE(MIN(accepted_at), 0) FROM fact_intake").
		Scan(&load.Sets, &load.Bytes, at(&load.Oldest))
	return load, explain(err, "look how many facts are queued")
}

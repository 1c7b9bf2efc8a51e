package sql

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// activate is what an update of a node's row sets when something comes that was
// produced at the time that mark stands for.
func activate(mark string) string {
	return "deactivated_at = CASE WHEN nodes.deactivated_at < " + mark + " THEN 0 ELSE nodes.deactivated_at END, " +
		"expired_at = CASE WHEN nodes.expired_at < " + mark + " THEN 0 ELSE nodes.expired_at END"
}

// producedLast is when the newest thing of a node n was produced.
const producedLast = `COALESCE((SELECT MAX(t.at) FROM (SELECT f.produced_at AS at FROM factsets f WHERE f.node_id = n.id
	UNION ALL SELECT c.produced_at FROM catalogs c WHERE c.node_id = n.id AND c.received >= $1
	UNION ALL SELECT n.report_produced_at) t), 0)`

// DeactivateNode implements inventory.NodeStore.
func (s *Nodes) DeactivateNode(ctx context.Context, name fleet.Certname, since time.Time) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := ensureNode(ctx, q, name, since); err != nil {
			return err
		}
		count, err := q.exec(ctx, `UPDATE nodes AS n SET deactivated_at = $2 WHERE n.certname = $3 AND n.deactivated_at < $2 AND `+producedLast+` <= $2`,
			int64(0), micros(since), name)
		if err != nil || count == 0 {
			return err
		}
		return s.leave(ctx, q, "certname = $1", name)
	})
	s.noted(err)
	return explain(err, "deactivate node %s", name)
}

// leave does what goes with nodes that left: nothing is compiled for them any more.
func (s *Nodes) leave(ctx context.Context, q querier, where string, arg any) error {
	_, err := q.exec(ctx, "DELETE FROM compilations WHERE state IN ('wanted', 'leased') AND certname IN (SELECT certname FROM nodes WHERE "+where+")", arg)
	if err != nil {
		return err
	}
	return s.noteGone(ctx, q, where, arg)
}

func ensureNode(ctx context.Context, q querier, name fleet.Certname, now time.Time) error {
	_, err := q.exec(ctx, "INSERT INTO nodes (certname, environment, created_at) VALUES ($1, '', $2) ON CONFLICT DO NOTHING", name, micros(now))
	return err
}

// ConfigureExpiration implements inventory.NodeStore.
func (s *Nodes) ConfigureExpiration(ctx context.Context, name fleet.Certname, expire bool, when time.Time) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := ensureNode(ctx, q, name, when); err != nil {
			return err
		}
		_, err := q.exec(ctx, "UPDATE nodes SET keeps = $1, keeps_at = $2 WHERE certname = $3 AND keeps_at <= $2", bit(!expire), micros(when), name)
		return err
	})
	return explain(err, "configure the expiration of node %s", name)
}

// ExpireNodes implements inventory.NodeStore.
func (s *Nodes) ExpireNodes(ctx context.Context, before, now time.Time) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, `UPDATE nodes AS n SET expired_at = $2 WHERE n.deactivated_at = 0 AND n.expired_at = 0 AND n.keeps = 0
			AND n.created_at < $3 AND n.keeps_at < $3 AND `+producedLast+` < $3`, int64(1), micros(now), micros(before))
		if err != nil || count == 0 {
			return err
		}
		return s.leave(ctx, q, "expired_at = $1", micros(now))
	})
	s.noted(err)
	return int(count), explain(err, "expire nodes")
}

// PurgeLeftNodes implements inventory.NodeStore.
func (s *Nodes) PurgeLeftNodes(ctx context.Context, before time.Time, limit int) ([]fleet.Certname, error) {
	var purged []fleet.Certname
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		names, err := collect(ctx, q, one[fleet.Certname], "SELECT certname FROM nodes WHERE "+leftAt+" > 0 AND "+leftAt+" < $1 ORDER BY "+
			leftAt+", certname LIMIT $2"+s.dialect.forUpdate, micros(before), limit)
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := s.purgeNamed(ctx, q, name); err != nil {
				return err
			}
		}
		purged = names
		return nil
	})
	return purged, explain(err, "purge nodes that left")
}

// leftAt is when a node was deactivated or expired, whichever was first.
const leftAt = "(CASE WHEN deactivated_at = 0 OR expired_at > 0 AND expired_at < deactivated_at THEN expired_at ELSE deactivated_at END)"

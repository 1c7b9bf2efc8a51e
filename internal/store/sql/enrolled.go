package sql

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// enrolledOnly is nodes that only their certificates are known of, at the time $1.
const enrolledOnly = `SELECT c.certname, c.issued_at FROM certificates c WHERE c.current = 1 AND c.revoked_at = 0 AND c.server = 0 AND c.unlisted = 0
	AND c.not_after > $1 AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.certname = c.certname)`

func scanEnrolment(row scanner) (e inventory.Enrolment, err error) {
	err = row.Scan(&e.Certname, at(&e.At))
	return e, err
}

// Enrolled implements inventory.EnrolmentStore.
func (s *Nodes) Enrolled(ctx context.Context, after, until string, limit int, now time.Time) ([]inventory.Enrolment, error) {
	list, err := collect(ctx, s.reads, scanEnrolment,
		enrolledOnly+" AND c.certname > $2 AND ($3 = '' OR c.certname <= $3) ORDER BY c.certname LIMIT $4", micros(now), after, until, limit)
	return list, explain(err, "list nodes that have joined")
}

// Enrolment implements inventory.EnrolmentStore.
func (s *Nodes) Enrolment(ctx context.Context, name fleet.Certname, now time.Time) (inventory.Enrolment, error) {
	e, err := scanEnrolment(s.reads.row(ctx, enrolledOnly+" AND c.certname = $2", micros(now), name))
	return e, explain(missing(err, "%s has not joined, or more is known of it", name), "read whether node %s has joined", name)
}

// unlist keeps a node that is purged from being listed for its certificate alone; known is whether it had one.
func unlist(ctx context.Context, q querier, name fleet.Certname) (known bool, err error) {
	count, err := q.exec(ctx, "UPDATE certificates SET unlisted = 1 WHERE certname = $1 AND current = 1 AND unlisted = 0 AND revoked_at = 0", name)
	return count > 0, err
}

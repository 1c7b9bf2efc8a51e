package sql

import (
	"context"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Attendances is the last connection of each node's agent.
type Attendances struct{ *base }

// Attendances implements broker.AttendanceStore.
func (s *Attendances) Attendances(ctx context.Context) ([]broker.Attendance, error) {
	all, err := collect(ctx, s.reads, func(row scanner) (a broker.Attendance, err error) {
		return a, row.Scan(&a.Node, &a.Agent, at(&a.Since), at(&a.Until))
	}, "SELECT certname, agent, since, until FROM attendances")
	return all, explain(err, "read who was connected last")
}

var attendanceRow = []column{{"certname", texts}, {"agent", texts}, {"since", ints}, {"until", ints}}

// SaveAttendances implements broker.AttendanceStore.
func (s *Attendances) SaveAttendances(ctx context.Context, last []broker.Attendance) error {
	rows := make([][]any, len(last))
	for i, a := range last {
		rows[i] = []any{string(a.Node), query.Clean(a.Agent), micros(a.Since), micros(a.Until)}
	}
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		return s.dialect.insert(ctx, q, "attendances", attendanceRow,
			"ON CONFLICT (certname) DO UPDATE SET agent = excluded.agent, since = excluded.since, until = excluded.until", rows)
	})
	return explain(err, "note who was connected last")
}

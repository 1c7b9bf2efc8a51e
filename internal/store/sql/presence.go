package sql

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/store/sql/query"
	pcp "github.com/tutti-project/tutti/internal/wire"
)

// Presence is who is connected to which server.
type Presence struct{ *base }

var presenceRow = []column{
	{"uri", texts},
	{"server", texts},
	{"session", ints},
	{"certname", texts},
	{"party", ints},
	{"version", ints},
	{"agent", texts},
	{"remote", texts},
	{"since", ints},
	{"superseded", ints},
}

// TakeSeats implements broker.Roster. The row of numbers is held until the end: whoever sees a number sees all that had a lower one. Rows are
// written in the order of their clients, as they are removed, so that no two wait for each other.
func (s *Presence) TakeSeats(ctx context.Context, server string, who []broker.Presence) (numbers []int64, err error) {
	if len(who) == 0 {
		return nil, nil
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		last, err := one[int64](q.row(ctx, "UPDATE presence_numbers SET last = last + $1 WHERE id = 1 RETURNING last", len(who)))
		if err != nil {
			return err
		}
		given, rows := make([]int64, len(who)), make([][]any, len(who))
		for i, p := range who {
			given[i] = last - int64(len(who)-1-i)
			rows[i] = []any{
				string(p.URI), server, given[i], string(p.Certname), int64(p.Party), int64(p.Version), query.Clean(p.Agent), query.Clean(p.Remote),
				micros(p.Since), micros(p.Superseded),
			}
		}
		slices.SortFunc(rows, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) }) //nolint:forcetypeassert // see above
		numbers = given
		return s.dialect.insert(ctx, q, "presence", presenceRow, `ON CONFLICT (uri) DO UPDATE SET server = excluded.server, session = excluded.session,
			certname = excluded.certname, party = excluded.party, version = excluded.version, agent = excluded.agent, remote = excluded.remote,
			since = excluded.since, superseded = excluded.superseded`, rows)
	})
	if err != nil {
		return nil, explain(err, "note who is connected")
	}
	return numbers, nil
}

// LeaveSeats implements broker.Roster.
func (s *Presence) LeaveSeats(ctx context.Context, places []broker.Place) error {
	if len(places) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(places), func(a, b broker.Place) int { return strings.Compare(string(a.URI), string(b.URI)) })
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		for _, p := range sorted {
			if _, err := q.exec(ctx, "DELETE FROM presence WHERE uri = $1 AND session = $2", p.URI, p.Number); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "note who left")
}

// ClearSeats implements broker.Roster.
func (s *Presence) ClearSeats(ctx context.Context, server string) (cleared int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, "UPDATE presence_numbers SET last = last WHERE id = 1"); err != nil { // nobody takes seats meanwhile
			return err
		}
		n, err := q.exec(ctx, "DELETE FROM presence WHERE server = $1", server)
		cleared = int(n)
		return err
	})
	return cleared, explain(err, "forget who is connected to a server")
}

// Tallies implements broker.Roster.
func (s *Presence) Tallies(ctx context.Context) (all map[string]broker.Tally, newest int64, err error) {
	if newest, err = one[int64](s.reads.row(ctx, "SELECT last FROM presence_numbers WHERE id = 1")); err != nil {
		return nil, 0, explain(err, "count who is connected")
	}
	type row struct {
		server string
		broker.Tally
	}
	rows, err := collect(ctx, s.reads, func(from scanner) (r row, err error) {
		return r, from.Scan(&r.server, &r.Count, &r.Sum)
	}, "SELECT server, COUNT(*), CAST(SUM(session) AS BIGINT) FROM presence GROUP BY server")
	all = make(map[string]broker.Tally, len(rows))
	for _, r := range rows {
		all[r.server] = r.Tally
	}
	return all, newest, explain(err, "count who is connected")
}

// Seat implements broker.Roster.
func (s *Presence) Seat(ctx context.Context, uri pcp.URI) (seat broker.Seat, ok bool, err error) {
	all, err := s.seats(ctx, "uri = $1", uri)
	if err != nil || len(all) == 0 {
		return seat, false, explain(err, "read whether %s is connected", uri)
	}
	return all[0], true, nil
}

// Seats implements broker.Roster.
func (s *Presence) Seats(ctx context.Context, server string) ([]broker.Seat, error) {
	all, err := s.seats(ctx, "server = $1", server)
	return all, explain(err, "read who is connected")
}

func (s *Presence) seats(ctx context.Context, which string, arg any) ([]broker.Seat, error) {
	return collect(ctx, s.reads, func(row scanner) (p broker.Seat, err error) {
		return p, row.Scan(&p.URI, &p.Server, &p.Number, &p.Certname, &p.Party, &p.Version, &p.Agent, &p.Remote, at(&p.Since), at(&p.Superseded))
	}, `SELECT uri, server, session, certname, party, version, agent, remote, since, superseded FROM presence WHERE `+which+` ORDER BY uri`, arg)
}

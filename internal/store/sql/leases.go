package sql

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// Leases is who does what must exist once.
type Leases struct{ *base }

// Leases are written also when nothing else may be: a full disk must not stop what is done under them.
func (s *Leases) set(ctx context.Context, what string, a act) error {
	return explain(s.commit(ctx, a), "%s", what)
}

// AcquireLease implements lease.Store.
func (s *Leases) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (g lease.Grant, ok bool, err error) {
	err = s.set(ctx, "acquire a lease", func(ctx context.Context, q querier) error {
		g, ok = lease.Grant{}, false
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		// Most who ask find it held. They must not wait for its holder's writes, nor hold them up.
		latest := now + 2*ttl.Microseconds() // what would last longer was given by a clock that was ahead
		held, err := collect(ctx, q, one[string], "SELECT holder FROM leases WHERE name = $1 AND holder <> $2 AND until > $3 AND until <= $4",
			name, holder, now, latest)
		if err != nil || len(held) > 0 {
			return err
		}
		// The row comes first: PostgreSQL's ON CONFLICT (name) DO UPDATE fails on the table's other key when several insert the same name at once.
		if _, err := q.exec(ctx, "INSERT INTO leases (name, holder, token, since, until) VALUES ($1, '', 0, 0, 0) ON CONFLICT DO NOTHING", name); err != nil {
			return err
		}
		tokens, err := collect(ctx, q, one[int64], `UPDATE leases SET holder = $2, token = token + 1, since = $3, until = $4
			WHERE name = $1 AND (holder = $2 OR until <= $3 OR until > $5) RETURNING token`, name, holder, now, now+ttl.Microseconds(), latest)
		if err != nil || len(tokens) == 0 {
			return err
		}
		g, ok = lease.Grant{Name: name, Holder: holder, Token: tokens[0]}, true
		return nil
	})
	return g, ok && err == nil, err
}

// RenewLeases implements lease.Store.
func (s *Leases) RenewLeases(ctx context.Context, grants []lease.Grant, ttl time.Duration) (lost []lease.Grant, err error) {
	if len(grants) == 0 {
		return nil, nil
	}
	err = s.set(ctx, "renew leases", func(ctx context.Context, q querier) error {
		lost = nil
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		for _, g := range grants {
			n, err := q.exec(ctx, "UPDATE leases SET until = $1 WHERE name = $2 AND holder = $3 AND token = $4 AND until > $5",
				now+ttl.Microseconds(), g.Name, g.Holder, g.Token, now)
			if err != nil {
				return err
			}
			if n == 0 {
				lost = append(lost, g)
			}
		}
		return nil
	})
	return lost, err
}

// ReleaseLease implements lease.Store.
func (s *Leases) ReleaseLease(ctx context.Context, g lease.Grant) error {
	return s.set(ctx, "release a lease", func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE leases SET until = 0 WHERE name = $1 AND holder = $2 AND token = $3", g.Name, g.Holder, g.Token)
		return err
	})
}

// Leases implements lease.Store.
func (s *Leases) Leases(ctx context.Context) (all []lease.Lease, err error) {
	now, err := s.now(ctx, s.reads)
	if err != nil {
		return nil, explain(err, "list leases")
	}
	all, err = collect(ctx, s.reads, func(row scanner) (l lease.Lease, err error) {
		var until int64
		err = row.Scan(&l.Name, &l.Holder, &l.Token, at(&l.Since), &until)
		l.Left = time.Duration(max(0, until-now)) * time.Microsecond
		return l, err
	}, "SELECT name, holder, token, since, until FROM leases ORDER BY name")
	return all, explain(err, "list leases")
}

// Free ends all leases, and forgets who used the records: of those that only the caller uses, such as those that were just restored.
func (s *Leases) Free(ctx context.Context) error { return s.set(ctx, "free leases", free) }

func free(ctx context.Context, q querier) error {
	for _, statement := range []string{"DELETE FROM servers", "DELETE FROM presence", "UPDATE leases SET until = 0 WHERE until > 0"} {
		if _, err := q.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// fenced is a, behind the fence of ctx if it has one. The fence is read from the context of who writes: a batch runs with another one.
func (s *base) fenced(ctx context.Context, a act) act {
	fence, there := lease.From(ctx)
	if !there {
		return a
	}
	return func(ctx context.Context, q querier) error {
		held, err := collect(ctx, q, one[int64], s.dialect.fence, fence.Name, fence.Holder, fence.Token)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			return fence.Refuse()
		}
		return a(ctx, q)
	}
}

// EnrolServer implements lease.Roll.
func (s *Leases) EnrolServer(ctx context.Context, n lease.Server) error {
	newest, err := newestSchema()
	if err != nil {
		return err
	}
	return s.set(ctx, "enrol this server", func(ctx context.Context, q querier) error {
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO servers (id, address, version, roles, started, seen, schema) VALUES ($1, $2, $3, $4, $5, $5, $6)
			ON CONFLICT (id) DO UPDATE SET address = excluded.address, version = excluded.version, roles = excluded.roles, started = excluded.started,
				seen = excluded.seen, draining = 0, drain_micros = 0, schema = excluded.schema, near = ''`,
			n.ID, n.Address, n.Version, strings.Join(n.Roles, ","), now, newest)
		return err
	})
}

const serverColumns = "id, address, version, roles, started, seen, draining, drain_micros, near"

func scanServer(row scanner) (n lease.Server, err error) {
	var roles, near string
	var over int64
	err = row.Scan(&n.ID, &n.Address, &n.Version, &roles, at(&n.Started), at(&n.Seen), at(&n.Draining.Asked), &over, &near)
	n.Draining.Over = time.Duration(over) * time.Microsecond
	if roles != "" {
		n.Roles = strings.Split(roles, ",")
	}
	if near != "" && err == nil {
		err = json.Unmarshal([]byte(near), &n.Near)
	}
	return n, err
}

// SeeServer implements lease.Roll.
func (s *Leases) SeeServer(ctx context.Context, id string) (n lease.Server, err error) {
	err = s.set(ctx, "note that this server is there", func(ctx context.Context, q querier) error {
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		n, err = scanServer(q.row(ctx, "UPDATE servers SET seen = $1 WHERE id = $2 RETURNING "+serverColumns, now, id))
		return missing(err, "there is no server %s", id)
	})
	return n, err
}

// SayNear implements lease.Roll.
func (s *Leases) SayNear(ctx context.Context, id string, n lease.Near) error {
	near, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return s.set(ctx, "note how a server near its nodes stands", func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, "UPDATE servers SET near = $1 WHERE id = $2", string(near), id)
		if err == nil && count == 0 {
			return fault.New(fault.NotFound, "there is no server %s", id)
		}
		return err
	})
}

// DrainServer implements lease.Roll.
func (s *Leases) DrainServer(ctx context.Context, id string, over time.Duration) error {
	return s.set(ctx, "ask a server to drain", func(ctx context.Context, q querier) error {
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		n, err := q.exec(ctx, `UPDATE servers SET drain_micros = CASE WHEN draining = 0 THEN $1 ELSE drain_micros END,
			draining = CASE WHEN draining = 0 THEN $2 ELSE draining END WHERE id = $3`, over.Microseconds(), now, id)
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "there is no server %s", id)
		}
		return err
	})
}

// LeaveServer implements lease.Roll.
func (s *Leases) LeaveServer(ctx context.Context, id string) error {
	return s.set(ctx, "note that this server stops", func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "DELETE FROM servers WHERE id = $1", id)
		return err
	})
}

// ForgetServers implements lease.Roll.
func (s *Leases) ForgetServers(ctx context.Context, silent time.Duration) (forgotten int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		n, err := q.exec(ctx, "DELETE FROM servers WHERE seen <= $1", now-silent.Microseconds())
		forgotten = int(n)
		return err
	})
	return forgotten, explain(err, "forget servers")
}

// Servers implements lease.Roll.
func (s *Leases) Servers(ctx context.Context) (all []lease.Server, err error) {
	now, err := s.now(ctx, s.reads)
	if err != nil {
		return nil, explain(err, "list servers")
	}
	all, err = collect(ctx, s.reads, func(row scanner) (n lease.Server, err error) {
		n, err = scanServer(row)
		n.Silent = lease.Silence(n.Seen, time.UnixMicro(now))
		return n, err
	}, "SELECT "+serverColumns+" FROM servers ORDER BY id")
	return all, explain(err, "list servers")
}

package sql

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// OnChange has f called whenever something is committed that may make catalogs
// wanted. It must not block, and may be called for nothing. Set it before the store
// is used.
func (s *Wants) OnChange(f func()) { s.onChange = f }

// noted hints that changes were noted, unless they were not.
func (s *base) noted(err error) {
	if s.onChange != nil && err == nil {
		s.onChange()
	}
}

// maxDetails bounds what is kept of a change, in bytes; with more, anything changed.
const maxDetails = 4000

// note remembers a change until it is considered. It runs in the write that makes
// the change.
func (s *base) note(ctx context.Context, q querier, kind compile.ChangeKind, name fleet.Certname, details []string) error {
	text := query.Clean(strings.Join(details, "\n"))
	if len(text) > maxDetails || strings.Count(text, "\n") >= max(len(details), 1) { // a name with a line of its own
		text = compile.Anything
	}
	_, err := q.exec(ctx, `INSERT INTO changes (kind, certname, details, count, noted_at) VALUES ($1, $2, $3, 1, $4)
		ON CONFLICT (kind, certname) DO UPDATE SET count = changes.count + 1, details = CASE
		WHEN LENGTH(changes.details) > 4000 THEN '*' ELSE changes.details || $5 || excluded.details END`,
		kind, name, text, micros(time.Now()), "\n")
	return err
}

// noteGone remembers that what some nodes export is not there any more; where says
// which nodes.
func (s *base) noteGone(ctx context.Context, q querier, where string, arg any) error {
	names, err := collect(ctx, q, one[fleet.Certname], "SELECT n.certname FROM nodes n WHERE n."+where+
		" AND EXISTS (SELECT 1 FROM resources r WHERE r.node_id = n.id AND r.exported = 1) ORDER BY n.certname", arg)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.note(ctx, q, compile.ExportsChanged, name, []string{compile.Anything}); err != nil {
			return err
		}
	}
	return nil
}

// NotedChanges implements compile.Wants.
func (s *Wants) NotedChanges(ctx context.Context, n int) ([]compile.Change, error) {
	list, err := collect(ctx, s.reads, func(row scanner) (c compile.Change, err error) {
		var details string
		err = row.Scan(&c.Kind, &c.Node, &details, &c.Count)
		if details != "" {
			c.Details = slices.Compact(slices.Sorted(strings.SplitSeq(details, "\n")))
		}
		return c, err
	}, "SELECT kind, certname, details, count FROM changes ORDER BY noted_at, kind, certname LIMIT $1", n)
	return list, explain(err, "list what changed")
}

// Settle implements compile.Wants.
func (s *Wants) Settle(ctx context.Context, changes []compile.Change, wants []compile.Want, chains []compile.Chain) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		followed := make(map[fleet.Certname]compile.Chain, len(chains))
		for _, c := range chains {
			followed[c.Node] = c
		}
		for _, w := range wants {
			if err := s.wantAhead(ctx, q, w, followed[w.Node]); err != nil {
				return err
			}
		}
		for _, c := range changes {
			if _, err := q.exec(ctx, "DELETE FROM changes WHERE kind = $1 AND certname = $2 AND count = $3", c.Kind, c.Node, c.Count); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "want what follows from changes")
}

// wantAhead wants a compilation that nobody waits for.
func (s *Wants) wantAhead(ctx context.Context, q querier, w compile.Want, chain compile.Chain) error {
	chain.Node, chain.Environment = w.Node, w.Environment
	if err := putChain(ctx, q, chain); err != nil {
		return err
	}
	_, err := s.queue.want(ctx, q, w)
	return err
}

// putChain stores a chain, or forgets it if it has no rounds.
func putChain(ctx context.Context, q querier, c compile.Chain) error {
	if c.Rounds == 0 {
		_, err := q.exec(ctx, "DELETE FROM chains WHERE certname = $1 AND environment = $2", c.Node, c.Environment)
		return err
	}
	_, err := q.exec(ctx, `INSERT INTO chains (certname, environment, rounds, because, stopped_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (certname, environment) DO UPDATE SET rounds = excluded.rounds, because = excluded.because, stopped_at = excluded.stopped_at`,
		c.Node, c.Environment, c.Rounds, query.Clean(c.Because), micros(c.StoppedAt))
	return err
}

// Chains implements compile.Wants.
func (s *Wants) Chains(ctx context.Context) ([]compile.Chain, error) {
	list, err := collect(ctx, s.reads, func(row scanner) (c compile.Chain, err error) {
		err = row.Scan(&c.Node, &c.Environment, &c.Rounds, &c.Because, at(&c.StoppedAt))
		return c, err
	}, "SELECT certname, environment, rounds, because, stopped_at FROM chains ORDER BY certname, environment")
	return list, explain(err, "list chains of exports")
}

// SaveChains implements compile.Wants.
func (s *Wants) SaveChains(ctx context.Context, chains []compile.Chain) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		for _, c := range chains {
			if err := putChain(ctx, q, c); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "save chains of exports")
}

package sql

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Audit is the log of acts and the chain that seals it.
type Audit struct{ *base }

const lineColumns = "seq, kind, act, made_at, upto, through, previous, digest"

func scanLine(row scanner) (l rbac.Line, err error) {
	return l, row.Scan(&l.Seq, &l.Kind, &l.Act, at(&l.At), &l.Upto, &l.Through, &l.Previous, &l.Digest)
}

// chain lets add move the end of the chain, and stores the lines that it gives. Who comes second
// waits until the transaction ends.
func (s *Audit) chain(ctx context.Context, q querier, add func(*rbac.ChainEnd) ([]rbac.Line, error)) error {
	var end rbac.ChainEnd
	if err := q.row(ctx, "SELECT seq, digest FROM act_end WHERE id = 1"+s.dialect.forUpdate).Scan(&end.Seq, &end.Digest); err != nil {
		return err
	}
	lines, err := add(&end)
	if err != nil || len(lines) == 0 {
		return err
	}
	for _, l := range lines {
		if _, err := q.exec(ctx, "INSERT INTO act_lines ("+lineColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
			l.Seq, l.Kind, l.Act, micros(l.At), l.Upto, l.Through, l.Previous, l.Digest); err != nil {
			return err
		}
	}
	_, err = q.exec(ctx, "UPDATE act_end SET seq = $1, digest = $2 WHERE id = 1", end.Seq, end.Digest)
	return err
}

// RecordAct implements rbac.AuditStore.
func (s *Audit) RecordAct(ctx context.Context, e rbac.Entry) (id int64, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		e := e
		err := s.chain(ctx, q, func(end *rbac.ChainEnd) (lines []rbac.Line, err error) {
			var last int64
			if end.Seq == 0 {
				if last, err = one[int64](q.row(ctx, "SELECT coalesce(max(id), 0) FROM acts")); err != nil {
					return nil, err
				}
			}
			e.ID, err = one[int64](q.row(ctx, "INSERT INTO acts ("+actColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id",
				micros(e.At), e.ActorKind, e.Actor, e.Token, e.Operation, e.Object, e.Remote, e.RequestID, e.Outcome, e.Detail, e.Mark))
			if err != nil {
				return nil, err
			}
			return end.Record(e, last), nil
		})
		id = e.ID
		return err
	})
	return id, explain(err, "record %s", e.Operation)
}

// FinishAct implements rbac.AuditStore.
func (s *Audit) FinishAct(ctx context.Context, id int64, outcome rbac.Outcome, detail string, at time.Time) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		return s.chain(ctx, q, func(end *rbac.ChainEnd) ([]rbac.Line, error) {
			before, err := one[rbac.Outcome](q.row(ctx, "SELECT outcome FROM acts WHERE id = $1", id))
			if errors.Is(err, sql.ErrNoRows) {
				return nil, fault.New(fault.NotFound, "there is no entry %d in the audit log", id)
			}
			if err != nil {
				return nil, err
			}
			line, err := end.Finish(before, rbac.Entry{ID: id, Outcome: outcome, Detail: detail}, at)
			if err != nil {
				return nil, err
			}
			_, err = q.exec(ctx, "UPDATE acts SET outcome = $2, detail = $3 WHERE id = $1", id, outcome, detail)
			return []rbac.Line{line}, err
		})
	})
	return explain(err, "record the outcome of entry %d", id)
}

// forgetLines is how many lines are forgotten at once.
const forgetLines = 1000

// PruneActs implements rbac.AuditStore, some at a time.
func (s *Audit) PruneActs(ctx context.Context, before, now time.Time) (int, error) {
	for total := 0; ; {
		var count, lines int
		err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
			count, lines, err = s.pruneActs(ctx, q, before, now)
			return err
		})
		total += count
		if err != nil || lines < forgetLines && count < forgetLines {
			return total, explain(err, "prune the audit log")
		}
	}
}

// unchained is the last entry from before the chain, as the newest line says that tells it.
const unchained = "(SELECT act FROM act_lines WHERE kind IN ('opened', 'pruned') ORDER BY seq DESC LIMIT 1)"

func (s *Audit) pruneActs(ctx context.Context, q querier, before, now time.Time) (count, lines int, err error) {
	err = s.chain(ctx, q, func(end *rbac.ChainEnd) ([]rbac.Line, error) {
		n, err := q.exec(ctx, `DELETE FROM acts WHERE id IN (SELECT id FROM acts WHERE happened_at < $1 AND id <= coalesce(`+unchained+`, id)
			ORDER BY happened_at LIMIT $2)`, micros(before), forgetLines)
		count = int(n)
		if err != nil {
			return nil, err
		}
		oldest, err := collect(ctx, q, scanLine, "SELECT "+lineColumns+" FROM act_lines ORDER BY seq LIMIT $1", forgetLines)
		if lines = rbac.Forgotten(oldest, before); err != nil || lines == 0 {
			return nil, err
		}
		last := oldest[lines-1]
		first, err := one[int64](q.row(ctx, "SELECT "+unchained))
		if err != nil {
			return nil, err
		}
		n, err = q.exec(ctx, `DELETE FROM acts WHERE id IN (SELECT act FROM act_lines WHERE seq <= $1 AND kind NOT IN ('opened', 'pruned'))
			AND NOT EXISTS (SELECT 1 FROM act_lines l WHERE l.act = acts.id AND l.seq > $1 AND l.kind NOT IN ('opened', 'pruned'))`, last.Seq)
		count += int(n)
		if err != nil {
			return nil, err
		}
		for _, table := range []string{"act_lines", "act_heads"} {
			if _, err := q.exec(ctx, "DELETE FROM "+table+" WHERE seq <= $1", last.Seq); err != nil {
				return nil, err
			}
		}
		return []rbac.Line{end.Prune(last, first, now)}, nil
	})
	return count, lines, err
}

// ChainPage implements rbac.ChainStore.
func (s *Audit) ChainPage(ctx context.Context, after int64, limit int) (page rbac.ChainPage, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		if page.End, err = chainEnd(ctx, q); err != nil {
			return err
		}
		page.Lines, err = collect(ctx, q, scanChainLine, `SELECT l.seq, l.kind, l.act, l.made_at, l.upto, l.through, l.previous, l.digest, a.id IS NOT NULL,
			coalesce(a.happened_at, 0), coalesce(a.actor_kind, ''), coalesce(a.actor, ''), coalesce(a.token, ''), coalesce(a.operation, ''),
		coalesce(a.object, ''), coalesce(a.remote, ''),
			coalesce(a.request_id, ''), coalesce(a.outcome, ''), coalesce(a.detail, ''), coalesce(a.mark, '')
			FROM act_lines l LEFT JOIN acts a ON a.id = l.act AND l.kind NOT IN ('opened', 'pruned') WHERE l.seq > $1 ORDER BY l.seq LIMIT $2`, after, limit)
		if err != nil {
			return err
		}
		if len(page.Lines) == limit {
			page.Heads, err = collect(ctx, q, scanHead, "SELECT "+headColumns+" FROM act_heads WHERE seq > $1 AND seq <= $2 ORDER BY seq",
				after, page.Lines[limit-1].Seq)
		} else {
			page.Heads, err = collect(ctx, q, scanHead, "SELECT "+headColumns+" FROM act_heads WHERE seq > $1 ORDER BY seq", after)
		}
		return err
	})
	return page, explain(err, "read the audit log's chain")
}

func scanChainLine(row scanner) (l rbac.ChainLine, err error) {
	var there bool
	e := &l.Entry
	err = row.Scan(&l.Seq, &l.Kind, &l.Act, at(&l.At), &l.Upto, &l.Through, &l.Previous, &l.Digest, &there,
		at(&e.At), &e.ActorKind, &e.Actor, &e.Token, &e.Operation, &e.Object, &e.Remote, &e.RequestID, &e.Outcome, &e.Detail, &e.Mark)
	if there {
		e.ID = l.Act
	}
	return l, err
}

const headColumns = "seq, digest, signed_at, signer, signature"

func scanHead(row scanner) (h rbac.Head, err error) {
	var signature string
	if err = row.Scan(&h.Seq, &h.Digest, at(&h.At), &h.Signer, &signature); err != nil {
		return h, err
	}
	if h.Signature, err = base64.StdEncoding.DecodeString(signature); err != nil {
		h.Signature, err = nil, nil // who verifies it says that it is not good
	}
	return h, err
}

func chainEnd(ctx context.Context, q querier) (end rbac.ChainEnd, err error) {
	return end, q.row(ctx, "SELECT seq, digest FROM act_end WHERE id = 1").Scan(&end.Seq, &end.Digest)
}

// LineBefore implements rbac.ChainStore.
func (s *Audit) LineBefore(ctx context.Context, at time.Time) (int64, error) {
	seq, err := one[int64](s.reads.row(ctx, "SELECT coalesce(max(seq), 0) FROM act_lines WHERE made_at < $1", micros(at)))
	return seq, explain(err, "find a line of the audit log's chain")
}

// Unchained implements rbac.ChainStore.
func (s *Audit) Unchained(ctx context.Context) (int64, error) {
	id, err := oneInt(s.reads.row(ctx, `SELECT id FROM acts a WHERE id > coalesce(`+unchained+`, id) AND NOT EXISTS (
		SELECT 1 FROM act_lines l WHERE l.act = a.id AND (l.kind IN ('whole', 'ended') OR l.kind = 'started' AND a.outcome = 'started' AND a.detail = ''))
		ORDER BY id LIMIT 1`))
	return id, explain(err, "compare the audit log with its chain")
}

// SaveHead implements rbac.ChainStore.
func (s *Audit) SaveHead(ctx context.Context, h rbac.Head) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "INSERT INTO act_heads ("+headColumns+") VALUES ($1, $2, $3, $4, $5) ON CONFLICT (seq) DO NOTHING",
			h.Seq, h.Digest, micros(h.At), h.Signer, base64.StdEncoding.EncodeToString(h.Signature))
		return err
	})
	return explain(err, "save a head of the audit log's chain")
}

// LastHead implements rbac.ChainStore.
func (s *Audit) LastHead(ctx context.Context) (h rbac.Head, end rbac.ChainEnd, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		if end, err = chainEnd(ctx, q); err != nil {
			return err
		}
		if h, err = scanHead(q.row(ctx, "SELECT "+headColumns+" FROM act_heads ORDER BY seq DESC LIMIT 1")); errors.Is(err, sql.ErrNoRows) {
			h, err = rbac.Head{}, nil
		}
		return err
	})
	return h, end, explain(err, "read the last head of the audit log's chain")
}

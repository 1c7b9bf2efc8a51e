package sql

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/preview"
)

// shareColumns are in the order of putShares.
var shareColumns = []column{
	{"preview_id", ints},
	{"number", ints},
	{"node", texts},
	{"state", texts},
	{"compilation", ints},
	{"fresh", texts},
	{"base", texts},
	{"base_engine", texts},
	{"reused", ints},
	{"failure", texts},
	{"volatile", texts},
}

// putShares inserts shares, or replaces those that wait.
func (s *Previews) putShares(ctx context.Context, q querier, id int64, shares []preview.Share) error {
	rows := make([][]any, len(shares))
	for i, share := range shares {
		failure, err := json.Marshal(share.Failure)
		if err != nil {
			return err
		}
		rows[i] = []any{
			id, int64(share.Number), string(share.Node), string(share.State), share.Compilation,
			string(share.Fresh), string(share.Base), share.BaseEngine, bit(share.Reused), string(failure), share.Volatile,
		}
	}
	return s.dialect.insert(ctx, q, "preview_shares", shareColumns, `ON CONFLICT (preview_id, number) DO UPDATE SET
		state = excluded.state, compilation = excluded.compilation, fresh = excluded.fresh, base = excluded.base, base_engine = excluded.base_engine, reused = excluded.reused,
		failure = excluded.failure, volatile = excluded.volatile WHERE preview_shares.state = 'waiting'`, rows)
}

func scanShare(row scanner) (share preview.Share, err error) {
	var failure string
	err = row.Scan(&share.Number, &share.Node, &share.State, &share.Compilation, &share.Fresh, &share.Base, &share.BaseEngine, &share.Reused,
		&failure, &share.Volatile)
	if err != nil {
		return share, err
	}
	if err := json.Unmarshal([]byte(failure), &share.Failure); err != nil {
		return share, fmt.Errorf("failure of share %d: %w", share.Number, err)
	}
	return share, nil
}

// PreviewShares implements preview.Store.
func (s *Previews) PreviewShares(ctx context.Context, id int64, page preview.SharePage) ([]preview.Share, error) {
	f := filter{dialect: s.dialect}
	f.add("preview_id = ?", id)
	f.add("number >= ?", int64(page.From))
	oneOf(&f, "state", page.States)
	if page.Node != "" {
		f.add("node = ?", page.Node)
	}
	if page.NotBy != "" {
		f.add("base_engine NOT IN ('', ?)", page.NotBy)
	}
	shares, err := collect(ctx, s.reads, scanShare,
		"SELECT number, node, state, compilation, fresh, base, base_engine, reused, failure, volatile FROM preview_shares"+
			f.where()+" ORDER BY number LIMIT "+f.mark(page.Limit), f.args...)
	return shares, explain(err, "read the shares of preview %d", id)
}

// SavePreviewShares implements preview.Store.
func (s *Previews) SavePreviewShares(ctx context.Context, id int64, shares []preview.Share) (now preview.Preview, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := s.lockOpenPreview(ctx, q, id); err != nil {
			return err
		}
		if err := s.putShares(ctx, q, id, shares); err != nil {
			return err
		}
		counts, err := countShares(ctx, q, id)
		if err != nil {
			return err
		}
		text, err := json.Marshal(counts)
		if err != nil {
			return err
		}
		now, err = scanPreview(q.row(ctx, "UPDATE previews SET counts = $1 WHERE id = $2 RETURNING "+previewColumns, string(text), id))
		return err
	})
	return now, explain(err, "save shares of preview %d", id)
}

func countShares(ctx context.Context, q querier, id int64) (preview.Counts, error) {
	counts := preview.Counts{}
	_, err := collect(ctx, q, func(row scanner) (none struct{}, err error) {
		var state preview.ShareState
		var n int
		err = row.Scan(&state, &n)
		counts[state] = n
		return none, err
	}, "SELECT state, COUNT(*) FROM preview_shares WHERE preview_id = $1 GROUP BY state", id)
	return counts, err
}

// FinishPreview implements preview.Store.
func (s *Previews) FinishPreview(ctx context.Context, p preview.Preview, groups iter.Seq2[preview.Group, error]) (now preview.Preview, err error) {
	unseen, err := json.Marshal(append([]preview.Unseen{}, p.Unseen...))
	if err != nil {
		return now, explain(err, "finish preview %d", p.ID)
	}
	rows, err := s.groupRows(p.ID, groups)
	if err != nil {
		return now, explain(err, "finish preview %d", p.ID)
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		before, err := s.lockOpenPreview(ctx, q, p.ID)
		if err != nil {
			return err
		}
		if n := before.Counts[preview.Waiting]; n > 0 {
			return fault.New(fault.Conflict, "%d shares of preview %d wait", n, p.ID)
		}
		columns := []column{{"preview_id", ints}, {"place", ints}, {"key", texts}, {"document", blobs}, {"nodes", blobs}}
		if err := s.dialect.insert(ctx, q, "preview_groups", columns, "", rows); err != nil {
			return err
		}
		now, err = scanPreview(q.row(ctx, "UPDATE previews SET state = 'ready', unseen = $1, ended_at = $2 WHERE id = $3 RETURNING "+previewColumns,
			string(unseen), micros(p.EndedAt), p.ID))
		return err
	})
	return now, explain(err, "finish preview %d", p.ID)
}

func (s *Previews) groupRows(id int64, groups iter.Seq2[preview.Group, error]) (rows [][]any, err error) {
	for g, err := range groups {
		if err != nil {
			return nil, err
		}
		document, err := s.packJSON(g.Change)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []any{id, int64(len(rows)), g.Change.Key, document, s.packer.pack(packNumbers(g.Nodes))})
	}
	return rows, nil
}

// packNumbers writes rising numbers as the steps between them.
func packNumbers(numbers []uint32) []byte {
	packed, before := make([]byte, 0, len(numbers)), uint32(0)
	for _, n := range numbers {
		packed = binary.AppendUvarint(packed, uint64(n-before))
		before = n
	}
	return packed
}

func unpackNumbers(packed []byte) ([]uint32, error) {
	var numbers []uint32
	for before := uint32(0); len(packed) > 0; {
		step, size := binary.Uvarint(packed)
		if size <= 0 {
			return nil, fault.New(fault.Internal, "a list of nodes is damaged")
		}
		before += uint32(step) //nolint:gosec // as it was packed
		numbers, packed = append(numbers, before), packed[size:]
	}
	return numbers, nil
}

// PreviewGroups implements preview.Store.
func (s *Previews) PreviewGroups(ctx context.Context, id int64, page preview.GroupPage) ([]api.ChangeGroup, error) {
	groups, err := collect(ctx, s.reads, func(row scanner) (g api.ChangeGroup, err error) {
		var packed []byte
		if err = row.Scan(&packed); err == nil {
			err = s.unpackJSON(packed, &g)
		}
		return g, err
	}, "SELECT document FROM preview_groups WHERE preview_id = $1 AND place >= $2 ORDER BY place LIMIT $3", id, page.From, page.Limit)
	return groups, explain(err, "read the changes of preview %d", id)
}

// PreviewGroupNodes implements preview.Store.
func (s *Previews) PreviewGroupNodes(ctx context.Context, id int64, key string) ([]uint32, error) {
	packed, err := one[[]byte](s.reads.row(ctx, "SELECT nodes FROM preview_groups WHERE preview_id = $1 AND key = $2", id, key))
	if err == nil {
		packed, err = s.packer.unpack(packed)
	}
	if err != nil {
		return nil, explain(missing(err, "preview %d has no change %s", id, key), "read the nodes of a change of preview %d", id)
	}
	numbers, err := unpackNumbers(packed)
	return numbers, explain(err, "read the nodes of a change of preview %d", id)
}

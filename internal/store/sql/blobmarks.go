package sql

import (
	"context"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// BlobMarks is what is known of the content of an S3 store.
type BlobMarks struct{ *base }

// Paired implements cas.Marks.
func (s *BlobMarks) Paired(ctx context.Context) (string, error) {
	names, err := collect(ctx, s.reads, one[string], "SELECT name FROM blob_store WHERE id = 1")
	if err != nil || len(names) == 0 {
		return "", explain(err, "read which store of content the records are of")
	}
	return names[0], nil
}

// Unpair implements cas.Marks.
func (s *BlobMarks) Unpair(ctx context.Context) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		if _, err := q.exec(ctx, "DELETE FROM blob_store"); err != nil {
			return err
		}
		_, err = q.exec(ctx, "DELETE FROM blob_marks WHERE leaving <= $1", now)
		return err
	})
	return explain(err, "forget what is known of a store of content")
}

// Pair implements cas.Marks.
func (s *BlobMarks) Pair(ctx context.Context, store string) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "INSERT INTO blob_store (id, name) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET name = excluded.name", store)
		return err
	})
	return explain(err, "note which store of content the records are of")
}

var blobMarkRow = []column{{"digest", texts}, {"bytes", ints}, {"stored", ints}, {"renewed", ints}, {"leaving", ints}}

// Adopt implements cas.Marks.
func (s *BlobMarks) Adopt(ctx context.Context, found []cas.Arrival) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		rows := make([][]any, 0, len(found))
		for _, a := range found {
			rows = append(rows, []any{string(a.Digest), a.Bytes, int64(1), now, int64(0)})
		}
		return s.dialect.insert(ctx, q, "blob_marks", blobMarkRow, "ON CONFLICT (digest) DO NOTHING", rows)
	})
	return explain(err, "note what is in the store of content")
}

// Renew implements cas.Marks.
func (s *BlobMarks) Renew(ctx context.Context, ds []fleet.Digest, announce bool) (marks []cas.Mark, err error) {
	if len(ds) == 0 {
		return nil, nil
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		marks, err = s.renew(ctx, q, ds, announce)
		return err
	})
	return marks, explain(err, "renew the marks of content")
}

type blobMark struct {
	digest fleet.Digest
	stored bool
}

// renew takes over what somebody began to remove and did not end in time: it may be there or not, so it is not stored.
func (s *BlobMarks) renew(ctx context.Context, q querier, ds []fleet.Digest, announce bool) ([]cas.Mark, error) {
	now, err := s.now(ctx, q)
	if err != nil {
		return nil, err
	}
	known := map[fleet.Digest]cas.Mark{}
	renewed, err := collect(ctx, q, func(row scanner) (m blobMark, err error) {
		return m, row.Scan(&m.digest, &m.stored)
	}, `UPDATE blob_marks SET renewed = $1, stored = CASE WHEN leaving = 0 THEN stored ELSE 0 END, leaving = 0
		WHERE digest IN `+s.named(2)+` AND leaving <= $1 RETURNING digest, stored <> 0`, now, jsonList(ds))
	if err != nil {
		return nil, err
	}
	for _, m := range renewed {
		known[m.digest] = cas.Absent
		if m.stored {
			known[m.digest] = cas.Stored
		}
	}
	leaving, err := collect(ctx, q, one[fleet.Digest], "SELECT digest FROM blob_marks WHERE digest IN "+s.named(1)+" AND leaving > $2", jsonList(ds), now)
	if err != nil {
		return nil, err
	}
	for _, d := range leaving {
		known[d] = cas.Leaving
	}
	marks, absent := make([]cas.Mark, len(ds)), make([][]any, 0, len(ds))
	for i, d := range ds {
		mark, there := known[d]
		if marks[i] = mark; !there {
			absent = append(absent, []any{string(d), int64(0), int64(0), now, int64(0)})
		}
	}
	if !announce {
		return marks, nil
	}
	return marks, s.dialect.insert(ctx, q, "blob_marks", blobMarkRow, "ON CONFLICT (digest) DO NOTHING", absent)
}

// Arrive implements cas.Marks.
func (s *BlobMarks) Arrive(ctx context.Context, arrived []cas.Arrival) (lost []fleet.Digest, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		lost = nil
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		for _, a := range arrived {
			n, err := q.exec(ctx, "UPDATE blob_marks SET bytes = $1, stored = 1, renewed = $2 WHERE digest = $3 AND leaving = 0", a.Bytes, now, string(a.Digest))
			if err != nil {
				return err
			}
			if n == 0 {
				lost = append(lost, a.Digest)
			}
		}
		return nil
	})
	return lost, explain(err, "note what content arrived")
}

// Leave implements cas.Marks.
func (s *BlobMarks) Leave(ctx context.Context, ds []fleet.Digest, before time.Time, within time.Duration, strangers bool) (left cas.Departure, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		paired, err := collect(ctx, q, one[string], "SELECT name FROM blob_store WHERE id = 1")
		if err != nil {
			return err
		}
		if len(paired) == 0 {
			return fault.New(fault.Conflict, "it is being looked what is in the store of content: nothing is removed until that has ended")
		}
		now, err := s.now(ctx, q)
		if err != nil {
			return err
		}
		until := now + within.Microseconds()
		left = cas.Departure{Until: time.UnixMicro(until)}
		give := "UPDATE blob_marks SET leaving = $2 WHERE digest = $1 AND renewed < $3 AND leaving <= $4"
		if strangers {
			give = `INSERT INTO blob_marks (digest, bytes, stored, renewed, leaving) VALUES ($1, 0, 0, 0, $2)
				ON CONFLICT (digest) DO UPDATE SET leaving = excluded.leaving WHERE blob_marks.renewed < $3 AND blob_marks.leaving <= $4`
		}
		for _, d := range ds {
			n, err := q.exec(ctx, give, string(d), until, micros(before), now)
			if err != nil {
				return err
			}
			if n > 0 {
				left.Digests = append(left.Digests, d)
			}
		}
		return nil
	})
	return left, explain(err, "give up content that nothing refers to")
}

// Gone implements cas.Marks.
func (s *BlobMarks) Gone(ctx context.Context, left cas.Departure) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "DELETE FROM blob_marks WHERE digest IN "+s.named(1)+" AND leaving = $2 AND EXISTS (SELECT 1 FROM blob_store)",
			jsonList(left.Digests), micros(left.Until))
		return err
	})
	return explain(err, "forget content that is gone")
}

// Now implements cas.Marks.
func (s *BlobMarks) Now(ctx context.Context) (time.Time, error) {
	now, err := s.now(ctx, s.reads)
	return time.UnixMicro(now), explain(err, "ask the database what time it is")
}

// named is the digests of a query's n-th argument, which jsonList made.
func (s *BlobMarks) named(n int) string { return strings.ReplaceAll(s.dialect.listed, "?", mark(n)) }

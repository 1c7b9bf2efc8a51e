package sql

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Verifications is what a second opinion said of catalogs.
type Verifications struct {
	*base
	inputs *Reusables
}

const verificationColumns = "id, certname, environment, version, catalog, inputs, outcome, cause, reason, differs, count, wall, verified_at"

func scanVerification(row scanner) (v compile.Verification, err error) {
	var differs string
	var wall int64
	err = row.Scan(&v.ID, &v.Node, &v.Environment, &v.Version, &v.Catalog, &v.Inputs, &v.Outcome, &v.Cause, &v.Reason, &differs, &v.Count, &wall, at(&v.At))
	if err == nil {
		err = json.Unmarshal([]byte(differs), &v.Differences)
	}
	v.Wall = time.Duration(wall) * time.Microsecond
	return v, err
}

// SaveVerification implements compile.Verifications.
func (s *Verifications) SaveVerification(ctx context.Context, v compile.Verification) (saved compile.Verification, err error) {
	differs, err := json.Marshal(v.Differences)
	if err != nil {
		return v, err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		saved, err = scanVerification(q.row(ctx, `INSERT INTO verifications
			(certname, environment, version, catalog, inputs, outcome, cause, reason, differs, count, wall, verified_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING `+verificationColumns,
			v.Node, v.Environment, v.Version, v.Catalog, v.Inputs, string(v.Outcome), string(v.Cause), query.Clean(v.Reason), query.Clean(string(differs)), v.Count,
			v.Wall.Microseconds(), micros(v.At)))
		return err
	})
	return saved, explain(err, "store how the catalog of %s was verified", v.Node)
}

// Verifications implements compile.Verifications.
func (s *Verifications) Verifications(ctx context.Context, f compile.VerificationFilter) ([]compile.Verification, error) {
	w := filter{dialect: s.dialect}
	if f.Before > 0 {
		w.add("id < ?", f.Before)
	}
	if f.Node != "" {
		w.add("certname = ?", f.Node)
	}
	if f.Environment != "" {
		w.add("environment = ?", f.Environment)
	}
	if f.Version != "" {
		w.add("version = ?", f.Version)
	}
	if f.Outcome != "" {
		w.add("outcome = ?", string(f.Outcome))
	}
	list, err := collect(ctx, s.reads, scanVerification, "SELECT "+verificationColumns+" FROM verifications"+w.where()+
		" ORDER BY id DESC LIMIT "+w.mark(f.Limit), w.args...)
	return list, explain(err, "read which catalogs were verified")
}

// CountVerifications implements compile.Verifications.
func (s *Verifications) CountVerifications(ctx context.Context, env fleet.Environment, version fleet.Digest) (map[compile.VerifyOutcome]int, error) {
	type counted struct {
		outcome compile.VerifyOutcome
		n       int
	}
	rows, err := collect(ctx, s.reads, func(row scanner) (c counted, err error) { return c, row.Scan(&c.outcome, &c.n) },
		"SELECT outcome, count(*) FROM verifications WHERE environment = $1 AND version = $2 GROUP BY outcome", env, version)
	counts := map[compile.VerifyOutcome]int{}
	for _, c := range rows {
		counts[c.outcome] = c.n
	}
	return counts, explain(err, "count verified catalogs of %s", env)
}

// PruneVerifications implements compile.Verifications.
func (s *Verifications) PruneVerifications(ctx context.Context, before time.Time) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, "DELETE FROM verifications WHERE verified_at < $1", micros(before))
		return err
	})
	return int(count), explain(err, "prune verifications")
}

var recordedRow = []column{{"digest", texts}, {"used_at", ints}, {"document", blobs}}

// putAnswers stores answers to a compilation's questions. Those that are there are only marked, and that once an hour.
func (s *Reusables) putAnswers(ctx context.Context, q querier, answers map[fleet.Digest]json.RawMessage, now time.Time) error {
	rows := make([][]any, 0, len(answers))
	for digest, text := range answers {
		rows = append(rows, []any{string(digest), micros(now), s.packer.pack(text)})
	}
	slices.SortFunc(rows, func(a, b []any) int { return cmp.Compare(a[0].(string), b[0].(string)) }) // two transactions cannot wait for each other
	return s.dialect.insert(ctx, q, "recorded_answers", recordedRow,
		"ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at WHERE recorded_answers.used_at < excluded.used_at - 3600000000", rows)
}

// pruneAnswers forgets answers to questions that no compilation that is kept asked. One that was used lately may be of a row that
// is being written.
func (s *Reusables) pruneAnswers(ctx context.Context, q querier, asked map[fleet.Digest]bool, before time.Time) error {
	old, err := collect(ctx, q, one[fleet.Digest], "SELECT digest FROM recorded_answers WHERE used_at < $1", micros(before))
	if err != nil {
		return err
	}
	for _, digest := range old {
		if asked[digest] {
			continue
		}
		if _, err := q.exec(ctx, "DELETE FROM recorded_answers WHERE digest = $1", digest); err != nil {
			return err
		}
	}
	return nil
}

// Answers implements compile.Verifications.
func (s *Verifications) Answers(ctx context.Context, digests []fleet.Digest) (map[fleet.Digest]json.RawMessage, error) {
	found := map[fleet.Digest]json.RawMessage{}
	err := s.snapshot(ctx, func(ctx context.Context, q querier) error {
		for _, digest := range digests {
			packed, err := collect(ctx, q, one[[]byte], "SELECT document FROM recorded_answers WHERE digest = $1", digest)
			if err != nil {
				return err
			}
			if len(packed) == 0 {
				continue
			}
			if found[digest], err = s.packer.unpack(packed[0]); err != nil {
				return err
			}
		}
		return nil
	})
	return found, explain(err, "read recorded answers")
}

// DoneOf implements compile.Verifications.
func (s *Verifications) DoneOf(ctx context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest) (c compile.Compilation, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		c, err = scanCompilation(q.row(ctx, "SELECT "+compilationColumns+` FROM compilations
			WHERE certname = $1 AND environment = $2 AND version = $3 AND state = 'done' AND reach_digest = ''
			AND id IN (SELECT compilation FROM compilation_inputs) ORDER BY finished_at DESC, id DESC LIMIT 1`, node, env, version))
		if err != nil {
			return missing(err, "%s has no catalog of version %s in %s whose inputs are known", node, version.Short(), env)
		}
		c.Inputs, err = s.inputs.inputsOf(ctx, q, c.ID)
		return err
	})
	return c, explain(err, "read the catalog of %s", node)
}

// ClassSets implements compile.Verifications.
func (s *Verifications) ClassSets(ctx context.Context, env fleet.Environment) ([]compile.ClassSet, error) {
	type class struct{ node, title string }
	rows, err := collect(ctx, s.reads, func(row scanner) (c class, err error) { return c, row.Scan(&c.node, &c.title) },
		`SELECT n.certname, r.title FROM nodes n JOIN catalogs k ON k.node_id = n.id JOIN resources r ON r.node_id = n.id
		WHERE r.type = 'Class' AND k.environment = $1 AND k.received = 0 AND n.deactivated_at = 0 AND n.expired_at = 0 ORDER BY n.certname, r.title`, env)
	if err != nil {
		return nil, explain(err, "read the classes of the nodes in %s", env)
	}
	sets := map[[sha256.Size]byte]*compile.ClassSet{}
	for i := 0; i < len(rows); {
		node, sum := rows[i].node, sha256.New()
		for ; i < len(rows) && rows[i].node == node; i++ {
			_, _ = fmt.Fprintln(sum, rows[i].title)
		}
		key := [sha256.Size]byte(sum.Sum(nil))
		if sets[key] == nil {
			sets[key] = &compile.ClassSet{Node: fleet.Certname(node)}
		}
		sets[key].Nodes++
	}
	list := make([]compile.ClassSet, 0, len(sets))
	for _, set := range sets {
		list = append(list, *set)
	}
	slices.SortFunc(list, func(a, b compile.ClassSet) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Node, b.Node))
	})
	return list, nil
}

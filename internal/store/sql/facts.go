package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Facts is each node's facts, whole and by path, and its packages.
type Facts struct {
	*base
	paths pathCache
}

// SaveFacts implements inventory.FactStore. The comparison with what is stored
// happens before the write; the write checks that it still holds.
func (s *Facts) SaveFacts(ctx context.Context, f inventory.FactSet) (inventory.FactSet, []string, error) {
	if f.Digest == "" {
		values, arrangement, err := facts.Canonical(f.Values)
		if err != nil {
			return inventory.FactSet{}, nil, err
		}
		f.Values, f.Arrangement, f.Digest = values, arrangement, fleet.DigestOf(values)
	}
	var stored inventory.FactSet
	var changed []string
	err := again(ctx, func() (err error) {
		stored, changed, err = s.tryFacts(ctx, f)
		return err
	})
	if err != nil {
		return inventory.FactSet{}, nil, explain(err, "save the facts of %s", f.Certname)
	}
	return stored, changed, nil
}

// spend remembers the number of a submission that came too late: the same one must not come again as a new one.
func (s *Facts) spend(ctx context.Context, stored inventory.FactSet, number int64) (inventory.FactSet, []string, error) {
	if number <= stored.Number {
		return stored, nil, nil
	}
	stored.Number = number
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE factsets SET number = $1 WHERE number < $1 AND node_id = (SELECT id FROM nodes WHERE certname = $2)", number, stored.Certname)
		return err
	})
	return stored, nil, err
}

func (s *Facts) tryFacts(ctx context.Context, f inventory.FactSet) (stored inventory.FactSet, changed []string, err error) {
	before, digests, err := s.factHead(ctx, f.Certname)
	known := err == nil
	if err != nil && fault.Of(err) != fault.NotFound {
		return f, nil, err
	}
	d := factDiff{before: before, known: known, newest: math.MaxInt64}
	if f.ProducedAt.IsZero() {
		f.ProducedAt = f.ReceivedAt
	} else if d.newest = micros(f.ProducedAt); micros(before.ProducedAt) > d.newest {
		return s.spend(ctx, before, f.Number)
	}
	if f.Number != 0 && f.Number <= before.Number {
		return before, nil, nil
	}
	f.Number = max(f.Number, before.Number)
	f.Packages = inventory.DistinctPackages(f.Packages)
	if d.packages = inventory.PackagesDigest(f.Packages); d.packages != digests.packages {
		d.repack = true
	}
	f.Seq = before.Seq
	if d.arrangement = digestOrNone(f.Arrangement); before.Digest != f.Digest || d.arrangement != digests.arrangement {
		f.Seq++
		if err := s.prepare(&d, f); err != nil {
			return f, nil, err
		}
	}
	f.Arrangement = ""
	var fresh map[string]knownPath
	era := s.paths.now()
	err = s.write(ctx, func(ctx context.Context, q querier) (err error) {
		fresh, err = s.putFacts(ctx, q, f, d)
		return err
	})
	if err != nil {
		return f, nil, err
	}
	if d.document != nil {
		s.noted(nil)
	}
	s.paths.add(era, fresh)
	f.Timestamp, f.ReceivedAt, f.ProducedAt = instant(micros(f.Timestamp)), instant(micros(f.ReceivedAt)), instant(micros(f.ProducedAt))
	return f, facts.Paths(d.changes), nil
}

// factDiff is what a write of facts was prepared with.
type factDiff struct {
	before   inventory.FactSet
	known    bool
	newest   int64 // the stored ones may not be produced after this
	changes  []facts.Change
	document []byte // nil when nothing changed
	told     []byte // nil when the facts came sorted
	packages fleet.Digest
	repack   bool
	// arrangement is the digest of the facts' arrangement; empty when they came sorted.
	arrangement fleet.Digest
}

// digestOrNone names a text; an empty one has no name.
func digestOrNone(text string) fleet.Digest {
	if text == "" {
		return ""
	}
	return fleet.DigestOf([]byte(text))
}

// prepare makes what is written of facts that differ from those before.
func (s *Facts) prepare(d *factDiff, f inventory.FactSet) (err error) {
	if d.changes, err = facts.Diff(d.before.Values, f.Values); err != nil {
		return err
	}
	d.document = s.packer.pack(f.Values)
	if f.Arrangement == "" {
		return nil
	}
	told, err := facts.Arranged(f.Values, f.Arrangement)
	if err == nil {
		d.told = s.packer.pack(told)
	}
	return err
}

// putFacts writes the difference, and returns the paths that were new.
func (s *Facts) putFacts(ctx context.Context, q querier, f inventory.FactSet, d factDiff) (map[string]knownPath, error) {
	now, produced := micros(f.ReceivedAt), micros(f.ProducedAt)
	node, err := one[int64](q.row(ctx, `INSERT INTO nodes (certname, environment, facts_at, created_at) VALUES ($1, $2, $3, $3)
		ON CONFLICT (certname) DO UPDATE SET environment = excluded.environment, facts_at = excluded.facts_at, `+activate("$4")+` RETURNING id`,
		f.Certname, f.Environment, now, produced))
	if err != nil {
		return nil, err
	}
	var count int64
	if d.known {
		count, err = q.exec(ctx, `UPDATE factsets SET environment = $1, digest = $2, seq = $3, node_at = $4, received_at = $5,
			produced_at = $6, producer = $7, packages = $8, number = $9, arrangement = $10
			WHERE node_id = $11 AND seq = $12 AND digest = $13 AND produced_at <= $14 AND number = $15`,
			f.Environment, f.Digest, f.Seq, micros(f.Timestamp), now, produced, query.Clean(f.Producer), d.packages, f.Number, d.arrangement,
			node, d.before.Seq, d.before.Digest, d.newest, d.before.Number)
	} else {
		count, err = q.exec(ctx, `INSERT INTO factsets (environment, digest, seq, node_at, received_at, produced_at, producer, packages, number, arrangement, node_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`,
			f.Environment, f.Digest, f.Seq, micros(f.Timestamp), now, produced, query.Clean(f.Producer), d.packages, f.Number, d.arrangement, node)
	}
	if err != nil || count == 0 {
		return nil, cmpErr(err, errStale)
	}
	if d.repack {
		if err := s.putPackages(ctx, q, node, f.Packages); err != nil {
			return nil, err
		}
	}
	if d.document == nil {
		return nil, nil
	}
	if _, err := q.exec(ctx, `INSERT INTO fact_documents (node_id, document, told) VALUES ($1, $2, $3)
		ON CONFLICT (node_id) DO UPDATE SET document = excluded.document, told = excluded.told`, node, d.document, d.told); err != nil {
		return nil, err
	}
	names := changedFacts(d.changes)
	if len(names) == 0 { // only their order differs, which code can see in any of them
		if names, err = facts.Names(f.Values); err != nil {
			return nil, err
		}
	}
	if err := s.note(ctx, q, compile.FactsChanged, f.Certname, names); err != nil {
		return nil, err
	}
	return s.putLeaves(ctx, q, node, d.changes)
}

// changedFacts names the top-level facts that differ.
func changedFacts(changes []facts.Change) []string {
	var names []string
	for _, c := range changes { // sorted by path, so those of one fact follow each other
		if name := c.Name(); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return names
}

// cmpErr returns the first error.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

var factRow = []column{{"node_id", ints}, {"path_id", ints}, {"kind", ints}, {"value", texts}, {"number", floats}}

func (s *Facts) putLeaves(ctx context.Context, q querier, node int64, changes []facts.Change) (map[string]knownPath, error) {
	ids, fresh, err := s.pathIDs(ctx, q, node, changes)
	if err != nil {
		return nil, err
	}
	rows := make([][]any, 0, len(changes))
	for i, c := range changes {
		if c.Removed {
			if _, err := q.exec(ctx, "DELETE FROM facts WHERE node_id = $1 AND path_id = $2", node, ids[i]); err != nil {
				return nil, err
			}
			continue
		}
		rows = append(rows, []any{node, ids[i], int64(c.Kind), query.Clean(c.Text), number(c.Leaf)})
	}
	return fresh, s.dialect.insert(ctx, q, "facts", factRow,
		"ON CONFLICT (node_id, path_id) DO UPDATE SET kind = excluded.kind, value = excluded.value, number = excluded.number", rows)
}

// number is the value that comparisons like > use.
func number(l facts.Leaf) *float64 {
	if l.Kind != facts.Integer && l.Kind != facts.Float {
		return nil
	}
	n, err := strconv.ParseFloat(l.Text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil
	}
	return &n
}

// pathIDs finds or makes the id of each change's path, and records kinds that it
// has not had before. Paths come sorted, so two transactions make them in the same
// order and cannot wait for each other.
func (s *Facts) pathIDs(ctx context.Context, q querier, node int64, changes []facts.Change) (ids []int64, fresh map[string]knownPath, err error) {
	if err := s.usePaths(ctx, q); err != nil {
		return nil, nil, err
	}
	ids = make([]int64, len(changes))
	unknown, unseen := s.paths.find(changes, ids)
	if len(unknown)+len(unseen) == 0 {
		return ids, nil, nil
	}
	rows := make([][]any, 0, len(unknown))
	for _, i := range unknown {
		rows = append(rows, []any{query.Clean(changes[i].Path), query.Clean(changes[i].Name())})
	}
	if err := s.dialect.insert(ctx, q, "fact_paths", []column{{"path", texts}, {"name", texts}}, "ON CONFLICT (path) DO NOTHING", rows); err != nil {
		return nil, nil, err
	}
	fresh = make(map[string]knownPath, len(unknown)+len(unseen))
	for _, i := range unknown {
		if ids[i], err = one[int64](q.row(ctx, "SELECT id FROM fact_paths WHERE path = $1", query.Clean(changes[i].Path))); err != nil {
			return nil, nil, err
		}
		fresh[changes[i].Path] = knownPath{id: ids[i]}
	}
	return ids, fresh, s.putKinds(ctx, q, node, changes, ids, unseen, fresh)
}

// Facts implements inventory.FactStore.
func (s *Facts) Facts(ctx context.Context, name fleet.Certname) (inventory.FactSet, error) {
	f, _, err := s.factHead(ctx, name)
	return f, err
}

// FactsAsTold implements inventory.FactStore.
func (s *Facts) FactsAsTold(ctx context.Context, name fleet.Certname) (inventory.FactSet, error) {
	f, _, err := s.factsIn(ctx, name, "COALESCE(d.told, d.document)")
	if err == nil { // facts that came sorted stand with what servers add
		f.Values, err = facts.WithoutTrusted(f.Values)
	}
	return f, err
}

// factDigests name what is stored with facts.
type factDigests struct{ packages, arrangement fleet.Digest }

// factHead reads a node's facts.
func (s *Facts) factHead(ctx context.Context, name fleet.Certname) (inventory.FactSet, factDigests, error) {
	return s.factsIn(ctx, name, "d.document")
}

// factsIn reads a node's facts, their values from a column of fact_documents.
func (s *Facts) factsIn(ctx context.Context, name fleet.Certname, column string) (f inventory.FactSet, n factDigests, err error) {
	f.Certname = name
	var packed []byte
	err = s.reads.row(ctx, `SELECT f.environment, f.digest, f.seq, f.node_at, f.received_at, f.produced_at, f.producer, f.packages, f.arrangement, f.number,
		`+column+` FROM nodes n JOIN factsets f ON f.node_id = n.id JOIN fact_documents d ON d.node_id = n.id WHERE n.certname = $1`, name).
		Scan(&f.Environment, &f.Digest, &f.Seq, at(&f.Timestamp), at(&f.ReceivedAt), at(&f.ProducedAt), &f.Producer, &n.packages, &n.arrangement, &f.Number,
			&packed)
	if errors.Is(err, sql.ErrNoRows) {
		return f, n, fault.New(fault.NotFound, "node %s has no facts", name)
	}
	if err == nil {
		f.Values, err = s.packer.unpack(packed)
	}
	return f, n, explain(err, "read the facts of %s", name)
}

// FactLeaves implements inventory.FactStore. The ids of the paths are looked up
// first, so that the leaves are found by their key.
func (s *Facts) FactLeaves(ctx context.Context, nodes []fleet.Certname, paths []string) (map[fleet.Certname][]facts.Leaf, error) {
	names, err := jsonNames(nodes)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(append([]string{}, paths...))
	if err != nil {
		return nil, err
	}
	known := map[int64]string{}
	ids, err := collect(ctx, s.reads, func(row scanner) (id int64, err error) {
		var path string
		err = row.Scan(&id, &path)
		known[id] = path
		return id, err
	}, "SELECT id, path FROM fact_paths WHERE path IN (SELECT value FROM "+s.words().Elements("$1")+" l)", string(list))
	if err != nil || len(ids) == 0 {
		return nil, explain(err, "read fact paths")
	}
	keys, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	out := map[fleet.Certname][]facts.Leaf{}
	_, err = collect(ctx, s.reads, func(row scanner) (none struct{}, err error) {
		var name fleet.Certname
		var id int64
		var leaf facts.Leaf
		err = row.Scan(&name, &id, &leaf.Kind, &leaf.Text)
		leaf.Path = known[id]
		out[name] = append(out[name], leaf)
		return none, err
	}, `SELECT n.certname, f.path_id, f.kind, f.value FROM nodes n JOIN facts f ON f.node_id = n.id
		WHERE n.certname IN (SELECT value FROM `+s.words().Elements("$1")+` l)
		AND f.path_id IN (SELECT CAST(value AS BIGINT) FROM `+s.words().Elements("$2")+" k)", names, string(keys))
	return out, explain(err, "read facts")
}

// words are those of queries in s's dialect.
func (s *base) words() query.Words { return query.Words{Postgres: s.dialect.postgres} }

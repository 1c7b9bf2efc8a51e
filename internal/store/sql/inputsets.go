package sql

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Reusables is what compilations read: from it is judged whether a catalog still stands.
type Reusables struct {
	*base
	groups    groupCache
	factLists listCache
}

// storedInputs is a set without its sources, which are in groups.
type storedInputs struct {
	compile.InputSet
	Sources *struct{}      `json:"sources,omitempty"` // hides the set's own
	Groups  []fleet.Digest `json:"groups"`
}

var groupRow = []column{{"digest", texts}, {"used_at", ints}, {"document", blobs}}

// putInputs stores what a compilation read. Groups that are there are only marked,
// and that once an hour, so that most sets write one row.
func (s *Reusables) putInputs(ctx context.Context, q querier, id int64, set *compile.InputSet, now time.Time) error {
	if set == nil {
		return nil
	}
	if err := s.putAnswers(ctx, q, set.Answers, now); err != nil {
		return err
	}
	stored := storedInputs{InputSet: *set}
	groups := set.Sources.Groups()
	slices.SortFunc(groups, func(a, b compile.Group) int { return compareDigests(a.Digest, b.Digest) }) // two transactions cannot wait for each other
	rows := make([][]any, len(groups))
	for i, g := range groups {
		stored.Groups = append(stored.Groups, g.Digest)
		rows[i] = []any{string(g.Digest), micros(now), s.packer.pack(g.Text)}
	}
	err := s.dialect.insert(ctx, q, "input_groups", groupRow,
		"ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at WHERE input_groups.used_at < excluded.used_at - 3600000000", rows)
	if err != nil {
		return err
	}
	document, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, `INSERT INTO compilation_inputs (compilation, document) VALUES ($1, $2)
		ON CONFLICT (compilation) DO UPDATE SET document = excluded.document`, id, s.packer.pack(document))
	return err
}

func compareDigests(a, b fleet.Digest) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// inputsOf reads what a compilation read; NotFound if that is not known.
func (s *Reusables) inputsOf(ctx context.Context, q querier, id int64) (*compile.InputSet, error) {
	packed, err := one[[]byte](q.row(ctx, "SELECT document FROM compilation_inputs WHERE compilation = $1", id))
	if err != nil {
		return nil, missing(err, "what compilation %d read is not known", id)
	}
	stored, err := s.unpackInputs(packed)
	if err != nil {
		return nil, err
	}
	set := stored.InputSet
	for _, digest := range stored.Groups {
		text, err := s.groupText(ctx, q, digest)
		if err != nil {
			return nil, err
		}
		if err := set.Sources.AddGroup(text); err != nil {
			return nil, err
		}
	}
	set.Sources.Sort()
	return &set, nil
}

func (s *Reusables) unpackInputs(packed []byte) (stored storedInputs, err error) {
	text, err := s.packer.unpack(packed)
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	return stored, err
}

// groupText reads a group, which many nodes share: the last ones stay in memory.
func (s *Reusables) groupText(ctx context.Context, q querier, digest fleet.Digest) ([]byte, error) {
	if text, ok := s.groups.get(digest); ok {
		return text, nil
	}
	packed, err := one[[]byte](q.row(ctx, "SELECT document FROM input_groups WHERE digest = $1", digest))
	if err != nil {
		return nil, missing(err, "the group %s of source files is gone", digest.Short())
	}
	text, err := s.packer.unpack(packed)
	if err == nil {
		s.groups.put(digest, text)
	}
	return text, err
}

// Newest implements compile.Reusables.
func (s *Reusables) Newest(ctx context.Context, node fleet.Certname, env fleet.Environment) (c compile.Compilation, err error) {
	err = s.snapshotOften(ctx, func(ctx context.Context, q querier) error {
		var inputs int64
		if c, inputs, err = s.newest(ctx, q, node, env); err != nil {
			return err
		}
		c.Inputs, err = s.inputsOf(ctx, q, inputs)
		return err
	})
	return c, explain(err, "read what the catalog of %s is made of", node)
}

// newest reads the compilation, and whose inputs it has.
func (s *Reusables) newest(ctx context.Context, q querier, node fleet.Certname, env fleet.Environment) (c compile.Compilation, inputs int64, err error) {
	var stands fleet.Digest
	err = q.row(ctx, "SELECT inputs, version FROM standings WHERE environment = $1 AND certname = $2 AND staged = 0", env, node).Scan(&inputs, &stands)
	if err == nil {
		c, err = scanCompilation(q.row(ctx, "SELECT "+compilationColumns+` FROM compilations WHERE state = 'done' AND environment = $2 AND certname = $1
			AND id = (SELECT compilation FROM standings WHERE environment = $2 AND certname = $1 AND staged = 0)
			AND (id, catalog) = (SELECT k.compilation, k.digest FROM nodes n JOIN catalogs k ON k.node_id = n.id WHERE n.certname = $1 AND k.received = 0)`, node, env))
	}
	c.Stands = stands
	return c, inputs, missing(err, "%s has no catalog in %s that could be used again", node, env)
}

// NewestStaged implements compile.Reusables.
func (s *Reusables) NewestStaged(ctx context.Context, node fleet.Certname, env fleet.Environment) (c compile.Compilation, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		var inputs int64
		if c, inputs, err = s.newestStaged(ctx, q, node, env); err != nil {
			return err
		}
		c.Inputs, err = s.inputsOf(ctx, q, inputs)
		return err
	})
	return c, explain(err, "read what the staged catalog of %s is made of", node)
}

// WithInputs is a done compilation with what it read; NotFound if one of both is not kept.
func (s *Reusables) WithInputs(ctx context.Context, id int64) (c compile.Compilation, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		c, err = scanCompilation(q.row(ctx, "SELECT "+compilationColumns+" FROM compilations WHERE id = $1 AND state = 'done'", id))
		if err != nil {
			return missing(err, "compilation %d is not kept any more", id)
		}
		c.Inputs, err = s.inputsOf(ctx, q, id)
		return err
	})
	return c, explain(err, "read what compilation %d is made of", id)
}

func (s *Reusables) newestStaged(ctx context.Context, q querier, node fleet.Certname, env fleet.Environment) (c compile.Compilation, inputs int64, err error) {
	var id int64
	var stands fleet.Digest
	err = q.row(ctx, "SELECT compilation, inputs, version FROM standings WHERE environment = $1 AND certname = $2 AND staged = 1", env, node).
		Scan(&id, &inputs, &stands)
	if err == nil {
		c, err = scanCompilation(q.row(ctx, "SELECT "+compilationColumns+" FROM compilations WHERE id = $1 AND state = 'done'", id))
	}
	c.Stands = stands
	return c, inputs, missing(err, "%s has no staged catalog in %s", node, env)
}

// Restate implements compile.Reusables.
func (s *Reusables) Restate(ctx context.Context, from int64, c compile.Compilation) (made compile.Compilation, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		was, _, err := s.newest(ctx, q, c.Node, c.Environment)
		if err != nil && fault.Of(err) != fault.NotFound {
			return err
		}
		if err != nil || was.ID != from {
			row, err := s.promote(ctx, q, from, c)
			made = row
			return err
		}
		c.Catalog = was.Catalog
		row, err := s.insertDone(ctx, q, c)
		if err != nil {
			return err
		}
		if _, err := q.exec(ctx, "UPDATE standings SET compilation = $1, version = $2 WHERE environment = $3 AND certname = $4 AND staged = 0",
			row.ID, c.Version, c.Environment, c.Node); err != nil {
			return err
		}
		made = row
		return s.restamp(ctx, q, from, made)
	})
	return made, explain(err, "use the catalog of %s again", c.Node)
}

// promote adds a plain row of a staged catalog. Its standing takes the place of the
// plain one, and counts as soon as the catalog is the newest.
func (s *Reusables) promote(ctx context.Context, q querier, from int64, c compile.Compilation) (compile.Compilation, error) {
	was, inputs, err := s.newestStaged(ctx, q, c.Node, c.Environment)
	if err == nil && was.ID != from {
		err = fault.New(fault.NotFound, "%s has a newer catalog than that of compilation %d", c.Node, from)
	}
	if err != nil {
		return c, err
	}
	c.Catalog = was.Catalog
	row, err := s.insertDone(ctx, q, c)
	if err != nil {
		return c, err
	}
	_, err = q.exec(ctx, `INSERT INTO standings (certname, environment, staged, compilation, inputs, version, volatile, compiled_at)
		SELECT certname, environment, 0, $1, $2, $3, volatile, compiled_at FROM standings WHERE environment = $4 AND certname = $5 AND staged = 1
		ON CONFLICT (environment, certname, staged) DO UPDATE SET compilation = excluded.compilation,
		inputs = excluded.inputs, version = excluded.version, volatile = excluded.volatile, compiled_at = excluded.compiled_at, tried_at = 0`,
		row.ID, inputs, c.Version, c.Environment, c.Node)
	return row, err
}

// insertDone adds a row that is done already.
func (s *Reusables) insertDone(ctx context.Context, q querier, c compile.Compilation) (compile.Compilation, error) {
	return scanCompilation(q.row(ctx, `INSERT INTO compilations
		(certname, environment, version, facts_seq, transaction_uuid, trusted, priority, state, wanted_at, finished_at, catalog, uuid)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'done', $8, $9, $10, $11) RETURNING `+compilationColumns,
		c.Node, c.Environment, c.Version, c.FactsSeq, c.Transaction, string(c.Trusted), c.Priority, micros(c.WantedAt), micros(c.FinishedAt), c.Catalog, c.UUID))
}

// restamp makes c the compilation that gave its node's newest catalog, which stays
// as it is.
func (s *Reusables) restamp(ctx context.Context, q querier, from int64, c compile.Compilation) error {
	count, err := q.exec(ctx, `UPDATE catalogs SET version = $1, uuid = $2, compilation = $3, config_version = $1, code_id = $1
		WHERE compilation = $4 AND digest = $5 AND node_id = (SELECT id FROM nodes WHERE certname = $6)`,
		c.Version, c.UUID, c.ID, from, c.Catalog, c.Node)
	if err == nil && count == 0 {
		return fault.New(fault.NotFound, "%s has another catalog by now", c.Node)
	}
	if err != nil {
		return err
	}
	return endLosses(ctx, q, c.Node, c.Catalog)
}

// StopReuse implements compile.Reusables.
func (s *Reusables) StopReuse(ctx context.Context, stop compile.ReuseStop) error {
	differs, err := json.Marshal(stop.Differs)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO reuse_stops (certname, environment, version, stopped_at, reused, fresh, differs, inputs)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (certname, environment, version) DO UPDATE SET
			stopped_at = excluded.stopped_at, reused = excluded.reused, fresh = excluded.fresh, differs = excluded.differs, inputs = excluded.inputs`,
			stop.Node, stop.Environment, stop.Version, micros(stop.At), stop.Reused, stop.Fresh, string(differs), stop.Inputs)
		return err
	})
	return explain(err, "stop using catalogs of %s again", stop.Node)
}

const stopColumns = "certname, environment, version, stopped_at, reused, fresh, differs, inputs"

func scanStop(row scanner) (stop compile.ReuseStop, err error) {
	var differs string
	err = row.Scan(&stop.Node, &stop.Environment, &stop.Version, at(&stop.At), &stop.Reused, &stop.Fresh, &differs, &stop.Inputs)
	if err == nil {
		err = json.Unmarshal([]byte(differs), &stop.Differs)
	}
	return stop, err
}

// ReuseStops implements compile.Reusables.
func (s *Reusables) ReuseStops(ctx context.Context, node fleet.Certname, env fleet.Environment) ([]compile.ReuseStop, error) {
	stops, err := collect(ctx, s.reads, scanStop, "SELECT "+stopColumns+` FROM reuse_stops
		WHERE certname IN ($1, '') AND environment = $2 ORDER BY stopped_at DESC, version`, node, env)
	return stops, explain(err, "read where catalogs of %s are not used again", node)
}

// pruneInputs forgets what only compilations read that are gone, and stops of
// versions that no compilation is of.
func (s *Reusables) pruneInputs(ctx context.Context, q querier, before time.Time) error {
	if _, err := q.exec(ctx, `DELETE FROM compilation_inputs
		WHERE NOT EXISTS (SELECT 1 FROM compilations c WHERE c.id = compilation_inputs.compilation)
		AND NOT EXISTS (SELECT 1 FROM standings t WHERE t.inputs = compilation_inputs.compilation)`); err != nil {
		return err
	}
	if _, err := q.exec(ctx, "DELETE FROM reuse_stops WHERE stopped_at < $1", micros(before)); err != nil {
		return err
	}
	packed, err := collect(ctx, q, one[[]byte], "SELECT document FROM compilation_inputs")
	if err != nil {
		return err
	}
	used, asked := map[fleet.Digest]bool{}, map[fleet.Digest]bool{}
	for _, document := range packed {
		text, err := s.packer.unpack(document)
		if err != nil {
			return err
		}
		var stored struct {
			Groups []fleet.Digest
			Asked  []compile.Question
		}
		if err := json.Unmarshal(text, &stored); err != nil {
			return err
		}
		for _, digest := range stored.Groups {
			used[digest] = true
		}
		for _, q := range stored.Asked {
			asked[q.Answer] = true
		}
	}
	if err := s.pruneAnswers(ctx, q, asked, before); err != nil {
		return err
	}
	// One that was used lately may be of a row that is being written.
	groups, err := collect(ctx, q, one[fleet.Digest], "SELECT digest FROM input_groups WHERE used_at < $1", micros(before))
	if err != nil {
		return err
	}
	for _, digest := range groups {
		if !used[digest] {
			if _, err := q.exec(ctx, "DELETE FROM input_groups WHERE digest = $1", digest); err != nil {
				return err
			}
		}
	}
	return nil
}

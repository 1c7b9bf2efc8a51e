package sql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// targetColumns are in the order of putTargets.
var targetColumns = []column{
	{"release_id", ints},
	{"number", ints},
	{"node", texts},
	{"wave", ints},
	{"round", ints},
	{"base", texts},
	{"catalog", texts},
	{"environment", texts},
	{"version", texts},
	{"uuid", texts},
	{"compilation", ints},
	{"compiled_at", ints},
	{"state", texts},
	{"reason", texts},
	{"generation", ints},
	{"report", texts},
	{"run_ended", ints},
	{"run_changed", ints},
	{"revision", ints},
}

// putTargets inserts targets, or replaces how they stand.
func (s *Releases) putTargets(ctx context.Context, q querier, id, revision int64, targets []release.Target) error {
	rows := make([][]any, len(targets))
	for i, t := range targets {
		rows[i] = []any{
			id, int64(t.Number), string(t.Node), int64(t.Wave), int64(t.Round), string(t.Base), string(t.Catalog.Digest), string(t.Catalog.Environment),
			string(t.Catalog.Version), t.Catalog.UUID, t.Catalog.Compilation, micros(t.Catalog.CompiledAt), string(t.State), query.Clean(t.Reason), t.Generation,
			query.Clean(t.Report), micros(t.RunEnded), bit(t.RunChanged), revision,
		}
	}
	return s.dialect.insert(ctx, q, "release_targets", targetColumns, `ON CONFLICT (release_id, number) DO UPDATE SET
		round = excluded.round, state = excluded.state, reason = excluded.reason, generation = excluded.generation, report = excluded.report,
		run_ended = excluded.run_ended, run_changed = excluded.run_changed, revision = excluded.revision`, rows)
}

func scanTarget(row scanner) (t release.Target, err error) {
	err = row.Scan(&t.Number, &t.Node, &t.Wave, &t.Round, &t.Base, &t.Catalog.Digest, &t.Catalog.Environment, &t.Catalog.Version, &t.Catalog.UUID,
		&t.Catalog.Compilation, at(&t.Catalog.CompiledAt), &t.State, &t.Reason, &t.Generation, &t.Report, at(&t.RunEnded), &t.RunChanged, &t.Revision)
	return t, err
}

// Targets implements release.Store.
func (s *Releases) Targets(ctx context.Context, id int64, page release.TargetPage) ([]release.Target, error) {
	f := filter{dialect: s.dialect}
	f.add("release_id = ?", id)
	f.add("number > ?", page.After)
	oneOf(&f, "state", page.States)
	if page.Wave > 0 {
		f.add("wave = ?", page.Wave)
	}
	if page.Node != "" {
		f.add("node = ?", page.Node)
	}
	if page.Since > 0 {
		f.add("revision > ?", page.Since)
	}
	list, err := collect(ctx, s.reads, scanTarget, `SELECT number, node, wave, round, base, catalog, environment, version, uuid, compilation, compiled_at,
		state, reason, generation, report, run_ended, run_changed, revision FROM release_targets`+f.where()+" ORDER BY number LIMIT "+f.mark(page.Limit), f.args...)
	return list, explain(err, "read the targets of release %d", id)
}

// countTargets counts a release's targets by wave and state.
func countTargets(ctx context.Context, q querier, id int64) (map[int]release.Counts, error) {
	waves := map[int]release.Counts{}
	_, err := collect(ctx, q, func(row scanner) (none struct{}, err error) {
		var state release.Standing
		var wave, n int
		if err = row.Scan(&wave, &state, &n); waves[wave] == nil {
			waves[wave] = release.Counts{}
		}
		waves[wave][state] = n
		return none, err
	}, "SELECT wave, state, COUNT(*) FROM release_targets WHERE release_id = $1 GROUP BY wave, state", id)
	return waves, err
}

// GivenBy is the nodes that have kept generations of a release, by name.
func (s *Releases) GivenBy(ctx context.Context, id int64) ([]fleet.Certname, error) {
	nodes, err := collect(ctx, s.reads, one[fleet.Certname],
		"SELECT DISTINCT certname FROM generations WHERE release_id = $1 AND release_id > 0 ORDER BY certname", id)
	return nodes, explain(err, "list the nodes of release %d", id)
}

// ReportedCatalog is the catalog_uuid that the report of a node's run names; ok is false while there is no report.
func (s *Reports) ReportedCatalog(ctx context.Context, node fleet.Certname, transaction string) (uuid string, ok bool, err error) {
	uuid, err = one[string](s.reads.row(ctx, `SELECT r.catalog_uuid FROM reports r JOIN nodes n ON n.id = r.node_id
		WHERE r.transaction_uuid = $1 AND r.transaction_uuid <> '' AND n.certname = $2 ORDER BY r.received_at DESC LIMIT 1`, transaction, node))
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return uuid, err == nil, explain(err, "look for a report of %s", node)
}

// JobByKey is the job that was ordered under a key; NotFound.
func (s *Jobs) JobByKey(ctx context.Context, key string) (int64, error) {
	id, err := one[int64](s.reads.row(ctx, "SELECT id FROM jobs WHERE order_key = $1 AND order_key <> ''", key))
	return id, explain(missing(err, "no job was ordered as %s", key), "look for a job")
}

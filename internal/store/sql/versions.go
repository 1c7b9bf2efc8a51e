package sql

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Versions is the code of environments, version by version.
type Versions struct{ *base }

const versionColumns = "version, environment, git_commit, origin, actor, files, bytes, engine, deployed_at"

func scanVersion(row scanner) (v code.Version, err error) {
	err = row.Scan(&v.ID, &v.Environment, &v.Commit, &v.Origin, &v.Actor, &v.Files, &v.Bytes, &v.Engine, at(&v.DeployedAt))
	return v, err
}

// SaveVersion implements code.Store. The row is made anew, so that its seq is the
// highest.
func (s *Versions) SaveVersion(ctx context.Context, v code.Version) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if s.dialect.postgres {
			if _, err := q.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", string(v.Environment)); err != nil {
				return err
			}
		}
		if _, err := q.exec(ctx, "DELETE FROM versions WHERE environment = $1 AND version = $2", v.Environment, v.ID); err != nil {
			return err
		}
		_, err := q.exec(ctx, "INSERT INTO versions ("+versionColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
			v.ID, v.Environment, v.Commit, v.Origin, v.Actor, v.Files, v.Bytes, v.Engine, micros(v.DeployedAt))
		return err
	})
	return explain(err, "save version %s of %s", v.ID.Short(), v.Environment)
}

// StageVersion implements code.Store.
func (s *Versions) StageVersion(ctx context.Context, v code.Version) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO staged_versions (version, environment, git_commit, origin, actor, files, bytes, staged_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (environment, version) DO UPDATE SET
			git_commit = excluded.git_commit, origin = excluded.origin, actor = excluded.actor, staged_at = excluded.staged_at`,
			v.ID, v.Environment, v.Commit, v.Origin, v.Actor, v.Files, v.Bytes, micros(v.DeployedAt))
		return err
	})
	return explain(err, "stage version %s of %s", v.ID.Short(), v.Environment)
}

// PruneStaged implements code.Store.
func (s *Versions) PruneStaged(ctx context.Context, before time.Time) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, `DELETE FROM staged_versions WHERE staged_at < $1
			AND (environment, version) NOT IN (SELECT environment, version FROM previews)
			AND (environment, version) NOT IN (SELECT environment, version FROM release_targets)
			AND (environment, version) NOT IN (SELECT environment, version FROM generations)
			AND (environment, version) NOT IN (SELECT environment, version FROM compilations WHERE state IN ('wanted', 'leased'))`, micros(before))
		return err
	})
	return int(count), explain(err, "prune staged versions")
}

// CurrentVersion implements code.Store.
func (s *Versions) CurrentVersion(ctx context.Context, env fleet.Environment) (code.Version, error) {
	v, err := scanVersion(s.reads.row(ctx, "SELECT "+versionColumns+" FROM versions WHERE environment = $1 ORDER BY seq DESC LIMIT 1", env))
	return v, explain(missing(err, "environment %s has no code", env), "read environment %s", env)
}

// Versions implements code.Store.
func (s *Versions) Versions(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error) {
	list, err := collect(ctx, s.reads, scanVersion,
		"SELECT "+versionColumns+" FROM versions WHERE environment = $1 ORDER BY seq DESC LIMIT $2", env, max(limit, 0))
	return list, explain(err, "list versions of %s", env)
}

// Environments implements code.Store.
func (s *Versions) Environments(ctx context.Context) ([]code.Version, error) {
	list, err := collect(ctx, s.reads, scanVersion, "SELECT "+versionColumns+` FROM versions
		WHERE seq IN (SELECT MAX(seq) FROM versions GROUP BY environment) ORDER BY environment`)
	return list, explain(err, "list environments")
}

// RemoveEnvironment implements code.Store.
func (s *Versions) RemoveEnvironment(ctx context.Context, env fleet.Environment) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, "DELETE FROM versions WHERE environment = $1", env)
		if err == nil && count == 0 {
			return fault.New(fault.NotFound, "environment %s has no code", env)
		}
		return err
	})
	return explain(err, "remove environment %s", env)
}

// PruneVersions implements code.Store.
func (s *Versions) PruneVersions(ctx context.Context, before time.Time, keep int) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, `DELETE FROM versions WHERE deployed_at < $1
			AND seq NOT IN (SELECT seq FROM (
				SELECT seq, ROW_NUMBER() OVER (PARTITION BY environment ORDER BY seq DESC) AS place FROM versions) AS placed
				WHERE place <= $2)
			AND (environment, version) NOT IN (SELECT environment, version FROM compilations WHERE state IN ('wanted', 'leased'))
			AND (environment, version) NOT IN (SELECT environment, version FROM standings)
			AND (environment, version) NOT IN (SELECT environment, version FROM catalogs)
			AND (environment, version) NOT IN (SELECT environment, version FROM release_targets)
			AND (environment, version) NOT IN (SELECT environment, version FROM generations)`, micros(before), max(keep, 1))
		return err
	})
	return int(count), explain(err, "prune versions")
}

// VersionIDs implements code.Store. Compilations refer to versions too.
func (s *Versions) VersionIDs(ctx context.Context) ([]code.VersionID, error) {
	ids, err := collect(ctx, s.reads, one[code.VersionID],
		"SELECT version FROM versions UNION SELECT version FROM staged_versions UNION SELECT version FROM compilations WHERE state IN ('wanted', 'leased') ORDER BY 1")
	return ids, explain(err, "list versions")
}

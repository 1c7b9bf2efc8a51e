package sql

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// CodeChecks is what was found in versions of code.
type CodeChecks struct{ *base }

// SaveCheck implements codecheck.Store. Rows whose version is gone go with it.
func (s *CodeChecks) SaveCheck(ctx context.Context, r codecheck.Report) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO code_checks (environment, version, checked_at, document) VALUES ($1, $2, $3, $4)
			ON CONFLICT (environment, version) DO UPDATE SET checked_at = excluded.checked_at, document = excluded.document`,
			r.Environment, r.Version, micros(r.At), query.Clean(string(text)))
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `DELETE FROM code_checks WHERE version <> $1
			AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.environment = code_checks.environment AND v.version = code_checks.version)`, r.Version)
		return err
	})
	return explain(err, "keep what was found in version %s of %s", r.Version.Short(), r.Environment)
}

// Check implements codecheck.Store.
func (s *CodeChecks) Check(ctx context.Context, env fleet.Environment, version fleet.Digest) (r codecheck.Report, err error) {
	text, err := one[string](s.reads.row(ctx, "SELECT document FROM code_checks WHERE environment = $1 AND version = $2", env, version))
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, explain(missing(err, "version %s of %s was not checked", version.Short(), env), "read what was found in version %s of %s", version.Short(), env)
}

// ClassesOf implements codecheck.Fleet.
func (s *CodeChecks) ClassesOf(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]fleet.Digest, error) {
	list, err := jsonNames(nodes)
	if err != nil {
		return nil, err
	}
	classes := map[fleet.Certname]*strings.Builder{}
	_, err = collect(ctx, s.reads, func(row scanner) (struct{}, error) {
		var node fleet.Certname
		var title string
		err := row.Scan(&node, &title)
		titles := classes[node]
		if titles == nil {
			titles = &strings.Builder{}
			classes[node] = titles
		}
		titles.WriteString(title + "\n")
		return struct{}{}, err
	}, `SELECT n.certname, r.title FROM nodes n JOIN resources r ON r.node_id = n.id
		WHERE r.type = 'Class' AND n.certname IN (SELECT value FROM `+s.words().Elements("$1")+` l) ORDER BY n.certname, r.title`, list)
	sets := make(map[fleet.Certname]fleet.Digest, len(classes))
	for node, names := range classes {
		sets[node] = fleet.DigestOf([]byte(names.String()))
	}
	return sets, explain(err, "read the classes of nodes")
}
